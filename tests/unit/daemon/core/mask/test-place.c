/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/place.h"

#include <errno.h>
#include <time.h>

#include "check.h"
#include "seed.h"

static struct geometry shape(unsigned xccs, unsigned engines, unsigned arrays, unsigned max,
			     bool wgp, unsigned cus)
{
	struct geometry g = {
		.xccs = xccs, .engines = engines, .arrays = arrays, .array_cus = max, .wgp = wgp
	};

	CHECK(geometry_spread(&g, cus) == 0);
	return g;
}

static struct cuset everything; /* of the GPU that was asked last */

static struct place_request ask(const struct geometry *g, unsigned aim)
{
	struct place_request request = {
		.aim = aim, .floor = aim * 9 / 10, .ceiling = aim, .limit = UINT32_MAX
	};

	if (request.floor == 0)
		request.floor = 1;
	geometry_all(g, &everything);
	request.all = &everything;
	request.avail = everything;
	request.preferred = request.avail;
	return request;
}

static unsigned granted(const struct geometry *g, const struct place_request *request)
{
	struct placement p;
	struct place_miss miss;

	if (place(g, request, &p, &miss) < 0)
		return 0;
	CHECK(cuset_count(&p.cus) == p.count);
	CHECK(cuset_within(&p.cus, &request->avail));
	CHECK(geometry_effective(g, &p.cus) == p.effective);
	return p.count;
}

TEST(radeon_vii_rounds_to_the_rectangles_of_the_paper)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	static const struct {
		unsigned asked, granted;
	} table[] = { { 31, 30 }, { 46, 45 }, { 17, 16 }, { 1, 1 },
		      { 15, 15 }, { 59, 56 }, { 60, 60 } };

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct place_request request = ask(&g, table[i].asked);

		CHECK(granted(&g, &request) == table[i].granted);
	}
}

TEST(an_aim_below_the_smallest_rectangle_is_rounded_up)
{
	struct geometry wgp = shape(1, 4, 2, 10, true, 80), spx = shape(8, 4, 1, 10, false, 304);
	struct place_request one = ask(&wgp, 1), eight = ask(&spx, 1);

	CHECK(granted(&wgp, &one) == 2);
	CHECK(granted(&spx, &eight) == 8);
	one.limit = 1;
	CHECK(granted(&wgp, &one) == 0);
}

TEST(exact_means_exact)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	struct place_request request = ask(&g, 31);
	struct placement p;
	struct place_miss miss = { 0 };

	request.exact = true;
	CHECK(place(&g, &request, &p, &miss) == -ENOSPC);
	CHECK(miss.below == 30 && miss.above == 32);
	request.aim = 30;
	CHECK(granted(&g, &request) == 30);
}

TEST(best_effort_takes_up_to_its_ceiling)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	struct place_request request = ask(&g, 1);

	request.ceiling = request.limit = 60;
	CHECK(granted(&g, &request) == 60);
	request.avail.pair[0] &= ~UINT32_C(1); /* one CU is gone: 56 is the best rectangle */
	request.preferred = request.avail;
	CHECK(granted(&g, &request) == 56);
}

TEST(the_whole_of_an_uneven_gpu_is_granted_as_all_its_cus)
{
	struct geometry g = shape(1, 8, 1, 14, false, 104);
	struct place_request request;

	g.active[0][4][0] = 12;
	g.active[0][0][0] = 14;
	request = ask(&g, 104);
	CHECK(granted(&g, &request) == 104);
	request = ask(&g, 103);
	CHECK(granted(&g, &request) == 96);
}

TEST(engines_can_be_counted_out)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	struct place_request request = ask(&g, 30);
	struct placement p;
	struct place_miss miss;

	for (unsigned n = 2; n <= 3; n++) {
		request.engines = n;
		CHECK(place(&g, &request, &p, &miss) == 0);
		CHECK((unsigned)__builtin_popcount(cuset_engines(&p.cus)) == n && p.count == 30);
	}
	request.engines = 1;
	CHECK(place(&g, &request, &p, &miss) == -ENOSPC && miss.below == 15);
	CHECK(place_engines_aim(&g, &everything, 2) == 30 &&
	      place_engines_aim(&g, &everything, 5) == 0);
}

