/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-protocol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/text.h"

#define ERRNO_MAX 4095 /* of Linux */

/* ---- units ----------------------------------------------------------------------------- */

/* systemd.unit(5): letters, digits, ":-_.\" and "@" before an instance; a dot and the type. */
static bool has_rules_of_systemd(const char *unit)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		":-_.\\@";
	size_t length = strlen(unit);
	const char *type = strrchr(unit, '.'), *at = strchr(unit, '@');

	if (length >= ENFORCE_UNIT_MAX || strspn(unit, letters) != length)
		return false;
	if (!type || type == unit || (strcmp(type, ".service") != 0 && strcmp(type, ".scope") != 0))
		return false;
	/* A template is no unit that runs. */
	return at != unit && (!at || at + 1 != type);
}

static bool begins(const char *unit, const char *with)
{
	return strncmp(unit, with, strlen(with)) == 0;
}

static bool is_service(const char *unit)
{
	return strcmp(strrchr(unit, '.'), ".service") == 0;
}

static bool is_never_frozen(const char *unit)
{
	if (strcmp(unit, "init.scope") == 0)
		return true;
	return is_service(unit) &&
	       (begins(unit, "gpuarb") || begins(unit, "systemd-") || begins(unit, "user@") ||
		strcmp(unit, "dbus.service") == 0 || strcmp(unit, "dbus-broker.service") == 0);
}

int enforce_unit_check(const char *unit, char *why, size_t size)
{
	char clean[ENFORCE_UNIT_MAX];

	text_clean(clean, sizeof(clean), unit);
	if (!has_rules_of_systemd(unit))
		return refuse(why, size, -EINVAL, "\"%s\" is no name of a service or scope", clean);
	if (is_never_frozen(unit))
		return refuse(why, size, -EPERM,
			      "%s is never frozen: the system, or thawing, depends on it", clean);
	return 0;
}

/* ---- packets --------------------------------------------------------------------------- */

static bool is_terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size);
}

int enforce_request_check(const struct enforce_request *request, size_t length, char *why,
			  size_t size)
{
	if (length != sizeof(*request))
		return refuse(why, size, length > sizeof(*request) ? -EMSGSIZE : -EBADMSG,
			      "a request has %zu bytes, not %zu", sizeof(*request), length);
	if (request->verb < ENFORCE_KILL || request->verb > ENFORCE_END)
		return refuse(why, size, -EBADMSG, "unknown verb %" PRIu64, request->verb);
	if (request->uid >= UINT32_MAX)
		return refuse(why, size, -EBADMSG, "%" PRIu64 " is no uid", request->uid);
	if (!is_terminated(request->text, sizeof(request->text)))
		return refuse(why, size, -EINVAL, "the text of the request has no end");
	return enforce_names_unit(request->verb) ? enforce_unit_check(request->text, why, size) : 0;
}

struct enforce_answer enforce_answer_new(int r, const char *sentence)
{
	struct enforce_answer answer = { .r = r };

	if (r < 0)
		text_clean(answer.sentence, sizeof(answer.sentence), sentence);
	return answer;
}

int enforce_answer_check(struct enforce_answer *answer, size_t length)
{
	if (length != sizeof(*answer) || answer->r > 0 || answer->r < -ERRNO_MAX ||
	    !is_terminated(answer->sentence, sizeof(answer->sentence)) ||
	    (answer->r == 0 && answer->sentence[0] != '\0'))
		return -EBADMSG;
	*answer = enforce_answer_new(answer->r, answer->sentence);
	return 0;
}
