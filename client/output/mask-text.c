/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/mask-text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/base.h"
#include "util/number.h"
#include "util/text.h"
#include "util/text-stream.h"

/* ---- bits ----------------------------------------------------------------------------------- */

#define BITS_MAX 65536U /* more than CODEC_BITS: a mask that is too long can be explained */

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

	return digit ? (int)(digit - digits) : -EINVAL;
}

static int parse_hex(const char *digits, uint32_t *mask)
{
	size_t n = strlen(digits);

	for (size_t i = 0; i < n; i++) {
		int digit = hex_digit(digits[n - 1 - i]);

		if (digit < 0)
			return -EINVAL;
		mask[i / 8] |= (uint32_t)digit << (i % 8 * 4);
	}
	return 0;
}

static int take_bit(const char **text, unsigned *ret)
{
	uint64_t bit;
	int r;

	r = number_take(text, &bit);
	if (r < 0)
		return r;
	if (bit >= BITS_MAX)
		return -ERANGE;

	*ret = (unsigned)bit;
	return 0;
}

static int parse_list(const char *text, uint32_t *mask)
{
	unsigned first, last;
	int r;

	for (;; text++) {
		r = take_bit(&text, &first);
		if (r < 0)
			return r;
		last = first;
		if (*text == '-') {
			text++;
			r = take_bit(&text, &last);
			if (r < 0)
				return r;
		}
		if (last < first || (*text && *text != ','))
			return -EINVAL;
		for (unsigned bit = first; bit <= last; bit++)
			mask[bit / 32] |= UINT32_C(1) << bit % 32;
		if (!*text)
			return 0;
	}
}

/* Words up to the last one with a bit, at least one. */
static size_t used_words(const uint32_t *mask, size_t words)
{
	while (words > 1 && mask[words - 1] == 0)
		words--;
	return words;
}

int mask_parse(const char *text, uint32_t **ret, size_t *ret_words)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	size_t words = BITS_MAX / 32;
	uint32_t *mask;
	int r;

	if (hex && !text[2])
		return -EINVAL;
	if (hex) {
		text += 2 + strspn(text + 2, "0");
		words = strlen(text) / 8 + (strlen(text) % 8 > 0 || !*text);
	}
	if (words > BITS_MAX / 32)
		return -ERANGE;
	mask = calloc(words, sizeof(*mask));
	if (!mask)
		return -ENOMEM;

	r = hex ? parse_hex(text, mask) : parse_list(text, mask);
	if (r < 0) {
		free(mask);
		return r;
	}
	*ret = mask;
	*ret_words = used_words(mask, words);
	return 0;
}

char *mask_hex(const uint32_t *mask, size_t words)
{
	size_t used = used_words(mask, words);
	char *text = malloc(used * 8 + 4), *end = text;

	if (!text)
		return NULL;

	end += sprintf(end, "0x%x", used > 0 ? mask[used - 1] : 0);
	for (size_t i = used; i-- > 1;)
		end += sprintf(end, "%08x", mask[i - 1]);
	return text;
}

char *mask_hex_of(const struct model *model, const struct cuset *set)
{
	uint32_t mask[CODEC_WORDS] = { 0 };

	codec_encode(&model->codec, set, mask);
	return mask_hex(mask, codec_words(&model->codec));
}

static bool has(const uint32_t *mask, size_t words, size_t bit)
{
	return bit / 32 < words && (mask[bit / 32] >> bit % 32 & 1);
}

char *mask_list(const uint32_t *mask, size_t words)
{
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

	if (!out)
		return NULL;

	for (size_t bit = 0, n = 0; bit < words * 32; bit++) {
		size_t first = bit;

		if (!has(mask, words, bit))
			continue;
		while (has(mask, words, bit + 1))
			bit++;
		fprintf(out, first == bit ? "%s%zu" : "%s%zu-%zu", n++ ? "," : "", first, bit);
	}
	return text_stream_close(&stream);
}

/* ---- places --------------------------------------------------------------------------------- */

#define ALL UINT64_MAX /* the part is missing */

struct place {
	uint64_t xcc, engine, array, first, last;
};

/* Takes WORD and a number off the front, if WORD is there. */
static int take_part(const char **text, const char *word, uint64_t *ret)
{
	size_t n = strlen(word);

	if (strncasecmp(*text, word, n) != 0)
		return 0;
	*text += n;
	return number_take(text, ret);
}

/* One place, up to the comma or the end. */
static int read_place(const char **text, struct place *ret)
{
	struct place place = { ALL, ALL, ALL, ALL, ALL };
	int r;

	r = take_part(text, "XCC", &place.xcc);
	if (r < 0)
		return r;
	if (place.xcc != ALL && *(*text)++ != '.')
		return -EINVAL;
	r = take_part(text, "SE", &place.engine);
	if (r >= 0)
		r = take_part(text, ".SH", &place.array);
	if (r >= 0)
		r = take_part(text, ":", &place.first);
	place.last = place.first;
	if (r >= 0 && place.first != ALL)
		r = take_part(text, "-", &place.last);
	if (r < 0)
		return r;
	if (place.engine == ALL || (**text && **text != ','))
		return -EINVAL;

	*ret = place;
	return 0;
}

