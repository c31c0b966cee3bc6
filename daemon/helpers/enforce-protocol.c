/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-protocol.h"

#include <errno.h>
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

size_t enforce_request_write(char buf[ENFORCE_TEXT_MAX], enum enforce_verb verb, const char *unit)
{
	int n = unit ? snprintf(buf, ENFORCE_TEXT_MAX, "%s %s", verbs[verb], unit)
		     : snprintf(buf, ENFORCE_TEXT_MAX, "%s", verbs[verb]);

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

static int read_unit(const char *text, size_t length, char ret[ENFORCE_UNIT_MAX], char *why,
		     size_t size)
{
	if (length >= ENFORCE_UNIT_MAX || memchr(text, '\0', length))
		return refuse(why, size, -EINVAL, "no name of a unit: %zu bytes", length);
	memcpy(ret, text, length);
	ret[length] = '\0';
	return enforce_unit_check(ret, why, size);
}

int enforce_request_read(const char *text, size_t length, enum enforce_verb *ret_verb,
			 char ret_unit[ENFORCE_UNIT_MAX], char *why, size_t size)
{
	const char *rest;
	size_t n;

	if (length == strlen("kill") && memcmp(text, "kill", length) == 0) {
		ret_unit[0] = '\0';
		*ret_verb = ENFORCE_KILL;
		return 0;
	}
	for (int verb = ENFORCE_FREEZE; verb <= ENFORCE_THAW; verb++)
		if (take_word(text, length, verbs[verb], &rest, &n)) {
			*ret_verb = (enum enforce_verb)verb;
			return read_unit(rest, n, ret_unit, why, size);
		}
	return refuse(why, size, -EBADMSG,
		      "a request is \"kill\", \"freeze UNIT\" or \"thaw UNIT\"");
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