TEST(realtime_takes_few_engines_and_the_same_on_every_xcc)
{
	struct geometry g = shape(8, 4, 1, 10, false, 304);
	struct place_request request = ask(&g, 72);
	struct placement p;
	struct place_miss miss;

	request.columns = request.few_engines = true;
	CHECK(place(&g, &request, &p, &miss) == 0);
	CHECK(p.count == 72 && __builtin_popcount(cuset_engines(&p.cus)) == 1);
	for (unsigned x = 0; x < 8; x++)
		CHECK(p.cus.pair[cuset_pair(x, (unsigned)__builtin_ctz(cuset_engines(&p.cus)))]);
}

TEST(broken_engines_are_used_before_whole_ones)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	struct place_request request = ask(&g, 10);
	struct placement p;
	struct place_miss miss;

	request.avail.pair[2] &= ~UINT32_C(0x1f); /* ten are left there */
	request.preferred = request.avail;
	CHECK(place(&g, &request, &p, &miss) == 0);
	CHECK(p.count == 10 && cuset_engines(&p.cus) == 4);
}

TEST(any_shape_takes_what_is_there_level_and_on_every_xcc)
{
	struct geometry g = shape(2, 4, 1, 10, false, 80);
	struct place_request request = ask(&g, 31);
	struct placement p;
	struct place_miss miss;

	request.any_shape = true;
	CHECK(place(&g, &request, &p, &miss) == 0);
	CHECK(p.count == 31 && p.effective >= 24);
	request = ask(&g, 1);
	request.any_shape = true;
	CHECK(granted(&g, &request) == 2); /* one on each XCC */
	memset(&request.avail, 0, sizeof(request.avail));
	CHECK(place(&g, &request, &p, &miss) == -ENOSPC);
}

TEST(both_shader_arrays_are_filled_alike)
{
	struct geometry g = shape(1, 4, 2, 10, true, 80);
	struct place_request request = ask(&g, 12);
	struct placement p;
	struct place_miss miss;

	request.engines = 1;
	CHECK(place(&g, &request, &p, &miss) == 0 && p.count == 12);
	for (unsigned e = 0; e < 4; e++)
		CHECK(__builtin_popcount(p.cus.pair[e] & 0xffff) ==
		      __builtin_popcount(p.cus.pair[e] >> 16));
}

TEST(cus_without_shared_leases_are_preferred)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	struct place_request request = ask(&g, 20);
	struct placement p;
	struct place_miss miss;

	/* Five preferred CUs in each engine. */
	for (unsigned e = 0; e < 4; e++)
		request.preferred.pair[e] &= ~UINT32_C(0x3ff);
	request.engines = 4;
	CHECK(place(&g, &request, &p, &miss) == 0);
	CHECK(cuset_within(&p.cus, &request.preferred));
}

TEST(other_classes_use_engines_closed_to_realtime)
{
	struct geometry g = shape(1, 4, 1, 16, false, 60);
	struct place_request request = ask(&g, 10);
	struct placement p;
	struct place_miss miss;

	request.closed = 1U << 2;
	CHECK(place(&g, &request, &p, &miss) == 0);
	CHECK(p.count == 10 && cuset_engines(&p.cus) == 1U << 2);
}

/* Twice the largest rectangle that is left, and the largest on engines that are open. */
static unsigned left_over(unsigned engines, const unsigned *left, uint32_t closed)
{
	unsigned largest = 0, open = 0;

	for (unsigned k = 1; k <= 16; k++) {
		unsigned all = 0, of_open = 0;

		for (unsigned e = 0; e < engines; e++) {
			all += left[e] >= k;
			of_open += left[e] >= k && !(closed >> e & 1);
		}
		largest = all * k > largest ? all * k : largest;
		open = of_open * k > open ? of_open * k : open;
	}
	return 2 * largest + open;
}

