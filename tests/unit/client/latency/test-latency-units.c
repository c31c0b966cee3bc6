/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Units, the order of pairs, registers and statistics. */

#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "client/latency/unit.h"
#include "client/latency/matrix.h"
#include "lack.h"
#include "latency-model.h"

static struct units cut(const struct model *model, const uint32_t *mask, size_t words)
{
	struct units units;

	CHECK(units_init(model, mask, words, &units) == 0);
	return units;
}

static struct units cut_whole(const struct model *model)
{
	uint32_t mask[CODEC_WORDS];

	memset(mask, 0xff, sizeof(mask));
	return cut(model, mask, codec_words(&model->codec));
}

/* The CUs of all units' masks together, each once. */
static void check_disjoint(const struct model *model, const struct units *units, size_t cus)
{
	struct cuset all = { 0 }, set;
	char why[256];

	for (size_t i = 0; i < units->n; i++) {
		CHECK(codec_check(&model->codec, &model->geometry, units->list[i].mask,
				  units->words, why, sizeof(why)) == 0);
		codec_decode(&model->codec, units->list[i].mask, units->words, &set);
		CHECK(cuset_count(&set) == units->lanes * units->step);
		CHECK(!cuset_overlap(&all, &set));
		cuset_add(&all, &set);
	}
	CHECK(cuset_count(&all) == cus);
}

TEST(units_are_cus_sorted_by_shader_engine)
{
	struct model model = latency_gpu("radeon-vii");
	_cleanup_(units_done) struct units units = cut_whole(&model);
	char name[UNIT_NAME];

	CHECK(units.n == 60 && units.lanes == 1 && units.step == 1 && units.words == 2);
	for (size_t i = 0; i < units.n; i++) {
		CHECK(units.list[i].engine == i / 15);
		CHECK(units.list[i].lane[0].cu == i % 15);
	}
	unit_name(&model, &units, 16, name);
	CHECK(strcmp(name, "SE1:1") == 0);
	/* Bits are dealt to the four engines in turn: SE1's second is bit 5. */
	CHECK(units.list[16].mask[0] == 1U << 5 && units.list[16].mask[1] == 0);
	check_disjoint(&model, &units, 60);
}

TEST(units_are_wgps_on_gpus_with_wgps)
{
	struct model model = latency_gpu("rx6900xt");
	_cleanup_(units_done) struct units units = cut_whole(&model);
	char name[UNIT_NAME];

	CHECK(units.n == 40 && units.step == 2);
	unit_name(&model, &units, 16, name);
	CHECK(strcmp(name, "SE1.SH1:2-3") == 0);
	check_disjoint(&model, &units, 80);
}

TEST(a_unit_has_a_cu_on_every_xcc)
{
	struct model model = latency_gpu("mi300x-spx");
	_cleanup_(units_done) struct units units = cut_whole(&model);

	CHECK(units.n == 38 && units.lanes == 8);
	check_disjoint(&model, &units, 304);
	for (size_t i = 1; i < units.n; i++)
		CHECK(units.list[i].engine >= units.list[i - 1].engine);
}

TEST(xccs_that_were_harvested_differently_leave_units_in_several_shader_engines)
{
	const struct geometry geometry = { 2,  2,     1,
					   16, false, { { { 3 }, { 1 } }, { { 1 }, { 3 } } } };
	struct model model;
	struct units units;

	model_init(&model, &geometry);
	units = cut_whole(&model);

	CHECK(units.n == 4);
	CHECK(units.list[0].engine == 0 && units.list[1].engine == 1);
	CHECK(units.list[2].engine == UNIT_MIXED && units.list[3].engine == UNIT_MIXED);
	check_disjoint(&model, &units, 8);
	units_done(&units);
}

