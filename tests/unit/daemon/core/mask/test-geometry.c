/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/geometry.h"

#include <errno.h>

#include "check.h"

static struct geometry shape(unsigned xccs, unsigned engines, unsigned arrays, unsigned array_cus)
{
	return (struct geometry){
		.xccs = xccs,
		.engines = engines,
		.arrays = arrays,
		.array_cus = array_cus,
	};
}

static struct geometry radeon_vii(void)
{
	struct geometry geometry = shape(1, 4, 1, 16);

	CHECK(geometry_spread(&geometry, 60) == 0);
	return geometry;
}

/* Whether the geometry is refused with a sentence that has these words. */
static bool refused(const struct geometry *geometry, const char *words)
{
	char why[200] = "";

	if (geometry_check(geometry, why, sizeof(why)) != -EINVAL)
		return false;
	if (strstr(why, words))
		return true;
	fprintf(stderr, "it says: %s\n", why);
	return false;
}

TEST(cus_spread_evenly_over_engines)
{
	struct geometry geometry = radeon_vii();

	for (unsigned engine = 0; engine < 4; engine++)
		CHECK(geometry_engine_cus(&geometry, 0, engine) == 15);
	CHECK(geometry_cus(&geometry) == 60);
	CHECK(geometry_check(&geometry, NULL, 0) == 0);
}

TEST(each_xcc_gets_its_share_before_any_engine_gets_more)
{
	struct geometry geometry = shape(8, 4, 1, 10);

	CHECK(geometry_spread(&geometry, 304) == 0);
	for (unsigned xcc = 0; xcc < 8; xcc++) {
		CHECK(geometry_engine_cus(&geometry, xcc, 0) == 10);
		CHECK(geometry_engine_cus(&geometry, xcc, 1) == 10);
		CHECK(geometry_engine_cus(&geometry, xcc, 2) == 9);
		CHECK(geometry_engine_cus(&geometry, xcc, 3) == 9);
	}
}

TEST(wgps_are_spread_whole_and_each_engine_has_as_many)
{
	struct geometry geometry = shape(1, 4, 2, 10);

	geometry.wgp = true;
	CHECK(geometry_spread(&geometry, 72) == 0);
	for (unsigned engine = 0; engine < 4; engine++) {
		CHECK(geometry.active[0][engine][0] == 10);
		CHECK(geometry.active[0][engine][1] == 8);
	}
	CHECK(geometry_step(&geometry) == 2);
}

TEST(any_number_that_fits_is_spread_to_the_last_cu)
{
	struct geometry geometry = shape(2, 3, 2, 7);

	for (unsigned cus = 1; cus <= 2 * 3 * 2 * 7; cus++) {
		CHECK(geometry_spread(&geometry, cus) == 0);
		CHECK(geometry_cus(&geometry) == cus);
	}
}

TEST(cus_that_do_not_fit_are_not_spread)
{
	static const unsigned wrong[] = { 0, 65, 1000, UINT32_MAX };
	struct geometry geometry = radeon_vii(), before = geometry;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(geometry_spread(&geometry, wrong[i]) == -EINVAL);
		CHECK(memcmp(&geometry, &before, sizeof(geometry)) == 0);
	}
	geometry.wgp = true;
	CHECK(geometry_spread(&geometry, 59) == -EINVAL);
	geometry.engines = 9;
	CHECK(geometry_spread(&geometry, 60) == -EINVAL);
}

TEST(half_a_wgp_of_room_holds_no_wgp)
{
	struct geometry geometry = shape(1, 1, 1, 7);

	geometry.wgp = true;
	CHECK(geometry_spread(&geometry, 8) == -EINVAL);
	CHECK(geometry_spread(&geometry, 6) == 0);
}