/* Checks against the geometry. A WGP is CUs 2n and 2n + 1. */
static int check_place(const struct geometry *geometry, const struct place *place, char *buf,
		       size_t size)
{
	unsigned step = geometry_step(geometry);

	if (place->xcc != ALL && place->xcc >= geometry->xccs)
		return refuse(buf, size, -EINVAL, "no such XCC: the GPU has %u, from XCC0",
			      geometry->xccs);
	if (place->engine >= geometry->engines)
		return refuse(buf, size, -EINVAL, "no such shader engine: the GPU has %u, from SE0",
			      geometry->engines);
	if (place->array != ALL && place->array >= geometry->arrays)
		return refuse(buf, size, -EINVAL,
			      "no such shader array: each shader engine has %u, from SH0",
			      geometry->arrays);
	if (place->first == ALL)
		return 0;
	if (place->last < place->first)
		return refuse(buf, size, -EINVAL, "the range ends before it starts");
	if (place->first % step != 0 || (place->last + 1) % step != 0)
		return refuse(buf, size, -EINVAL, "a range must contain whole WGPs of %u CUs",
			      step);
	return 0;
}

/* Adds the place's CUs of one (XCC, engine) pair. */
static int add_pair(const struct geometry *geometry, const struct place *place, unsigned xcc,
		    struct cuset *set, char *buf, size_t size)
{
	unsigned engine = (unsigned)place->engine, count = 0;

	for (unsigned a = 0; a < geometry->arrays; a++) {
		if (place->array != ALL && a != place->array)
			continue;
		for (unsigned cu = 0; cu < geometry->active[xcc][engine][a]; cu++, count++) {
			if (place->first == ALL || (count >= place->first && count <= place->last))
				set->pair[cuset_pair(xcc, engine)] |= UINT32_C(1)
								      << (cu + a * CUSET_ARRAY_CUS);
		}
	}
	if (place->first != ALL && place->last >= count)
		return refuse(buf, size, -EINVAL, "out of range: %u CUs work there, from 0", count);
	return 0;
}

static int add_place(const struct geometry *geometry, const struct place *place, struct cuset *set,
		     char *buf, size_t size)
{
	int r = check_place(geometry, place, buf, size);

	for (unsigned xcc = 0; r >= 0 && xcc < geometry->xccs; xcc++) {
		if (place->xcc == ALL || place->xcc == xcc)
			r = add_pair(geometry, place, xcc, set, buf, size);
	}
	return r;
}

int places_parse(const struct model *model, const char *text, struct cuset *ret, char *buf,
		 size_t size)
{
	struct cuset set = { 0 };
	char why[128];

	for (;; text++) {
		const char *start = text;
		struct place place;

		if (read_place(&text, &place) < 0) {
			snprintf(buf, size,
				 "invalid place '%.*s': use [XCCn.]SEn[.SHn][:FIRST[-LAST]]",
				 (int)min_u((unsigned)strcspn(start, ","), 60), start);
			return -EINVAL;
		}
		if (add_place(&model->geometry, &place, &set, why, sizeof(why)) < 0) {
			snprintf(buf, size, "%.*s: %s", (int)(text - start), start, why);
			return -EINVAL;
		}
		if (!*text)
			break;
	}
	*ret = set;
	return 0;
}

static void format_array(const struct geometry *geometry, FILE *out, unsigned xcc, unsigned engine,
			 unsigned array, uint32_t cus, bool *first_place)
{
	for (unsigned cu = 0; cu < CUSET_ARRAY_CUS; cu++) {
		unsigned first = cu;

		if (!(cus >> cu & 1))
			continue;
		while (cu + 1 < CUSET_ARRAY_CUS && (cus >> (cu + 1) & 1))
			cu++;

		fputs(*first_place ? "" : ",", out);
		if (geometry->xccs > 1)
			fprintf(out, "XCC%u.", xcc);
		fprintf(out, "SE%u", engine);
		if (geometry->arrays > 1)
			fprintf(out, ".SH%u", array);
		fprintf(out, first == cu ? ":%u" : ":%u-%u", first, cu);
		*first_place = false;
	}
}

char *places_format(const struct model *model, const struct cuset *set)
{
	const struct geometry *geometry = &model->geometry;
	bool first = true;
	struct text_stream stream;
	FILE *out = text_stream_open(&stream);

	if (!out)
		return NULL;

	for (unsigned x = 0; x < geometry->xccs; x++)
		for (unsigned e = 0; e < geometry->engines; e++)
			for (unsigned a = 0; a < geometry->arrays; a++)
				format_array(geometry, out, x, e, a,
					     set->pair[cuset_pair(x, e)] >> a * CUSET_ARRAY_CUS &
						     0xffff,
					     &first);
	return text_stream_close(&stream);
}
