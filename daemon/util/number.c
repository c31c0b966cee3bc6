/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/number.h"

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

int number_parse_in(const char *text, const char *unit, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t value;
	int r = number_take(&text, &value);

	if (r < 0)
		return r;
	if (strcmp(text, unit) != 0)
		return -EINVAL;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	return number_parse_in(text, "", min, max, ret);
}

int number_parse_units(const char *text, const struct number_unit *units, uint64_t *ret)
{
	uint64_t value;
	int r = number_take(&text, &value);

	if (r < 0)
		return r;
	while (units->name && strcmp(text, units->name) != 0)
		units++;
	if (!units->name)
		return -EINVAL;
	if (__builtin_mul_overflow(value, units->factor, &value))
		return -ERANGE;
	*ret = value;
	return 0;
}

int number_parse_bytes(const char *text, uint64_t *ret)
{
	static const struct number_unit units[] = {
		{ "", 1 },
		{ "K", UINT64_C(1) << 10 },
		{ "k", UINT64_C(1) << 10 },
		{ "M", UINT64_C(1) << 20 },
		{ "m", UINT64_C(1) << 20 },
		{ "G", UINT64_C(1) << 30 },
		{ "g", UINT64_C(1) << 30 },
		{ "T", UINT64_C(1) << 40 },
		{ "t", UINT64_C(1) << 40 },
		{ NULL, 0 },
	};

	return number_parse_units(text, units, ret);
}
