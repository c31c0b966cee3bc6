/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which CUs rt plan finds, what it proves of them, and what it says where it cannot. */

#include <errno.h>
#include <time.h>

#include "check.h"
#include "random-geometry.h"
#include "rt-rig.h"

/* A partition with one task that needs `cus` CUs: on fewer nothing is known of it. */
static struct rt_partition *needs(struct rt_rig *rig, unsigned cus)
{
	struct rt_partition *partition;
	char name[16];

	snprintf(name, sizeof(name), "p%zu", rig->set.n_partitions);
	partition = rt_rig_partition(rig, name);
	rt_rig_task(rig, 1000, 1000, cus, 500);
	return partition;
}

static struct gpu_info gpu_of(const struct geometry *geometry)
{
	struct gpu_info gpu = radeon_vii("g");

	gpu.geometry = *geometry;
	gpu.queue_slots = 256;
	gpu.process_slots = 64;
	return gpu;
}

static unsigned engines_of(const struct rt_plan *plan, size_t i)
{
	return (unsigned)__builtin_popcount(plan->layout.places[i].engines);
}

/* ---- where -------------------------------------------------------------------------------- */

TEST(whole_shader_engines_as_few_as_pass)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 15);
	needs(&rig, 16);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);

	CHECK(plan->verdict == RT_ACCEPTED && plan->layout.any_order);
	CHECK(plan->layout.places[0].cus == 15 && engines_of(plan, 0) == 1);
	CHECK(plan->layout.places[1].cus == 30 && engines_of(plan, 1) == 2);
	CHECK(!(plan->layout.places[0].engines & plan->layout.places[1].engines));
	CHECK(plan->partitions[1].least == 16 && plan->partitions[1].effective == 30);
}

TEST(isolation_cu_takes_the_fewest_cus_and_shares_engines)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	for (unsigned i = 0; i < 5; i++)
		needs(&rig, 7)->isolation = ISOLATION_CU;
	needs(&rig, 17)->isolation = ISOLATION_CU;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);

	CHECK(plan->verdict == RT_ACCEPTED);
	CHECK(plan->layout.places[0].cus == 7);
	CHECK(plan->layout.places[5].cus == 18); /* no rectangle has 17 */
	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(!cuset_overlap(&plan->layout.places[i].set,
					     &plan->layout.places[j].set));
}

TEST(an_uneven_harvest_gives_the_small_engine_to_who_needs_little)
{
	struct geometry g = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16,
			      .active = { { { 16 }, { 12 }, { 16 }, { 10 } } } };
	struct gpu_info gpu = gpu_of(&g);
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 10);
	needs(&rig, 11);
	needs(&rig, 16);
	needs(&rig, 13);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);

	CHECK(plan->verdict == RT_ACCEPTED);
	CHECK(plan->layout.places[0].engines == 1 << 3);
	CHECK(plan->layout.places[1].engines == 1 << 1);
}

TEST(an_uneven_gpu_as_a_whole_is_no_more_than_its_effective_cus)
{
	struct geometry g = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 10,
			      .active = { { { 10 }, { 10 }, { 9 }, { 9 } } } };
	struct gpu_info gpu = gpu_of(&g);

	for (unsigned cus = 36; cus <= 38; cus++) {
		struct rt_rig rig;

		rt_rig_init(&rig);
		needs(&rig, cus)->isolation = cus % 2 ? ISOLATION_CU : ISOLATION_SHADER_ENGINE;
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);

		CHECK((plan->verdict == RT_ACCEPTED) == (cus == 36));
		CHECK(cus > 36 || plan->layout.places[0].effective == 36);
	}
}

TEST(wgps_and_xccs_count_whole)
{
	struct geometry wgp = { .xccs = 1, .engines = 2, .arrays = 2, .array_cus = 10, .wgp = true,
				.active = { { { 10, 10 }, { 10, 10 } } } };
	struct geometry xcc = { .xccs = 4, .engines = 4, .arrays = 1, .array_cus = 10 };
	struct gpu_info gpu = gpu_of(&wgp);
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 5)->isolation = ISOLATION_CU;
	_cleanup_(rt_plan_freep) struct rt_plan *pairs = rt_rig_plan(&rig, &gpu);
	CHECK(pairs->layout.places[0].cus == 6);

	CHECK(geometry_spread(&xcc, 160) == 0);
	gpu = gpu_of(&xcc);
	rt_rig_init(&rig);
	needs(&rig, 41);
	_cleanup_(rt_plan_freep) struct rt_plan *dies = rt_rig_plan(&rig, &gpu);
	CHECK(dies->layout.places[0].cus == 80 && engines_of(dies, 0) == 2);
}

