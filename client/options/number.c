/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/options/number.h"

#include <errno.h>
#include <string.h>

int number_take(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10U, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	*text = p;
	*ret = value;
	return 0;
}

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t value;
	int r;

	r = number_take(&text, &value);
	if (r < 0)
		return r;
	if (*text)
		return -EINVAL;
	if (value < min || value > max)
		return -ERANGE;

	*ret = value;
	return 0;
}

int number_share(const char *text, unsigned *ret_percent)
{
	uint64_t value;
	int r;

	r = number_take(&text, &value);
	if (r < 0)
		return r;
	if (strcmp(text, "%") != 0)
		return -EINVAL;
	if (value < 1 || value > 100)
		return -ERANGE;

	*ret_percent = (unsigned)value;
	return 0;
}

int number_bytes(const char *text, uint64_t *ret)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	uint64_t value;
	int r;

	r = number_take(&text, &value);
	if (r < 0)
		return r;

	if (*text) {
		suffix = strchr(suffixes, *text);
		if (!suffix || text[1])
			return -EINVAL;
		if (__builtin_mul_overflow(value, UINT64_C(1024) << (10 * (suffix - suffixes)),
					   &value))
			return -ERANGE;
	}
	*ret = value;
	return 0;
}