TEST(only_cus_of_the_mask_become_units)
{
	struct model model = latency_gpu("radeon-vii"), several = latency_gpu("mi300x-spx");
	const uint32_t three[] = { 0x7 }, one_xcc[] = { 0x1 }, none[] = { 0 };
	struct units units = cut(&model, three, 1), empty;

	CHECK(units.n == 3 && units.list[2].engine == 2);
	units_done(&units);
	CHECK(units_init(&model, none, 1, &empty) == -ENOENT);
	CHECK(units_init(&several, one_xcc, 1, &empty) == -ENOENT);
}

TEST(each_pair_is_played_once_and_consecutive_pairs_share_no_unit)
{
	enum { N = 38 };
	static bool seen[N][N];
	size_t last_a = N, last_b = N, together = 0;

	CHECK(pairs_count(N) == 741);
	for (size_t k = 0; k < pairs_count(N); k++) {
		size_t a, b;

		pairs_get(N, k, &a, &b);
		CHECK(a <= b && b < N && !seen[a][b]);
		seen[a][b] = true;
		together += a == last_a || a == last_b || b == last_a || b == last_b;
		last_a = a;
		last_b = b;
	}
	/* Pairs of neighbours overlap by necessity, and a few where one distance ends. */
	CHECK(together < 2 * N);
}

TEST(registers_of_each_generation_are_decoded)
{
	static const struct {
		const char *target;
		uint32_t hw_id, xcc_id;
		struct place place;
	} rows[] = {
		{ "gfx803", 0x3 << 13 | 0x1 << 12 | 0x7 << 8, 0, { 0, 3, 1, 7 } },
		{ "gfx906", 0xffff8000 | 0x2 << 13 | 0xe << 8 | 0xff, 0, { 0, 2, 0, 14 } },
		{ "gfx908", 0x7 << 13 | 0x3 << 8, 0, { 0, 7, 0, 3 } },
		{ "gfx90a", 0x5 << 13, 0, { 0, 5, 0, 0 } },
		{ "gfx942", 0x80000000 | 0x3 << 13 | 0x9 << 8, 0x107, { 7, 3, 0, 9 } },
		{ "gfx1030", 0x3 << 18 | 1 << 16 | 0x4 << 10 | 0x300, 0, { 0, 3, 1, 8 } },
		{ "gfx1030", 0x7 << 18, 0, { 0, 3, 0, 0 } },
		{ "gfx1100", 0x5 << 18 | 0x7 << 10, 0, { 0, 5, 0, 14 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct place place;

		hw_id_place(rows[i].target, rows[i].hw_id, rows[i].xcc_id, &place);
		CHECK(place_equal(&place, &rows[i].place));
	}
}

TEST(the_median_is_that_of_the_sorted_values)
{
	double odd[] = { 5, 1, 3 }, even[] = { 4, 1, 2, 3 };

	CHECK(statistic_median(odd, 3) == 3);
	CHECK(statistic_median(even, 4) == 2.5);
}

TEST(the_fence_is_five_scaled_median_distances_from_the_median)
{
	double values[] = { 90, 95, 100, 105, 110, 1000 }, equal[] = { 100, 100, 100, 100.5 };

	/* Distances from 102.5: 2.5 2.5 7.5 7.5 12.5 897.5. */
	CHECK(fabs(statistic_fence(values, 6) - 5 * 7.5 * 1.4826) < 1e-9);
	CHECK(statistic_fence(equal, 4) == 5);
}

static const struct model *scarce;

static int find_pairs(long allocations)
{
	_cleanup_(matrix_done) struct matrix matrix = { 0 };
	_cleanup_(units_done) struct units units = { 0 };
	uint32_t mask[CODEC_WORDS];
	int r;

	memset(mask, 0xff, sizeof(mask));
	lack_left = allocations;
	r = units_init(scarce, mask, codec_words(&scarce->codec), &units);
	CHECK(r == 0 || !units.list);
	if (r == 0)
		r = matrix_init(units.n, &matrix);
	CHECK(r == 0 || !matrix.ns);
	return r;
}

TEST(units_and_pairs_are_found_whole_or_not)
{
	struct model model = latency_gpu("radeon-vii");

	scarce = &model;
	CHECK(lack_each("units", find_pairs) >= 3);
}