/* The most that any choice of engines leaves, for so many CUs. */
static unsigned best_left_over(unsigned engines, const unsigned *free, unsigned cus,
			       uint32_t closed)
{
	unsigned best = 0;

	for (uint32_t set = 1; set < 1U << engines; set++) {
		unsigned m = (unsigned)__builtin_popcount(set), left[CUSET_ENGINES], value;
		bool fits = cus % m == 0;

		for (unsigned e = 0; e < engines; e++) {
			unsigned k = set >> e & 1 ? cus / m : 0;

			fits &= free[e] >= k;
			left[e] = free[e] - k;
		}
		value = fits ? left_over(engines, left, closed) : 0;
		best = value > best ? value : best;
	}
	return best;
}

TEST(placement_leaves_the_most_for_later_requests)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	for (unsigned round = 0; round < 5000; round++) {
		struct geometry g = shape(1, 1 + (unsigned)rand_r(&seed) % 8, 1, 16, false, 1);
		struct place_request request = { .all = &everything, .floor = 1 };
		unsigned free[CUSET_ENGINES], left[CUSET_ENGINES];
		struct place_miss miss;
		struct placement p;

		for (unsigned e = 0; e < g.engines; e++) {
			g.active[0][e][0] = 16;
			free[e] = (unsigned)rand_r(&seed) % 16;
			request.avail.pair[e] = (UINT32_C(1) << free[e]) - 1;
		}
		geometry_all(&g, &everything);
		request.preferred = request.avail;
		request.aim = request.ceiling = request.limit = 1 + (unsigned)rand_r(&seed) % 60;
		request.closed = (uint32_t)rand_r(&seed) % 256 & (uint32_t)rand_r(&seed);
		if (place(&g, &request, &p, &miss) < 0)
			continue;
		for (unsigned e = 0; e < g.engines; e++)
			left[e] = free[e] - (unsigned)__builtin_popcount(p.cus.pair[e]);
		CHECK(left_over(g.engines, left, request.closed) ==
		      best_left_over(g.engines, free, p.count, request.closed));
	}
}

/* Whatever is free: the largest rectangle that place() finds is the largest there is,
 * found here by trying every one. */
TEST(no_rectangle_that_is_there_is_missed)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	for (unsigned round = 0; round < 20000; round++) {
		struct geometry g = shape(1, 1 + (unsigned)rand_r(&seed) % 8, 1, 16, false, 1);
		struct place_request request = { .all = &everything };
		unsigned aim = 1 + (unsigned)rand_r(&seed) % 60, best = 0;

		for (unsigned e = 0; e < g.engines; e++) {
			g.active[0][e][0] = (uint8_t)(rand_r(&seed) % 17);
			request.avail.pair[e] = (uint32_t)rand_r(&seed) &
						((UINT32_C(1) << g.active[0][e][0]) - 1);
		}
		geometry_all(&g, &everything);
		request.preferred = request.avail;
		request.aim = request.ceiling = request.limit = aim;
		request.floor = 1;
		for (unsigned k = 1; k <= 16; k++)
			for (unsigned m = 1; m <= g.engines; m++) {
				unsigned enough = 0;

				for (unsigned e = 0; e < g.engines; e++)
					enough += (unsigned)__builtin_popcount(
							  request.avail.pair[e]) >= k;
				if (enough >= m && m * k <= aim && m * k > best)
					best = m * k;
			}
		/* An untouched GPU may be had as a whole, rectangle or not. */
		if (aim >= geometry_cus(&g) && cuset_count(&request.avail) == geometry_cus(&g))
			best = geometry_cus(&g);
		CHECK(granted(&g, &request) == best);
	}
}
