/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/geometry.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "util/base.h"
#include "util/text.h"

static int check_shape(const struct geometry *geometry, char *buf, size_t size)
{
	const struct {
		const char *what;
		unsigned n, max;
	} counts[] = {
		{ "XCCs", geometry->xccs, CUSET_XCCS },
		{ "shader engines per XCC", geometry->engines, CUSET_ENGINES },
		{ "shader arrays per shader engine", geometry->arrays, CUSET_ARRAYS },
		{ "CUs per shader array", geometry->array_cus, CUSET_ARRAY_CUS },
	};

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (counts[i].n < 1 || counts[i].n > counts[i].max)
			return refuse(buf, size, -EINVAL, "%u %s: 1 to %u are possible",
				      counts[i].n, counts[i].what, counts[i].max);
	if (geometry->wgp && geometry->xccs > 1)
		return refuse(buf, size, -EINVAL,
			      "WGPs together with %u XCCs: no such GPU is known", geometry->xccs);
	return 0;
}

static int check_array(const struct geometry *geometry, unsigned xcc, unsigned engine,
		       unsigned array, char *buf, size_t size)
{
	unsigned cus = geometry->active[xcc][engine][array];

	if (cus > geometry->array_cus)
		return refuse(buf, size, -EINVAL,
			      "%u CUs in XCC %u, shader engine %u, array %u: it has places for %u",
			      cus, xcc, engine, array, geometry->array_cus);
	if (cus % geometry_step(geometry) != 0)
		return refuse(buf, size, -EINVAL,
			      "%u CUs in XCC %u, shader engine %u, array %u: CUs of this GPU come "
			      "in pairs (WGPs)",
			      cus, xcc, engine, array);
	return 0;
}

static unsigned xcc_cus(const struct geometry *geometry, unsigned xcc)
{
	unsigned n = 0;

	for (unsigned engine = 0; engine < geometry->engines; engine++)
		n += geometry_engine_cus(geometry, xcc, engine);
	return n;
}

static int check_xcc(const struct geometry *geometry, unsigned xcc, char *buf, size_t size)
{
	for (unsigned engine = 0; engine < geometry->engines; engine++)
		for (unsigned array = 0; array < geometry->arrays; array++)
			if (check_array(geometry, xcc, engine, array, buf, size) < 0)
				return -EINVAL;
	if (geometry->xccs > 1 && xcc_cus(geometry, xcc) == 0)
		return refuse(buf, size, -EINVAL, "XCC %u has no CU: there is no such GPU", xcc);
	return 0;
}

int geometry_check(const struct geometry *geometry, char *buf, size_t size)
{
	if (check_shape(geometry, buf, size) < 0)
		return -EINVAL;
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		if (check_xcc(geometry, xcc, buf, size) < 0)
			return -EINVAL;
	if (geometry_cus(geometry) == 0)
		return refuse(buf, size, -EINVAL, "no CU at all");
	return 0;
}

int geometry_spread(struct geometry *geometry, unsigned cus)
{
	unsigned n_arrays, each, left, step = geometry_step(geometry);

	if (check_shape(geometry, NULL, 0) < 0 || cus == 0 || cus % step != 0)
		return -EINVAL;

	n_arrays = geometry->xccs * geometry->engines * geometry->arrays;
	each = cus / step / n_arrays;
	left = cus / step % n_arrays;
	if ((each + (left > 0)) * step > geometry->array_cus)
		return -EINVAL;

	/* The remainder goes to the XCCs first, then to the engines, in the order of the mask bits. */
	memset(geometry->active, 0, sizeof(geometry->active));
	for (unsigned array = 0; array < geometry->arrays; array++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned xcc = 0; xcc < geometry->xccs; xcc++) {
				geometry->active[xcc][engine][array] =
					(uint8_t)((each + (left > 0)) * step);
				left -= left > 0;
			}
	return 0;
}

unsigned geometry_cus(const struct geometry *geometry)
{
	unsigned n = 0;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		n += xcc_cus(geometry, xcc);
	return n;
}

unsigned geometry_engine_cus(const struct geometry *geometry, unsigned xcc, unsigned engine)
{
	unsigned n = 0;

	for (unsigned array = 0; array < geometry->arrays; array++)
		n += geometry->active[xcc][engine][array];
	return n;
}

unsigned geometry_step(const struct geometry *geometry)
{
	return geometry->wgp ? 2 : 1;
}

void geometry_all(const struct geometry *geometry, struct cuset *ret)
{
	struct cuset all = { 0 };

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++) {
				unsigned cus = geometry->active[xcc][engine][array];

				all.pair[cuset_pair(xcc, engine)] |= ((UINT32_C(1) << cus) - 1)
								     << (array * CUSET_ARRAY_CUS);
			}
	*ret = all;
}

bool geometry_xcc_used(const struct geometry *geometry, const struct cuset *set, unsigned xcc)
{
	for (unsigned e = 0; e < geometry->engines; e++)
		if (set->pair[cuset_pair(xcc, e)])
			return true;
	return false;
}

bool geometry_on_every_xcc(const struct geometry *geometry, const struct cuset *set)
{
	for (unsigned x = 0; x < geometry->xccs; x++)
		if (!geometry_xcc_used(geometry, set, x))
			return false;
	return true;
}

void geometry_occupied(const struct geometry *geometry, const struct cuset *set, struct cuset *ret)
{
	struct cuset occupied = *set, all;

	if (!cuset_empty(set)) {
		geometry_all(geometry, &all);
		for (unsigned x = 0; x < geometry->xccs; x++)
			for (unsigned e = 0;
			     e < geometry->engines && !geometry_xcc_used(geometry, set, x); e++)
				occupied.pair[cuset_pair(x, e)] = all.pair[cuset_pair(x, e)];
	}
	*ret = occupied;
}

/* Engines in use x the least CUs of one. */
static unsigned xcc_effective(const struct geometry *geometry, const struct cuset *set,
			      unsigned xcc)
{
	unsigned used = 0, least = UINT_MAX;

	for (unsigned e = 0; e < geometry->engines; e++) {
		uint32_t word = set->pair[cuset_pair(xcc, e)];

		if (word == 0)
			continue;
		used++;
		least = min_u(least, cuset_count_word(word));
	}
	return used > 0 ? used * least : 0;
}

unsigned geometry_effective(const struct geometry *geometry, const struct cuset *set)
{
	unsigned least = UINT_MAX;
	struct cuset occupied;

	geometry_occupied(geometry, set, &occupied);
	for (unsigned x = 0; x < geometry->xccs; x++)
		least = min_u(least, xcc_effective(geometry, &occupied, x));
	return geometry->xccs * least;
}