TEST(what_does_not_fit_side_by_side_says_which_and_what_would_do)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 20);
	needs(&rig, 20);
	needs(&rig, 4);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);

	CHECK(plan->verdict == RT_REJECTED && plan->layout.n == 0);
	CHECK(strstr(plan->reason, "do not fit side by side: p2: shader-engines"));
	CHECK(strstr(plan->reason, "isolation = cu"));
	needs(&rig, 40);
	_cleanup_(rt_plan_freep) struct rt_plan *more = rt_rig_plan(&rig, &gpu);
	CHECK(strstr(more->reason, "more shader engines"));
}

TEST(queue_slots_and_process_slots_count)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 1)->queues = 20;
	needs(&rig, 1)->queues = 5;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);
	CHECK(plan->verdict == RT_REJECTED && strstr(plan->reason, "queues: 5 asked, 4 left"));

	rt_rig_init(&rig);
	needs(&rig, 1)->processes = 9;
	_cleanup_(rt_plan_freep) struct rt_plan *crowd = rt_rig_plan(&rig, &gpu);
	CHECK(crowd->verdict == RT_REJECTED && strstr(crowd->reason, "processes: 9 asked"));
}

TEST(alone_keeps_others_out_of_shared_engines)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	for (unsigned i = 0; i < 5; i++) {
		struct rt_partition *partition = needs(&rig, 5);

		partition->isolation = ISOLATION_CU;
		partition->alone = i < 4;
	}
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);
	CHECK(plan->verdict == RT_REJECTED);
	rig.partitions[3].alone = false;
	_cleanup_(rt_plan_freep) struct rt_plan *fewer = rt_rig_plan(&rig, &gpu);
	CHECK(fewer->verdict == RT_ACCEPTED);
}

/* ---- against every way to give engines away ------------------------------------------------ */

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

/* The fewest engines that give each partition from i on what it needs; 99: they cannot. */
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
	unsigned least[4], n = 1 + below(4), best, used = 0, whole = geometry_cus(&g);
	struct gpu empty;
	uint32_t taken = 0;
	struct rt_rig rig;

	rt_rig_init(&rig);
	for (unsigned i = 0; i < n; i++) {
		least[i] = 1 + below(1 + whole * 3 / (2 * n));
		needs(&rig, least[i]);
	}
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);
	gpu_init(&empty, &gpu, 0);
	best = fewest(&empty, least, n, (UINT32_C(1) << g.engines) - 1);
	if (plan->verdict == RT_REJECTED) {
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

TEST(partitions_fit_where_there_is_a_way_and_take_no_engine_too_many)
{
	unsigned seed = (unsigned)time(NULL);
	struct tally tally = {0};

	printf("seed %u\n", seed);
	srand48((long)seed);
	for (unsigned i = 0; i < 1500; i++)
		fit_random(&tally);
	printf("%u fit, %u of them on more engines than need be; %u refused, %u of them for want of "
	       "an order in which the daemon places them\n", tally.fit, tally.wider, tally.refused,
	       tally.missed);
	CHECK(tally.fit > 200 && tally.refused > 200);
	/* The daemon places one lease after the other, and no order may do. */
	CHECK(tally.missed * 50 <= tally.fit && tally.wider * 50 <= tally.fit);
}

/* ---- how much ----------------------------------------------------------------------------- */

TEST(the_fewest_cus_and_the_growth_are_exact)
{
	unsigned seed = (unsigned)time(NULL), judged = 0;
	struct gpu_info gpu = radeon_vii("g");

	printf("seed %u\n", seed);
	srand48((long)seed);
	for (unsigned i = 0; i < 400; i++) {
		struct rt_rig rig;

		rt_rig_init(&rig);
		rig.set.margin_percent = below(100);
		rig.set.borrowers = below(2);
		rig.set.preemption = below(50);
		rig.set.activate_min_interval = 1000 + below(5000);
		rt_rig_partition(&rig, "p")->isolation = ISOLATION_CU;
		for (unsigned t = 0, n = 1 + below(4); t < n; t++) {
			struct rt_task *task = rt_rig_task(&rig, 40000, 20000 + below(20000),
							   1 + below(8), 1000 + below(20000));

			task->points[1].cus = 20 + below(40);
			task->points[1].usec = 1 + below((unsigned)task->points[0].usec);
			task->n_points = 2;
		}
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);
		const struct rt_partition_plan *p = &plan->partitions[0];
		uint64_t allowed = rt_plan_allowed(&rig.set, 0);

		if (plan->verdict != RT_ACCEPTED)
			continue;
		judged++;
		for (size_t t = 0; t < rig.set.n_tasks; t++) {
			uint64_t growth = plan->tasks[t].growth;

			CHECK(bound_response(&p->bound, p->work + growth) <= allowed);
			CHECK(bound_response(&p->bound, p->work + growth + 1) > allowed);
		}
		for (unsigned cus = 1; cus <= 60; cus++) {
			uint64_t work = 0;
			bool known = true;

			for (size_t t = 0; t < rig.set.n_tasks; t++) {
				enum rt_source source;
				uint64_t wcet = rt_wcet(&rig.set.tasks[t], cus, true, &source);

				known &= wcet != RT_UNSET;
				work += known ? wcet : 0;
			}
			CHECK((known && bound_response(&p->bound, work) <= allowed) ==
			      (cus >= p->least));
		}
	}
	printf("%u judged\n", judged);
	CHECK(judged > 50);
}

