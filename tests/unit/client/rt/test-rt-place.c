/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The placement of rt plan, compared with the best possible one. */

#include "check.h"
#include "core/ledger/gpu.h"
#include "random-geometry.h"
#include "rt-rig.h"
#include "seed.h"

static struct gpu_info gpu_of(const struct geometry *geometry)
{
	struct gpu_info gpu = radeon_vii("g");

	gpu.geometry = *geometry;
	gpu.queue_slots = 256;
	gpu.process_slots = 64;
	gpu.pipes = 64; /* one for each partition, so that a plan is not conditional */
	return gpu;
}

static struct gpu_info vega(void)
{
	struct gpu_info gpu = radeon_vii("g");

	gpu.pipes = 64;
	return gpu;
}

static unsigned engines_of(const struct rt_plan *plan, size_t i)
{
	return (unsigned)__builtin_popcount(plan->layout.places[i].engines);
}

/* ---- placement ---------------------------------------------------------------------------- */

TEST(a_partition_gets_the_fewest_whole_shader_engines)
{
	struct gpu_info gpu = vega();
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 15);
	rt_rig_needs(&rig, 16);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

	CHECK(plan->result == RT_ACCEPTED && plan->layout.any_order);
	CHECK(plan->layout.places[0].cus == 15 && engines_of(plan, 0) == 1);
	CHECK(plan->layout.places[1].cus == 30 && engines_of(plan, 1) == 2);
	CHECK(!(plan->layout.places[0].engines & plan->layout.places[1].engines));
	CHECK(plan->partitions[1].least == 16 && plan->partitions[1].effective == 30);
}

TEST(isolation_cu_takes_the_fewest_cus_and_shares_engines)
{
	struct gpu_info gpu = vega();
	struct rt_rig rig = RT_RIG_INIT(rig);

	for (unsigned i = 0; i < 5; i++)
		rt_rig_needs(&rig, 7)->isolation = ISOLATION_CU;
	rt_rig_needs(&rig, 17)->isolation = ISOLATION_CU;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

	CHECK(plan->result == RT_ACCEPTED);
	CHECK(plan->layout.places[0].cus == 7);
	CHECK(plan->layout.places[5].cus == 18); /* no rectangle has 17 */
	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(!cuset_overlap(&plan->layout.places[i].set,
					     &plan->layout.places[j].set));
}

TEST(isolation_cu_spreads_over_engines_where_the_fewest_cus_do_not_fit)
{
	struct gpu_info gpu = vega();
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 17)->isolation = ISOLATION_CU;
	rt_rig_needs(&rig, 38)->isolation = ISOLATION_CU;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

	CHECK(plan->result == RT_ACCEPTED);
	CHECK(plan->layout.places[0].cus == 20 && engines_of(plan, 0) == 4);
	CHECK(plan->layout.places[1].cus == 40 && engines_of(plan, 1) == 4);
	CHECK(!cuset_overlap(&plan->layout.places[0].set, &plan->layout.places[1].set));
}

TEST(a_small_partition_gets_the_shader_engine_with_fewer_cus)
{
	struct geometry g = { .xccs = 1,
			      .engines = 4,
			      .arrays = 1,
			      .array_cus = 16,
			      .active = { { { 16 }, { 12 }, { 16 }, { 10 } } } };
	struct gpu_info gpu = gpu_of(&g);
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 10);
	rt_rig_needs(&rig, 11);
	rt_rig_needs(&rig, 16);
	rt_rig_needs(&rig, 13);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

	CHECK(plan->result == RT_ACCEPTED);
	CHECK(plan->layout.places[0].engines == 1 << 3);
	CHECK(plan->layout.places[1].engines == 1 << 1);
}

TEST(an_uneven_gpu_counts_its_effective_cus)
{
	struct geometry g = { .xccs = 1,
			      .engines = 4,
			      .arrays = 1,
			      .array_cus = 10,
			      .active = { { { 10 }, { 10 }, { 9 }, { 9 } } } };
	struct gpu_info gpu = gpu_of(&g);

	for (unsigned cus = 36; cus <= 38; cus++) {
		struct rt_rig rig = RT_RIG_INIT(rig);

		rt_rig_needs(&rig, cus)->isolation = cus % 2 ? ISOLATION_CU
							     : ISOLATION_SHADER_ENGINE;
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

		CHECK((plan->result == RT_ACCEPTED) == (cus == 36));
		CHECK(cus > 36 || plan->layout.places[0].effective == 36);
	}
}

TEST(wgps_and_xccs_are_not_split)
{
	struct geometry wgp = { .xccs = 1,
				.engines = 2,
				.arrays = 2,
				.array_cus = 10,
				.wgp = true,
				.active = { { { 10, 10 }, { 10, 10 } } } };
	struct geometry xcc = { .xccs = 4, .engines = 4, .arrays = 1, .array_cus = 10 };
	struct gpu_info gpu = gpu_of(&wgp);
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 5)->isolation = ISOLATION_CU;
	_cleanup_(rt_plan_freep) struct rt_plan *pairs = rt_rig_plan_on(&rig, &gpu);
	CHECK(pairs->layout.places[0].cus == 6);

	CHECK(geometry_spread(&xcc, 160) == 0);
	gpu = gpu_of(&xcc);
	rig = (struct rt_rig)RT_RIG_INIT(rig);
	rt_rig_needs(&rig, 41);
	_cleanup_(rt_plan_freep) struct rt_plan *dies = rt_rig_plan_on(&rig, &gpu);
	CHECK(dies->layout.places[0].cus == 80 && engines_of(dies, 0) == 2);
}

