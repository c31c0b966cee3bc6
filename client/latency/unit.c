/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t bits_of(const struct place *place, unsigned step)
{
	return ((UINT32_C(1) << step) - 1) << (place->array * CUSET_ARRAY_CUS + place->cu);
}

/* The first remaining place on an XCC, in this engine or in any (UNIT_MIXED). */
static bool first_left(const struct cuset *left, unsigned step, unsigned xcc, unsigned engine,
		       struct place *ret)
{
	for (unsigned e = 0; e < CUSET_ENGINES; e++) {
		uint32_t word = left->pair[cuset_pair(xcc, e)];
		unsigned bit;

		if (word == 0 || (engine != UNIT_MIXED && e != engine))
			continue;
		bit = (unsigned)__builtin_ctz(word);
		*ret = (struct place){ xcc, e, bit / CUSET_ARRAY_CUS,
				       bit % CUSET_ARRAY_CUS / step * step };
		return true;
	}
	return false;
}

/* Takes the next unit of an engine from the remaining CUs; false: an XCC has no more there. */
static bool cut(struct cuset *left, const struct units *units, unsigned engine, struct unit *ret)
{
	struct unit unit = { 0 };

	for (unsigned xcc = 0; xcc < units->lanes; xcc++) {
		if (!first_left(left, units->step, xcc, engine, &unit.lane[xcc]))
			return false;
	}
	unit.engine = unit.lane[0].engine;
	for (unsigned xcc = 0; xcc < units->lanes; xcc++) {
		const struct place *place = &unit.lane[xcc];

		left->pair[cuset_pair(xcc, place->engine)] &= ~bits_of(place, units->step);
		if (place->engine != unit.engine)
			unit.engine = UNIT_MIXED;
	}
	*ret = unit;
	return true;
}

static void encode(const struct model *model, const struct units *units, struct unit *unit)
{
	struct cuset set = { 0 };

	for (unsigned xcc = 0; xcc < units->lanes; xcc++) {
		const struct place *place = &unit->lane[xcc];

		set.pair[cuset_pair(xcc, place->engine)] |= bits_of(place, units->step);
	}
	codec_encode(&model->codec, &set, unit->mask);
}

int units_init(const struct model *model, const uint32_t *mask, size_t words, struct units *ret)
{
	struct units units = {
		.lanes = model->geometry.xccs,
		.step = geometry_step(&model->geometry),
		.words = codec_words(&model->codec),
	};
	struct cuset left;

	codec_decode(&model->codec, mask, words, &left);
	units.list = calloc(cuset_count(&left) + 1, sizeof(*units.list));
	if (!units.list)
		return -ENOMEM;

	for (unsigned e = 0; e < model->geometry.engines; e++)
		while (cut(&left, &units, e, &units.list[units.n]))
			units.n++;
	while (cut(&left, &units, UNIT_MIXED, &units.list[units.n]))
		units.n++;
	if (units.n == 0) {
		units_done(&units);
		return -ENOENT;
	}
	for (size_t i = 0; i < units.n; i++)
		encode(model, &units, &units.list[i]);
	*ret = units;
	return 0;
}

void units_done(struct units *units)
{
	free(units->list);
	units->list = NULL;
}

bool place_equal(const struct place *a, const struct place *b)
{
	return a->xcc == b->xcc && a->engine == b->engine && a->array == b->array && a->cu == b->cu;
}

void unit_name(const struct model *model, const struct units *units, size_t i,
	       char buf[static UNIT_NAME])
{
	const struct place *place = &units->list[i].lane[0];
	char array[16] = "", last[16] = "";

	if (model->geometry.arrays > 1)
		snprintf(array, sizeof(array), ".SH%u", place->array);
	if (units->step > 1)
		snprintf(last, sizeof(last), "-%u", place->cu + units->step - 1);
	snprintf(buf, UNIT_NAME, "SE%u%s:%u%s", place->engine, array, place->cu, last);
}

size_t pairs_count(size_t n)
{
	return n * (n + 1) / 2;
}

/* Sorted by distance: all units with themselves, then all with their next unit, and so on. */
void pairs_get(size_t n, size_t k, size_t *ret_a, size_t *ret_b)
{
	size_t distance = 0;

	while (k >= n - distance) {
		k -= n - distance;
		distance++;
	}
	*ret_a = k;
	*ret_b = k + distance;
}

static uint32_t field(uint32_t value, unsigned offset, unsigned size)
{
	return value >> offset & ((UINT32_C(1) << size) - 1);
}

/* "gfx1030" is 0x1030, "gfx90a" 0x90a: the last two digits, of which one may be a letter, are the
 * minor number and the stepping. */
static unsigned long version_of(const char *target)
{
	return strlen(target) > 3 ? strtoul(target + 3, NULL, 16) : 0;
}

void hw_id_place(const char *target, uint32_t hw_id, uint32_t xcc_id, struct place *ret)
{
	unsigned long version = version_of(target);
	bool eight = version == 0x908 || version == 0x90a;

	ret->xcc = field(xcc_id, 0, 4);
	if (version >= 0x1000) {
		ret->cu = field(hw_id, 10, 4) * 2;
		ret->array = field(hw_id, 16, 1);
		ret->engine = field(hw_id, 18, version >= 0x1100 ? 3 : 2);
	} else {
		ret->cu = field(hw_id, 8, 4);
		ret->array = field(hw_id, 12, 1);
		ret->engine = field(hw_id, 13, eight ? 3 : 2);
	}
}