/* ---- what a verdict rests on -------------------------------------------------------------- */

TEST(what_nobody_has_stated_makes_it_conditional)
{
	struct gpu_info gpu = radeon_vii("g"), mes = gpu;
	struct rt_rig rig;

	mes.scheduler = SCHEDULER_MES;
	rt_rig_init(&rig);
	needs(&rig, 15);
	_cleanup_(rt_plan_freep) struct rt_plan *all = rt_rig_plan(&rig, &gpu);
	CHECK(all->verdict == RT_ACCEPTED && all->n_conditions == 0 && all->n_assumptions > 3);

	rig.set.capped = false;
	_cleanup_(rt_plan_freep) struct rt_plan *capped = rt_rig_plan(&rig, &gpu);
	CHECK(capped->verdict == RT_CONDITIONAL && strstr(capped->conditions[0], "capped"));
	rig.set.capped = true;
	rig.set.no_graphics = false;
	_cleanup_(rt_plan_freep) struct rt_plan *graphics = rt_rig_plan(&rig, &gpu);
	CHECK(graphics->verdict == RT_CONDITIONAL && strstr(graphics->conditions[0], "graphics"));
	rig.set.no_graphics = true;
	rig.set.queue_changes = RT_UNSET;
	_cleanup_(rt_plan_freep) struct rt_plan *queues = rt_rig_plan(&rig, &gpu);
	CHECK(queues->verdict == RT_CONDITIONAL && strstr(queues->conditions[0], "queue-changes"));
	/* Queues of others stop nobody there. */
	_cleanup_(rt_plan_freep) struct rt_plan *none = rt_rig_plan(&rig, &mes);
	CHECK(none->verdict == RT_ACCEPTED);
}

TEST(before_gfx11_the_cost_of_a_preemption_has_to_be_known)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_plan *plan = NULL;
	char problem[512] = "";
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 15);
	rig.set.borrowers = true;
	CHECK(rt_plan_make(&rig.set, &gpu, &plan, problem, sizeof(problem)) == -EINVAL && !plan);
	CHECK(strstr(problem, "preemption = TIME") && strstr(problem, "borrowers = no"));
	rig.set.borrowers = false;
	rig.set.queue_changes = 1;
	CHECK(rt_plan_make(&rig.set, &gpu, &plan, problem, sizeof(problem)) == -EINVAL && !plan);
	gpu.scheduler = SCHEDULER_MES;
	CHECK(rt_plan_make(&rig.set, &gpu, &plan, problem, sizeof(problem)) == 0);
	rt_plan_free(plan);
}

TEST(mask_changes_count_before_gfx11_only)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 15);
	rig.set.borrowers = true;
	rig.set.preemption = 10;
	_cleanup_(rt_plan_freep) struct rt_plan *before = rt_rig_plan(&rig, &gpu);
	/* 24 slots, 2 of its own: 22 queues, twice. */
	CHECK(before->changed_queues == 22 && before->tasks[0].bound == 500 + 2 * 220);
	gpu.scheduler = SCHEDULER_MES;
	_cleanup_(rt_plan_freep) struct rt_plan *mes = rt_rig_plan(&rig, &gpu);
	CHECK(mes->tasks[0].bound == 500);
}