TEST(a_set_that_does_not_fit_names_the_partition_and_advice)
{
	struct gpu_info gpu = vega();
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 20);
	rt_rig_needs(&rig, 20);
	rt_rig_needs(&rig, 4);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

	CHECK(plan->result == RT_REJECTED && plan->layout.n == 0);
	CHECK(strstr(plan->reason, "p2: shader-engines"));
	CHECK(strstr(plan->reason, "isolation = cu"));
	rt_rig_needs(&rig, 40);
	_cleanup_(rt_plan_freep) struct rt_plan *more = rt_rig_plan_on(&rig, &gpu);
	CHECK(strstr(more->reason, "engines"));
}

TEST(queue_and_process_slots_limit_a_set)
{
	struct gpu_info gpu = vega();
	struct rt_rig rig = RT_RIG_INIT(rig);

	rt_rig_needs(&rig, 1)->queues = 20;
	rt_rig_needs(&rig, 1)->queues = 5;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);
	CHECK(plan->result == RT_REJECTED && strstr(plan->reason, "queues: 5 asked, 4 of 24 free"));
	CHECK(strstr(plan->reason, "="));

	rig = (struct rt_rig)RT_RIG_INIT(rig);
	rt_rig_needs(&rig, 1)->processes = 9;
	_cleanup_(rt_plan_freep) struct rt_plan *crowd = rt_rig_plan_on(&rig, &gpu);
	CHECK(crowd->result == RT_REJECTED && strstr(crowd->reason, "processes: 9 asked"));
}

TEST(alone_keeps_others_out_of_shared_engines)
{
	struct gpu_info gpu = vega();
	struct rt_rig rig = RT_RIG_INIT(rig);

	for (unsigned i = 0; i < 5; i++) {
		struct rt_partition *partition = rt_rig_needs(&rig, 5);

		partition->isolation = ISOLATION_CU;
		partition->alone = i < 4;
	}
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);
	CHECK(plan->result == RT_REJECTED);
	rig.set.partitions[3].alone = false;
	_cleanup_(rt_plan_freep) struct rt_plan *fewer = rt_rig_plan_on(&rig, &gpu);
	CHECK(fewer->result == RT_ACCEPTED);
}

/* ---- compared with all placements ---------------------------------------------------------- */

/* CUs of these engines as one rectangle, of those that a mask can reach. */
static unsigned rectangle(const struct gpu *gpu, uint32_t engines)
{
	const struct geometry *g = &gpu->info.geometry;
	unsigned least = UINT32_MAX;

	for (unsigned e = 0; e < g->engines; e++)
		for (unsigned x = 0; x < g->xccs && (engines >> e & 1); x++)
			least = min_u(least, cuset_count_word(gpu->all.pair[cuset_pair(x, e)]));
	return engines ? least * (unsigned)__builtin_popcount(engines) * g->xccs : 0;
}

/* The fewest engines with enough CUs for each partition from i on; 99: there is no way. */
static unsigned fewest(const struct gpu *g, const unsigned *least, size_t n, uint32_t free)
{
	unsigned best = 99;

	if (n == 0)
		return 0;
	for (uint32_t own = free; own; own = (own - 1) & free) {
		unsigned rest;

		if (rectangle(g, own) < least[0])
			continue;
		rest = fewest(g, least + 1, n - 1, free & ~own);
		best = min_u(best, rest + (unsigned)__builtin_popcount(own));
	}
	return best;
}

struct tally {
	unsigned fit, refused, missed, wider;
};

static void fit_random(struct tally *tally)
{
	struct geometry g = random_geometry();
	struct gpu_info gpu = gpu_of(&g);
	unsigned least[4] = { 0 }, n = 1 + below(4), best, used = 0, whole = geometry_cus(&g);
	struct gpu empty;
	uint32_t taken = 0;
	struct rt_rig rig = RT_RIG_INIT(rig);

	for (unsigned i = 0; i < n; i++) {
		least[i] = 1 + below(1 + whole * 3 / (2 * n));
		rt_rig_needs(&rig, least[i]);
	}
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);
	gpu_init(&empty, &gpu, 0);
	best = fewest(&empty, least, n, (UINT32_C(1) << g.engines) - 1);
	if (plan->result == RT_REJECTED) {
		tally->refused++;
		tally->missed += best < 99;
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		const struct rt_place *place = &plan->layout.places[i];

		CHECK(place->effective >= least[i] && !(place->engines & taken));
		CHECK(geometry_effective(&g, &place->set) == place->effective);
		taken |= place->engines;
		used += engines_of(plan, i);
	}
	CHECK(used >= best);
	tally->fit++;
	tally->wider += used > best;
}

TEST(the_placement_is_optimal_in_shader_engines)
{
	unsigned seed = SEED_OF_RUN("SEED"), sets = check_rounds(250, 6000);
	struct tally tally = { 0 };

	seed_rand(seed);
	for (unsigned i = 0; i < sets; i++)
		fit_random(&tally);
	printf("%u fit, %u of them on more engines than need be; %u refused, %u of them for want of "
	       "an order in which the daemon places them\n",
	       tally.fit, tally.wider, tally.refused, tally.missed);
	CHECK_REACHED(tally.fit > sets / 8 && tally.refused > sets / 8);
	/* The daemon places one lease after the other, and no order may do. */
	CHECK_REACHED(tally.missed * 50 <= tally.fit && tally.wider * 50 <= tally.fit);
}
