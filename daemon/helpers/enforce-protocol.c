/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-protocol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/base.h"
#include "util/text.h"

#define ERRNO_MAX 4095 /* of Linux */

static const char *const verbs[] = {
	[ENFORCE_KILL] = "kill",
	[ENFORCE_FREEZE] = "freeze",
	[ENFORCE_THAW] = "thaw",
};

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

/* ---- requests -------------------------------------------------------------------------- */

size_t enforce_request_write(char buf[ENFORCE_TEXT_MAX], const struct enforce_request *request)
{
	const char *verb = verbs[request->verb];
	int n = 0;

	switch (request->verb) {
	case ENFORCE_KILL:
		n = snprintf(buf, ENFORCE_TEXT_MAX, "%s %" PRIu64, verb, request->start_time);
		break;
	case ENFORCE_FREEZE:
		n = snprintf(buf, ENFORCE_TEXT_MAX, "%s %" PRIu64 " %s", verb, request->start_time,
			     request->unit);
		break;
	case ENFORCE_THAW: n = snprintf(buf, ENFORCE_TEXT_MAX, "%s %s", verb, request->unit); break;
	}
	return min_u((unsigned)n, ENFORCE_TEXT_MAX - 1);
}

/* Whether the text is "WORD REST", with REST in *ret_rest. */
static bool take_word(const char *text, size_t length, const char *word, const char **ret_rest,
		      size_t *ret_length)
{
	size_t n = strlen(word);

	if (length <= n || memcmp(text, word, n) != 0 || text[n] != ' ')
		return false;
	*ret_rest = text + n + 1;
	*ret_length = length - n - 1;
	return true;
}

/* A decimal number up to the end of the text or a space. */
static bool take_number(const char **text, size_t *length, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;

	for (; i < *length && (*text)[i] >= '0' && (*text)[i] <= '9'; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (unsigned)((*text)[i] - '0'), &value))
			return false;
	if (i == 0 || (i < *length && (*text)[i] != ' '))
		return false;
	*text += i;
	*length -= i;
	*ret = value;
	return true;
}

static int read_unit(const char *text, size_t length, char ret[ENFORCE_UNIT_MAX], char *why,
		     size_t size)
{
	if (length >= ENFORCE_UNIT_MAX || memchr(text, '\0', length))
		return refuse(why, size, -EINVAL, "invalid name of a unit: %zu bytes", length);
	memcpy(ret, text, length);
	ret[length] = '\0';
	return enforce_unit_check(ret, why, size);
}

int enforce_request_read(const char *text, size_t length, struct enforce_request *ret, char *why,
			 size_t size)
{
	struct enforce_request request = { 0 };
	const char *rest;
	size_t n;
	int r = 0;

	if (take_word(text, length, verbs[ENFORCE_KILL], &rest, &n) &&
	    take_number(&rest, &n, &request.start_time) && n == 0) {
		request.verb = ENFORCE_KILL;
	} else if (take_word(text, length, verbs[ENFORCE_FREEZE], &rest, &n) &&
		   take_number(&rest, &n, &request.start_time) && n > 0) {
		request.verb = ENFORCE_FREEZE;
		r = read_unit(rest + 1, n - 1, request.unit, why, size);
	} else if (take_word(text, length, verbs[ENFORCE_THAW], &rest, &n)) {
		request.verb = ENFORCE_THAW;
		r = read_unit(rest, n, request.unit, why, size);
	} else {
		return refuse(
			why, size, -EBADMSG,
			"a request is \"kill START\", \"freeze START UNIT\" or \"thaw UNIT\"");
	}
	if (r == 0)
		*ret = request;
	return r;
}

/* ---- answers --------------------------------------------------------------------------- */

size_t enforce_answer_write(char buf[ENFORCE_TEXT_MAX], int r, const char *sentence)
{
	size_t n;

	if (r == 0) {
		strcpy(buf, "ok");
		return 2;
	}
	n = (size_t)snprintf(buf, ENFORCE_TEXT_MAX, "error %d ", -r);
	text_clean(buf + n, ENFORCE_TEXT_MAX - n, sentence);
	return strlen(buf);
}

static bool read_errno(const char **text, size_t *length, int *ret)
{
	size_t i = 0;
	int value = 0;

	for (; i < *length && (*text)[i] >= '0' && (*text)[i] <= '9'; i++) {
		value = value * 10 + ((*text)[i] - '0');
		if (value > ERRNO_MAX)
			return false;
	}
	if (value == 0 || i == *length || (*text)[i] != ' ')
		return false;
	*text += i + 1;
	*length -= i + 1;
	*ret = value;
	return true;
}

int enforce_answer_read(const char *text, size_t length, int *ret_r,
			char ret_sentence[ENFORCE_TEXT_MAX])
{
	char raw[ENFORCE_TEXT_MAX];
	const char *rest;
	int value;
	size_t n;

	if (length == 2 && memcmp(text, "ok", 2) == 0) {
		ret_sentence[0] = '\0';
		*ret_r = 0;
		return 0;
	}
	if (!take_word(text, length, "error", &rest, &n) || !read_errno(&rest, &n, &value) ||
	    n >= sizeof(raw) || memchr(rest, '\0', n))
		return -EBADMSG;
	memcpy(raw, rest, n);
	raw[n] = '\0';
	text_clean(ret_sentence, ENFORCE_TEXT_MAX, raw);
	*ret_r = -value;
	return 0;
}