TEST(others_that_start_inactive_may_be_activated_once_meanwhile)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 15);
	needs(&rig, 15)->start_inactive = true;
	rig.partitions[1].waits_for_grant = true;
	rig.set.borrowers = true;
	rig.set.preemption = 10;
	rig.set.changed_queues = 3;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);
	CHECK(plan->tasks[0].bound == 500 + 2 * 30 + 30 && plan->tasks[1].bound == 500 + 2 * 30);
	rig.set.activations = 4;
	rig.set.queue_changes = 5;
	_cleanup_(rt_plan_freep) struct rt_plan *more = rt_rig_plan(&rig, &gpu);
	CHECK(more->tasks[1].bound == 500 + 2 * 30 + 4 * 30 + 5 * 10);
}

TEST(activation_is_joined_unless_the_first_job_waits_for_the_grant)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_partition *partition;
	struct rt_rig rig;

	rt_rig_init(&rig);
	partition = needs(&rig, 15);
	partition->start_inactive = true;
	_cleanup_(rt_plan_freep) struct rt_plan *ladder = rt_rig_plan(&rig, &gpu);
	/* Grace, a rung, the kernel's time-out, and the daemon's next look. */
	CHECK(ladder->partitions[0].activation == 1000000 + 1000000 + 9000000 + 50000);
	CHECK(ladder->verdict == RT_REJECTED && strstr(ladder->tasks[0].reason, "waits-for-grant"));
	partition->activation = 500;
	_cleanup_(rt_plan_freep) struct rt_plan *quick = rt_rig_plan(&rig, &gpu);
	CHECK(quick->verdict == RT_ACCEPTED && quick->tasks[0].slack == 0);
	partition->activation = RT_UNSET;
	partition->waits_for_grant = true;
	_cleanup_(rt_plan_freep) struct rt_plan *patient = rt_rig_plan(&rig, &gpu);
	CHECK(patient->verdict == RT_ACCEPTED && patient->tasks[0].bound == 500);
}

/* ---- why not ------------------------------------------------------------------------------ */

/* Rejected, and the reason of the first task has these words. */
static void rejects(const struct rt_rig *rig, const char *words)
{
	struct gpu_info gpu = radeon_vii("g");
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig, &gpu);

	printf("  %s\n", plan->tasks[0].reason);
	fflush(stdout);
	CHECK(plan->verdict == RT_REJECTED && !plan->tasks[0].meets);
	CHECK(strstr(plan->tasks[0].reason, words));
}

TEST(a_rejected_task_is_told_what_would_do)
{
	struct rt_rig rig;
	struct rt_task *task;

	rt_rig_init(&rig);
	rt_rig_partition(&rig, "p");
	task = rt_rig_task(&rig, 1000, 400, 15, 900);
	task->points[task->n_points++] = (struct rt_point){ 60, 500 };
	rejects(&rig, "100 us past its deadline on 60 CUs, the most that this GPU has for one lease; "
		      "a deadline of 500 us would do");
	task->points[task->n_points++] = (struct rt_point){ 120, 250 };
	rejects(&rig, "it passes on 75 CUs or more"); /* 250 x 120 / 400 */
	task->n_points = 1;
	task->points[0].cus = 61;
	rejects(&rig, "measured from 61 CUs on only");

	rt_rig_init(&rig);
	rt_rig_partition(&rig, "p");
	rt_rig_task(&rig, 1000, 800, 15, 500);
	rt_rig_task(&rig, 2000, 2000, 15, 600);
	rejects(&rig, "in a partition of its own it would pass");
	rig.tasks[0].jitter = 900;
	rejects(&rig, "no deadline within its period would do: it needs a period of 2000 us");
	rig.tasks[0].jitter = 0;
	rig.tasks[1].points[0].cus = 99;
	rejects(&rig, "another task of its partition was not measured");
	rig.tasks[1].points[0].cus = 15;
	rig.set.borrowers = true;
	rig.set.preemption = 100000;
	rejects(&rig, "longer");
}

TEST(what_passes_is_placed_though_another_partition_does_not)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_rig rig;

	rt_rig_init(&rig);
	needs(&rig, 99);
	needs(&rig, 15);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(&rig, &gpu);

	CHECK(plan->verdict == RT_REJECTED && !plan->partitions[0].passes);
	CHECK(plan->partitions[1].passes && plan->partitions[1].placed && plan->tasks[1].meets);
}
