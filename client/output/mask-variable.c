/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/mask-variable.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/base.h"

/* A part of the value. */
struct part {
	const char *text, *end;
};

static bool at(const struct part *part, char c)
{
	return part->text < part->end && *part->text == c;
}

/* No digits are 0, as for strtoul(). */
static uint64_t take_number(struct part *part)
{
	uint64_t number = 0;

	for (; part->text < part->end && isdigit((unsigned char)*part->text); part->text++)
		number = min_u64(number * 10 + (uint64_t)(*part->text - '0'), UINT32_MAX);
	return number;
}

static bool add_range(uint64_t first, uint64_t last, unsigned most, uint32_t *bits, bool *dropped)
{
	*dropped |= last > most;
	for (uint64_t i = first; i <= last && i <= most; i++) {
		if (bits[i / 32] >> i % 32 & 1)
			return false;
		bits[i / 32] |= UINT32_C(1) << i % 32;
	}
	return true;
}

/* Sets bits of numbers and ranges up to `most`. The problem; NULL: none. */
static const char *take_ids(struct part part, unsigned most, uint32_t *bits, bool *dropped)
{
	while (part.text < part.end) {
		const char *start = part.text;
		uint64_t first = take_number(&part), last = first;

		if (at(&part, '-')) {
			part.text++;
			if (part.text < part.end && !at(&part, ','))
				last = take_number(&part);
		}
		if (part.text == start || (part.text < part.end && !at(&part, ',')))
			return "use numbers and ranges (0-15,32), or 0x and digits for CUs";
		if (last < first)
			return "a range ends before it begins";
		if (!add_range(first, last, most, bits, dropped))
			return "a number stands twice";
		part.text += part.text < part.end;
	}
	return NULL;
}

static int digit_of(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* Words above that of the last CU are dropped. */
static const char *take_hex(struct part part, unsigned cus, uint32_t *bits, bool *dropped)
{
	for (size_t i = 0; part.text < part.end; i++) {
		int digit = digit_of(*--part.end);

		if (digit < 0)
			return "a digit is not hexadecimal";
		if (i / 8 <= cus / 32)
			bits[i / 8] |= (uint32_t)digit << i % 8 * 4;
		else
			*dropped |= digit != 0;
	}
	return NULL;
}

static bool any_bit(const uint32_t *bits)
{
	uint32_t any = 0;

	for (size_t i = 0; i < CODEC_WORDS; i++)
		any |= bits[i];
	return any != 0;
}

/* One set, GPUS:CUS. ROCr lets the number behind the last GPU or CU pass. */
static const char *take_set(const struct part *set, unsigned gpus, unsigned cus,
			    struct variable_masks *ret)
{
	uint32_t words[CODEC_WORDS] = { 0 }, listed[CODEC_WORDS] = { 0 };
	const char *colon = memchr(set->text, ':', (size_t)(set->end - set->text)), *problem;
	struct part left, right;

	if (!colon)
		return "a set is GPUS:CUS, as 0:0-15";
	left = (struct part){ set->text, colon };
	right = (struct part){ colon + 1, set->end };
	if (right.end - right.text > 0 && right.end[-1] == ':')
		right.end--; /* it separates nothing */
	if (right.end - right.text > 1 && tolower((unsigned char)right.text[1]) == 'x')
		problem = *right.text == '0' ? take_hex((struct part){ right.text + 2, right.end },
							cus, words, &ret->dropped)
					     : "CUs are numbers, or begin with 0x";
	else
		problem = take_ids(right, cus, words, &ret->dropped);
	if (!problem)
		problem = take_ids(left, gpus, listed, &ret->dropped);
	if (problem)
		return problem;
	if (!any_bit(words) || !any_bit(listed))
		return any_bit(words) ? "it has no GPU that exists" : "it has no CU that exists";
	for (size_t i = 0; i < VARIABLE_GPUS; i++)
		if ((listed[i / 32] >> i % 32 & 1) && ret->set[i])
			return "a GPU stands in two sets";
	for (size_t i = 0; i < VARIABLE_GPUS; i++) {
		if (!(listed[i / 32] >> i % 32 & 1))
			continue;
		ret->set[i] = true;
		memcpy(ret->word[i], words, sizeof(words));
	}
	return NULL;
}

int variable_parse_hsa(const char *value, unsigned gpus, unsigned cus, struct variable_masks *ret)
{
	_cleanup_(freep) char *text = malloc(strlen(value) + 1);
	char *end = text;

	if (!text)
		return -ENOMEM;
	*ret = (struct variable_masks){ .dropped = false };
	for (; *value; value++)
		if (!isspace((unsigned char)*value))
			*end++ = *value;
	*end = '\0';
	for (char *p = text; *p;) {
		struct part set = { p, p + strcspn(p, ";") };
		const char *problem = take_set(&set, min_u(gpus, VARIABLE_GPUS - 1),
					       min_u(cus, CODEC_BITS - 1), ret);

		if (problem) {
			snprintf(ret->problem, sizeof(ret->problem), "'%.*s'%s: %s",
				 (int)min_u64((uint64_t)(set.end - p), 60), p,
				 *set.end ? " and all after it" : "", problem);
			return 0;
		}
		p += set.end - p + (*set.end == ';');
	}
	return 0;
}

/* HIP reads groups of 8 digits from the end, each up to its first other character, as far as there are CUs. */
void variable_parse_global(const char *value, unsigned cus, unsigned step,
			   struct variable_masks *ret)
{
	size_t skip = value[0] == '0' && (value[1] | 0x20) == 'x' ? 2 : 0;
	size_t length = strlen(value + skip), digits = min_u64(length, cus / 4);
	const char *end = value + skip + length;
	unsigned bits = 0;

	*ret = (struct variable_masks){ .dropped = length > digits };
	for (size_t i = 0; i < digits && i / 8 < CODEC_WORDS; i += 8) {
		size_t n = min_u64(length - i, 8);
		const char *group = end - i - n;
		uint64_t word = 0;

		if (digit_of(*group) < 0) {
			snprintf(ret->problem, sizeof(ret->problem),
				 "'%.60s': '%.*s' is not hexadecimal", value, (int)n, group);
			return;
		}
		for (size_t k = 0; k < n && digit_of(group[k]) >= 0; k++)
			word = word << 4 | (uint64_t)digit_of(group[k]);
		bits += (unsigned)__builtin_popcountll(word);
		for (size_t k = 0; k < 32 * step; k++)
			if (word >> k / step & 1 && i * 4 * step + k < CODEC_BITS)
				ret->word[0][(i * 4 * step + k) / 32] |= UINT32_C(1) << k % 32;
	}
	ret->set[0] = bits > 0 && bits < cus / 4 * 4;
	if (!ret->set[0])
		snprintf(ret->problem, sizeof(ret->problem), "'%.60s': %s", value,
			 bits > 0 ? "it has as many bits as the GPU has CUs" : "it has no bit");
}