TEST(counts_out_of_range_are_refused_by_name)
{
	struct geometry none = shape(0, 4, 1, 16), nine = shape(9, 4, 1, 16);
	struct geometry engines = shape(1, 9, 1, 16), arrays = shape(1, 4, 3, 16);
	struct geometry cus = shape(1, 4, 1, 17);

	CHECK(refused(&none, "0 XCCs: 1 to 8"));
	CHECK(refused(&nine, "9 XCCs"));
	CHECK(refused(&engines, "XCC: 1 to 8"));
	CHECK(refused(&arrays, "1 to 2"));
	CHECK(refused(&cus, "17 CUs"));
}

TEST(a_harvest_map_that_cannot_be_is_refused_with_its_place)
{
	struct geometry over = radeon_vii(), odd = radeon_vii(), empty = shape(1, 4, 1, 16);
	struct geometry bare = shape(2, 4, 1, 16), both = shape(2, 4, 1, 16);

	over.active[0][2][0] = 17;
	CHECK(refused(&over, "17 CUs in XCC 0"));
	odd.wgp = true;
	CHECK(refused(&odd, "engine 0, array 0: CUs of this GPU"));
	CHECK(refused(&empty, "CU"));
	bare.active[0][0][0] = 16;
	CHECK(refused(&bare, "XCC 1 has no CU"));
	CHECK(geometry_spread(&both, 100) == 0);
	both.wgp = true;
	CHECK(refused(&both, "2 XCCs"));
}

TEST(an_engine_without_a_cu_is_fine)
{
	struct geometry geometry = radeon_vii();

	geometry.active[0][1][0] = 0;
	CHECK(geometry_check(&geometry, NULL, 0) == 0);
	CHECK(geometry_cus(&geometry) == 45);
}

TEST(all_cus_are_packed_at_the_bottom_of_their_arrays)
{
	struct geometry geometry = shape(1, 2, 2, 10);
	struct cuset all;

	geometry.active[0][0][0] = 10;
	geometry.active[0][0][1] = 8;
	geometry.active[0][1][1] = 3;
	geometry_all(&geometry, &all);
	CHECK(all.pair[cuset_pair(0, 0)] == 0x00ff03ff);
	CHECK(all.pair[cuset_pair(0, 1)] == 0x00070000);
	CHECK(cuset_count(&all) == geometry_cus(&geometry));
}

TEST(the_largest_geometry_fills_a_set)
{
	struct geometry geometry = shape(8, 8, 2, 16);
	struct cuset all;

	CHECK(geometry_spread(&geometry, 2048) == 0);
	geometry_all(&geometry, &all);
	CHECK(cuset_count(&all) == 2048);
	CHECK(geometry_effective(&geometry, &all) == 2048);
}

TEST(the_thinnest_engine_sets_the_effective_cus)
{
	struct geometry geometry = radeon_vii();
	struct cuset set = { 0 };

	CHECK(geometry_effective(&geometry, &set) == 0);
	set.pair[0] = 0x7fff;
	CHECK(geometry_effective(&geometry, &set) == 15);
	set.pair[1] = 0x1; /* one more CU opens an engine: RTNS 2021 measured 7 times slower */
	CHECK(geometry_effective(&geometry, &set) == 2);
	set.pair[1] = 0x7fff;
	CHECK(geometry_effective(&geometry, &set) == 30);
}

TEST(effective_cus_count_xccs_as_engines_of_their_own)
{
	struct geometry geometry = shape(2, 2, 1, 10);
	struct cuset set = { 0 };

	CHECK(geometry_spread(&geometry, 40) == 0);
	set.pair[cuset_pair(0, 0)] = 0xf;
	set.pair[cuset_pair(1, 0)] = 0x7;
	CHECK(geometry_effective(&geometry, &set) == 6);
	CHECK(cuset_engines(&set) == 1);
}

TEST(effective_cus_count_both_arrays_of_an_engine)
{
	struct geometry geometry = shape(1, 2, 2, 10);
	struct cuset set = { 0 };

	CHECK(geometry_spread(&geometry, 40) == 0);
	set.pair[0] = 0x00030003;
	set.pair[1] = 0x0000000f;
	CHECK(geometry_effective(&geometry, &set) == 8);
}
