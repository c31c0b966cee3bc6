/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The results of rt plan: bounds, conditions and reasons. */

#include <errno.h>

#include "check.h"
#include "core/policy/settings.h"
#include "lack.h"
#include "random-geometry.h"
#include "rt-rig.h"
#include "seed.h"

/* ---- bounds ------------------------------------------------------------------------------- */

TEST(the_fewest_cus_and_the_growth_are_exact)
{
	unsigned seed = SEED_OF_RUN("SEED"), judged = 0;
	struct gpu_info gpu = radeon_vii("g");

	seed_rand(seed);
	for (unsigned i = 0; i < 400; i++) {
		struct rt_rig rig = RT_RIG_INIT(rig);

		rig.set.margin_percent = below(100);
		rig.set.borrowers = below(2);
		rig.set.preemption = below(50);
		rig.set.daemon.activate_min_interval = 1000 + below(5000);
		rt_rig_partition(&rig, "p")->isolation = ISOLATION_CU;
		for (unsigned t = 0, n = 1 + below(4); t < n; t++) {
			struct rt_task *task = rt_rig_task(&rig, 40000, 20000 + below(20000),
							   1 + below(8), 1000 + below(20000));

			task->points[1].cus = 20 + below(40);
			task->points[1].usec = 1 + below((unsigned)task->points[0].usec);
			task->n_points = 2;
		}
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);
		const struct rt_partition_plan *p = &plan->partitions[0];
		uint64_t allowed = rt_plan_allowed(plan, 0);

		if (plan->result == RT_REJECTED)
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
				uint64_t wcet = rt_set_wcet(&rig.set, &rig.set.tasks[t], cus,
							    &source);

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

/* ---- conditions --------------------------------------------------------------------------- */

static bool is_accepted(const struct rt_rig *rig)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);

	return plan->result == RT_ACCEPTED;
}

/* On one condition alone, which has these words. */
static bool depends_on(const struct rt_rig *rig, const char *words)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);

	return plan->result == RT_CONDITIONAL && plan->n_conditions == 1 &&
	       strstr(plan->conditions[0], words);
}

FIXTURE(struct rt_rig, rig, rt_rig_init(rig), );

TEST_WITH(an_unstated_condition_makes_the_result_conditional, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	_cleanup_(rt_plan_freep) struct rt_plan *all = rt_rig_plan(rig);
	CHECK(all->result == RT_ACCEPTED && all->n_conditions == 0 && all->n_assumptions > 3);

	rig->set.capped = false;
	CHECK(depends_on(rig, "capped"));
	rig->set.capped = true;
	rig->set.no_graphics = false;
	CHECK(depends_on(rig, "graphics"));
	rig->set.no_graphics = true;
	rig->set.masked = false;
	CHECK(depends_on(rig, "CU mask"));
	rig->set.masked = true;
	rig->set.own_pipes = false;
	CHECK(depends_on(rig, "own-pipes"));
	rig->set.own_pipes = true;
	rig->set.partitions[0].host_submission = RT_UNSET;
	CHECK(depends_on(rig, "host-submission"));
	rig->set.partitions[0].host_submission = 0;
	rig->set.queue_changes.number = RT_UNSET;
	CHECK(depends_on(rig, "queue-changes"));
	rig->gpu.scheduler = SCHEDULER_MES;
	rig->set.preemption_timeout = RT_UNSET;
	CHECK(depends_on(rig, "preemption-timeout"));
	rig->set.preemption_timeout = 0;
	CHECK(is_accepted(rig)); /* queues of others stop nobody there */
}

/* 17 % were measured between neighbours, and the kernel gains 12 % less than the law predicts. */
TEST_WITH(a_modelled_time_has_the_error_of_the_law, struct rt_rig *rig)
{
	struct rt_task *task;

	rt_rig_partition(rig, "p");
	task = rt_rig_task(rig, 30000, 2106, 15, 2398);
	task->points[task->n_points++] = (struct rt_point){ 60, 700 };
	for (unsigned margin = 0; margin < 20; margin += 17) {
		rig->set.margin_percent = margin;
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);
		enum rt_source source;
		uint64_t usec = rt_wcet(task, plan->partitions[0].effective, true, &source);

		CHECK(plan->result == RT_ACCEPTED && plan->tasks[0].source == RT_MODELLED);
		CHECK(plan->tasks[0].wcet == (usec * (100 + MARGIN_LAW) + 99) / 100);
		CHECK(plan->tasks[0].bound >= usec * (100 + MARGIN_LAW) * (100 + margin) / 10000);
	}
	/* A persistent kernel does not gain what the law predicts. */
	rig->set.law_stated = false;
	_cleanup_(rt_plan_freep) struct rt_plan *unstated = rt_rig_plan(rig);
	CHECK(unstated->result == RT_CONDITIONAL && strstr(unstated->conditions[0], "law = yes"));
	task->points[1].cus = unstated->partitions[0].effective;
	CHECK(is_accepted(rig));
	/* Not longer than on fewer CUs, which was measured. */
	rig->set.margin_percent = 0;
	task->points[1].usec = 2300;
	task->points[1].cus = 16;
	CHECK(rt_set_wcet(&rig->set, task, 15, &(enum rt_source){ 0 }) == 2398);
	task->points[1].cus = 17;
	CHECK(rt_set_wcet(&rig->set, task, 16, &(enum rt_source){ 0 }) == 2398);
	/* The measured margin has the error for all times. */
	rig->set.margin_percent = MARGIN_MEASURED;
	task->points[1].usec = 700;
	CHECK(rt_set_wcet(&rig->set, task, 16, &(enum rt_source){ 0 }) ==
	      rt_wcet(task, 16, true, &(enum rt_source){ 0 }));
}

/* The execution that libgpuarb-rt measures has all of them, and no wait for the other task. */
TEST(a_budget_covers_margin_host_copies_and_standstill)
{
	struct gpu_info gpu = radeon_vii("g");

	for (enum rt_policy policy = RT_FIFO; policy <= RT_NP_DM; policy++) {
		struct rt_rig rig = RT_RIG_INIT(rig);

		rt_rig_partition(&rig, "p")->policy = policy;
		rt_rig_task(&rig, 500000, 400000, 15, 100000);
		rt_rig_task(&rig, 500000, 400000, 15, 100000);
		rig.set.borrowers = true;
		rig.set.preemption = 1000;
		rig.set.changed_queues = 2;
		_cleanup_(rt_plan_freep) struct rt_plan *still = rt_rig_plan_on(&rig, &gpu);
		CHECK(still->result == RT_ACCEPTED);
		CHECK(still->tasks[0].budget == 100000 + 2 * 2 * 1000);
		rig.set.margin_percent = 10;
		rig.set.partitions[0].host_submission = 500;
		rig.tasks[0].copy_in = 3000;
		_cleanup_(rt_plan_freep) struct rt_plan *all = rt_rig_plan_on(&rig, &gpu);
		CHECK(all->tasks[0].budget == 110000 + 3300 + 500 + 4000);
		CHECK(all->tasks[1].budget == 110000 + 500 + 4000);
		CHECK(all->tasks[0].budget < all->tasks[0].bound);
		rig.tasks[0].deadline = 110000;
		_cleanup_(rt_plan_freep) struct rt_plan *late = rt_rig_plan_on(&rig, &gpu);
		CHECK(!late->tasks[0].meets && late->tasks[0].budget == BOUND_NONE);
	}
}

TEST_WITH(a_measured_margin_needs_the_number_of_neighbours_that_borrow, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15)->start_inactive = false;
	rig->set.margin_percent = MARGIN_MEASURED;
	rig->gpu.gfx_target = 90006;
	CHECK(is_accepted(rig));
	rig->set.borrowers = true;
	rig->set.preemption = 1;
	CHECK(depends_on(rig, "(neighbours = N)"));
	rig->set.neighbours = 1;
	CHECK(is_accepted(rig));
}

TEST_WITH(a_margin_that_was_not_measured_on_the_target_is_a_condition, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	rig->set.margin_percent = MARGIN_MEASURED;
	rig->set.neighbours = 2;
	rig->tasks[0].period = rig->tasks[0].deadline = 5000;
	rig->gpu.gfx_target = 90006;
	CHECK(depends_on(rig, "calibrate"));
	rig->set.neighbours = 1;
	rig->gpu.gfx_target = 90008; /* MI100, by the row of the Radeon VII */
	CHECK(depends_on(rig, ""));
	rig->set.neighbours = 0;
	CHECK(is_accepted(rig));
}

/* Refused, in these words. */
static void contradicts(const struct rt_rig *rig, const char *words)
{
	struct rt_plan *plan = NULL;
	char problem[512] = "";

	CHECK(rt_rig_make(rig, &rig->gpu, &plan, problem, sizeof(problem)) == -EINVAL && !plan);
	printf("  %s\n", problem);
	CHECK(strstr(problem, words));
}

TEST_WITH(partitions_of_the_set_are_neighbours_that_are_activated, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	rt_rig_needs(rig, 15);
	rig->set.neighbours = 0;
	contradicts(rig, "neighbours = 0 cannot be true: this set has 2 partitions on g; use 1");
	rig->set.neighbours = 1;
	rig->set.partitions[1].start_inactive = true;
	contradicts(rig, "activations = 0 cannot be true for [partition p0]");
	rt_rig_needs(rig, 15);
	contradicts(rig, "neighbours = 1 cannot be true: this set has 3 partitions on g; use 2");
	rig->set.neighbours = 2;
	rig->set.partitions[2].start_inactive = true;
	rig->set.activations.number = 1;
	contradicts(rig, "activations = 1 cannot be true for [partition p0]");
}

TEST_WITH(a_borrower_is_a_neighbour_with_queues, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	rig->set.borrowers = true;
	rig->set.preemption = 1;
	rig->set.neighbours = 0;
	contradicts(rig, "neighbours = 0 cannot be true while a lease on g borrows CUs");
	rig->set.neighbours = 1;
	rig->set.changed_queues = 0;
	contradicts(rig, "changed-queues = 0 cannot be true while a lease on g borrows CUs");
	rig->gpu.scheduler = SCHEDULER_MES;
	CHECK(is_accepted(rig));
}

/* libgpuarb-rt: four jobs, each of 10 ms and 5 ms on the host. */
TEST_WITH(a_dispatcher_with_fifo_has_the_host_time_of_each_job, struct rt_rig *rig)
{
	struct rt_partition *partition;

	partition = rt_rig_partition(rig, "p");
	partition->host_submission = 5000;
	for (unsigned i = 0; i < 4; i++)
		rt_rig_task(rig, 200000, 50000, 15, 10000);
	_cleanup_(rt_plan_freep) struct rt_plan *unstated = rt_rig_plan(rig);
	CHECK(unstated->result == RT_CONDITIONAL && unstated->n_conditions == 1);
	CHECK(strstr(unstated->conditions[0], "(dispatcher = no"));
	CHECK(unstated->tasks[0].bound == 45000);
	partition->dispatcher_stated = true;
	_cleanup_(rt_plan_freep) struct rt_plan *streams = rt_rig_plan(rig);
	CHECK(streams->result == RT_ACCEPTED && streams->tasks[0].bound == 45000);
	partition->dispatcher = true;
	_cleanup_(rt_plan_freep) struct rt_plan *dispatched = rt_rig_plan(rig);
	CHECK(dispatched->result == RT_REJECTED && dispatched->tasks[0].bound == 60000);
	rig->set.n_tasks = 3;
	partition->n_tasks = 3;
	_cleanup_(rt_plan_freep) struct rt_plan *fewer = rt_rig_plan(rig);
	CHECK(fewer->result == RT_ACCEPTED && fewer->tasks[0].bound == 45000);
	CHECK(fewer->tasks[0].budget == 15000 && fewer->tasks[0].growth == 5000);
}

TEST_WITH(more_partitions_than_pipes_have_no_pipes_of_their_own, struct rt_rig *rig)
{
	for (unsigned i = 0; i <= rig->gpu.pipes; i++)
		rt_rig_needs(rig, 8)->isolation = ISOLATION_CU;
	contradicts(rig, "own-pipes = yes");
	contradicts(rig, "5 partitions");
}

TEST_WITH(more_queues_of_several_partitions_than_pipes_are_a_condition, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15)->queues = rig->gpu.pipes + 1;
	CHECK(is_accepted(rig));
	rig->set.partitions[0].queues = rig->gpu.pipes - 2;
	rt_rig_needs(rig, 15)->queues = 2;
	CHECK(is_accepted(rig));
	rig->set.partitions[0].queues++;
	CHECK(depends_on(rig, "own-pipes"));
}

static struct rt_plan *plan_on_gpus(const struct rt_rig *rig, const struct rt_gpu *gpus, size_t n)
{
	struct rt_plan *plan = NULL;
	char problem[512];

	CHECK(rt_plan_make(&rig->set, gpus, n, &plan, problem, sizeof(problem)) == 0);
	return plan;
}

TEST_WITH(what_is_observed_otherwise_is_a_condition, struct rt_rig *rig)
{
	struct rt_gpu gpu = { .name = "g", .info = radeon_vii("g"), .here = true };
	static const struct rt_gpu observed[] = { { .unmanaged = 1 },
						  { .uncapped = 1 },
						  { .unverified = 1 } };
	struct rt_plan *plan;
	size_t assumptions;

	rt_rig_needs(rig, 15)->pipe_neighbours = 0;
	for (size_t i = 0; i <= ARRAY_SIZE(observed); i++) {
		bool none = i == ARRAY_SIZE(observed);

		gpu.unmanaged = none ? 0 : observed[i].unmanaged;
		gpu.uncapped = none ? 0 : observed[i].uncapped;
		gpu.unverified = none ? 0 : observed[i].unverified;
		plan = plan_on_gpus(rig, &gpu, 1);
		CHECK(plan->n_conditions == (none ? 0 : i == 0 ? 2 : 1));
		CHECK(plan->result == (none ? RT_ACCEPTED : RT_CONDITIONAL));
		plan = rt_plan_free(plan);
	}
	rig->set.partitions[0].pipe_neighbours = 1;
	plan = plan_on_gpus(rig, &gpu, 1);
	CHECK(plan->result == RT_CONDITIONAL && plan->n_conditions == 1);
	assumptions = plan->n_assumptions;
	plan = rt_plan_free(plan);
	rig->set.partitions[0].pipe_neighbours = RT_UNSET;
	plan = plan_on_gpus(rig, &gpu, 1);
	CHECK(plan->result == RT_ACCEPTED && plan->n_assumptions == assumptions + 1);
	plan = rt_plan_free(plan);
	/* What the file does not state is one condition, and nothing contradicts it. */
	rig->set.own_pipes = false;
	plan = plan_on_gpus(rig, &gpu, 1);
	CHECK(plan->n_conditions == 1);
	plan = rt_plan_free(plan);
}

TEST_WITH(before_gfx11_the_cost_of_a_preemption_is_required, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	rig->set.borrowers = true;
	contradicts(rig, "preemption = TIME");
	contradicts(rig, "borrowers = no");
	rig->set.borrowers = false;
	rig->set.queue_changes.number = 1;
	contradicts(rig, "");
	rig->gpu.scheduler = SCHEDULER_MES;
	rt_plan_free(rt_rig_plan(rig));
}

TEST_WITH(mask_changes_count_before_gfx11_only, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	rig->set.borrowers = true;
	rig->set.preemption = 10;
	_cleanup_(rt_plan_freep) struct rt_plan *before = rt_rig_plan(rig);
	/* 24 slots, 2 of its own: 22 queues, twice. */
	CHECK(before->gpus[0].changed_queues == 22 && before->tasks[0].bound == 500 + 2 * 220);
	rig->gpu.scheduler = SCHEDULER_MES;
	_cleanup_(rt_plan_freep) struct rt_plan *mes = rt_rig_plan(rig);
	CHECK(mes->tasks[0].bound == 500);
}

TEST_WITH(each_other_inactive_partition_counts_one_activation, struct rt_rig *rig)
{
	rt_rig_needs(rig, 15);
	rt_rig_needs(rig, 15)->start_inactive = true;
	rig->set.partitions[1].waits_for_grant = true;
	rig->set.borrowers = true;
	rig->set.preemption = 10;
	rig->set.changed_queues = 3;
	rig->set.activations.number = RT_UNSET;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);
	CHECK(plan->tasks[0].bound == 500 + 2 * 30 + 2 * 30);
	CHECK(plan->tasks[1].bound == 500 + 2 * 30);
	CHECK(plan->result == RT_CONDITIONAL && strstr(plan->conditions[0], "activations"));
	rig->set.activations.number = 4;
	rig->set.queue_changes.number = 5;
	_cleanup_(rt_plan_freep) struct rt_plan *more = rt_rig_plan(rig);
	CHECK(more->tasks[1].bound == 500 + 2 * 30 + 5 * 30 + 5 * 10);
}

/* A borrower is in an old change when the window begins, then makes the one that was asked meanwhile,
 * and then that of the activation within the window; and masks grow once. */
TEST_WITH(a_borrower_that_answers_late_is_counted, struct rt_rig *rig)
{
	rt_rig_partition(rig, "p");
	rt_rig_task(rig, 100000, 28000, 15, 10000);
	rig->set.borrowers = true;
	rig->set.preemption = 1000;
	rig->set.changed_queues = 6;
	rig->set.activations.number = 1;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);
	CHECK(plan->result == RT_REJECTED && plan->tasks[0].bound == 10000 + 4 * 6000);
	rig->set.activations.number = 0;
	_cleanup_(rt_plan_freep) struct rt_plan *none = rt_rig_plan(rig);
	CHECK(none->result == RT_ACCEPTED && none->tasks[0].bound == 10000 + 2 * 6000);
}

TEST_WITH(activation_counts_unless_the_first_job_waits_for_the_grant, struct rt_rig *rig)
{
	struct rt_partition *partition;

	partition = rt_rig_needs(rig, 15);
	partition->start_inactive = true;
	_cleanup_(rt_plan_freep) struct rt_plan *ladder = rt_rig_plan(rig);
	/* Grace, a step of enforcement, and the next scan. */
	CHECK(ladder->partitions[0].activation == 1000000 + 1000000 + 50000);
	CHECK(ladder->result == RT_REJECTED && strstr(ladder->tasks[0].reason, "waits-for-grant"));
	/* With a borrower that has to be killed. */
	rig->tasks[0].period = rig->tasks[0].deadline = 3000000;
	rig->set.borrowers = true;
	rig->set.preemption = 1;
	_cleanup_(rt_plan_freep) struct rt_plan *killed = rt_rig_plan(rig);
	CHECK(killed->result == RT_CONDITIONAL && killed->n_conditions == 1);
	CHECK(strstr(killed->conditions[0], "(activation-latency = TIME)"));
	partition->activation = 2000000;
	CHECK(is_accepted(rig));
	rig->set.borrowers = false;
	rig->tasks[0].period = rig->tasks[0].deadline = 1000;
	partition->activation = 500;
	_cleanup_(rt_plan_freep) struct rt_plan *quick = rt_rig_plan(rig);
	CHECK(quick->result == RT_ACCEPTED && quick->tasks[0].slack == 0);
	partition->activation = RT_UNSET;
	partition->waits_for_grant = true;
	_cleanup_(rt_plan_freep) struct rt_plan *patient = rt_rig_plan(rig);
	CHECK(patient->result == RT_ACCEPTED && patient->tasks[0].bound == 500);
}

/* One fault model: a time-out that one partition waits for stops the others, too. */
TEST_WITH(a_preemption_that_times_out_counts_in_every_partition, struct rt_rig *rig)
{
	rt_rig_partition(rig, "p");
	rt_rig_task(rig, 20000000, 20000000, 15, 500);
	rt_rig_needs(rig, 15)->start_inactive = true;
	rig->set.partitions[1].waits_for_grant = true;
	rig->set.preemption_timeout = 9000000;
	rig->set.activations.number = 1;
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);
	CHECK(plan->partitions[1].activation == 1000000 + 1000000 + 9000000 + 50000);
	CHECK(plan->tasks[0].bound == 9000000 + 500 && plan->tasks[0].meets);
	CHECK(plan->result == RT_REJECTED && !plan->tasks[1].meets);
}

/* ---- reasons ------------------------------------------------------------------------------ */

/* Rejected, and the reason of the first task has these words. */
static void rejects(const struct rt_rig *rig, const char *words)
{
	struct gpu_info gpu = radeon_vii("g");
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(rig, &gpu);

	printf("  %s\n", plan->tasks[0].reason);
	fflush(stdout);
	CHECK(plan->result == RT_REJECTED && !plan->tasks[0].meets);
	CHECK(strstr(plan->tasks[0].reason, words));
}

TEST(reason_of_a_rejected_task_names_a_remedy)
{
	struct rt_rig rig = RT_RIG_INIT(rig);
	struct rt_task *task;

	rt_rig_partition(&rig, "p");
	task = rt_rig_task(&rig, 1000, 400, 15, 900);
	task->points[task->n_points++] = (struct rt_point){ 60, 500 };
	rejects(&rig,
		"100 us past its deadline on 60 CUs, the most that one lease can have on this GPU; "
		"it passes with a deadline of 500 us");
	task->points[task->n_points++] = (struct rt_point){ 120, 250 };
	rejects(&rig, "it passes on 85 CUs or more"); /* 1.12 x 250 x 120 / 400, rounded up */
	task->n_points = 1;
	task->points[0].cus = 61;
	rejects(&rig, "measured on 61 CUs or more only");

	rig = (struct rt_rig)RT_RIG_INIT(rig);
	rt_rig_partition(&rig, "p");
	rt_rig_task(&rig, 1000, 800, 15, 500);
	rt_rig_task(&rig, 2000, 2000, 15, 600);
	rejects(&rig, "it passes in a partition of its own");
	rig.tasks[0].jitter = 900;
	rejects(&rig, "it needs a period of 2000 us");
	rig.tasks[0].jitter = 0;
	rig.tasks[1].points[0].cus = 99;
	rejects(&rig, "another task of its partition was not measured");
	rig.tasks[1].points[0].cus = 15;
	rig.set.borrowers = true;
	rig.set.preemption = 100000;
	rejects(&rig, "longer");
}

TEST_WITH(reason_of_a_task_that_copies_does_not_promise_a_partition_of_its_own, struct rt_rig *rig)
{
	rt_rig_partition(rig, "p");
	for (unsigned i = 0; i < 2; i++)
		rt_rig_task(rig, 20000, 20000, 15, 1000)->copy_in = 12000;
	_cleanup_(rt_plan_freep) struct rt_plan *both = rt_rig_plan(rig);
	CHECK(both->result == RT_REJECTED && !strstr(both->tasks[0].reason, "own"));
	rig->set.n_tasks = rig->set.partitions[0].n_tasks = 1;
	rig->set.margin_percent = 12;
	rig->tasks[0].copy_in = 19000;
	rejects(rig, "its copies alone take longer than its deadline");
	rig->tasks[0].copy_in = 12000;
	rt_rig_partition(rig, "q");
	rt_rig_task(rig, 20000, 20000, 15, 1000)->copy_in = 12000;
	rejects(rig, "wait for those of other partitions");
}

TEST_WITH(a_passing_partition_is_placed_although_another_fails, struct rt_rig *rig)
{
	rt_rig_needs(rig, 99);
	rt_rig_needs(rig, 15);
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);

	CHECK(plan->result == RT_REJECTED && !plan->partitions[0].passes);
	CHECK(plan->partitions[1].passes && plan->partitions[1].placed && plan->tasks[1].meets);
}

/* 2 ms on one partition, then 1 ms on another with np-edf beside a task of 1 ms, then 500 us on the
 * first. */
TEST_WITH(a_task_of_a_chain_is_ready_within_the_bound_of_the_task_before_it, struct rt_rig *rig)
{
	rt_rig_partition(rig, "a");
	rt_rig_task(rig, 10000, 4000, 15, 2000);
	rt_rig_task(rig, 10000, 9000, 15, 500)->after = 3;
	rt_rig_partition(rig, "b")->policy = RT_NP_EDF;
	rt_rig_task(rig, 10000, 6000, 15, 1000)->after = 1;
	rt_rig_task(rig, 20000, 20000, 15, 1000);
	for (unsigned late = 0; late < 2; late++) {
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);

		CHECK(plan->result == (late ? RT_REJECTED : RT_ACCEPTED));
		CHECK(plan->tasks[2].jitter == 2500 && plan->tasks[2].bound == 4500);
		CHECK(plan->tasks[1].jitter == 4500 && plan->tasks[1].bound == 7000);
		CHECK(plan->tasks[1].meets == !late && plan->tasks[2].meets);
		rig->tasks[1].deadline = 6999;
	}
}

/* Each takes 3 of 10 ms, and has a deadline of 4 ms. With jitter, two can meet for 0.7 ms; with fifo the
 * analysis takes all of a job that is met. */
TEST(tasks_whose_offsets_keep_them_apart_do_not_wait_for_each_other)
{
	struct gpu_info gpu = radeon_vii("g");

	for (enum rt_policy policy = RT_FIFO; policy <= RT_NP_DM; policy++) {
		struct rt_rig rig = RT_RIG_INIT(rig);

		rt_rig_partition(&rig, "p")->policy = policy;
		for (unsigned i = 0; i < 3; i++) {
			rig.tasks[i].offset_line = 1;
			rig.tasks[i].offset = i * 3300;
			rt_rig_task(&rig, i == 2 ? 20000 : 10000, 4000, 15, 3000);
		}
		for (unsigned late = 0; late < 3; late++) {
			_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
			bool used;

			rig.tasks[0].jitter = late == 1 ? 1000 : 0;
			rig.tasks[2].offset_line = late != 2;
			plan = rt_rig_plan_on(&rig, &gpu);
			used = late == 0 || (late == 1 && policy != RT_FIFO);
			CHECK(plan->result == (used ? RT_ACCEPTED : RT_REJECTED));
			CHECK(plan->partitions[0].offsets ==
			      (used ? RT_OFFSETS_USED : RT_OFFSETS_UNUSED));
			CHECK(!used || plan->tasks[1].bound == (late ? 3700 : 3000));
		}
	}
}

/* The time after which these releases repeat wraps 2^64 to 1 h: the first two tasks meet at last. */
TEST_WITH(offsets_that_take_too_long_to_repeat_are_not_used, struct rt_rig *rig)
{
	static const uint64_t periods[] = { 19416, 213503999, 3599999719 },
			      deadlines[] = { 5000, 5000, 9000 }, offsets[] = { 0, 14000, 6000 },
			      costs[] = { 1000, 100, 6000 };

	rt_rig_partition(rig, "p")->policy = RT_NP_EDF;
	for (unsigned i = 0; i < 3; i++) {
		struct rt_task *task = rt_rig_task(rig, periods[i], deadlines[i], 15, costs[i]);

		task->offset_line = 1;
		task->offset = offsets[i];
	}
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);
	CHECK(plan->result == RT_REJECTED && plan->partitions[0].offsets == RT_OFFSETS_UNUSED);
}

/* Copies of 0.1 ms and 0.3 ms wait for each other; one of 9 ms waits for two of 0.1 ms. */
TEST_WITH(a_copy_waits_for_the_copies_of_other_partitions, struct rt_rig *rig)
{
	rt_rig_partition(rig, "a");
	rt_rig_task(rig, 10000, 4000, 15, 2000)->copy_in = 100;
	rt_rig_task(rig, 10000, 9000, 15, 500);
	rt_rig_partition(rig, "b")->policy = RT_NP_DM;
	rt_rig_task(rig, 10000, 9500, 15, 1000)->copy_out = 300;
	for (unsigned other = 0; other < 3; other++) {
		_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;

		rig->set.own_copies = other == 0;
		rig->tasks[2].copy_out = other == 2 ? 9000 : 300;
		plan = rt_rig_plan(rig);
		CHECK(plan->result == (other == 2   ? RT_REJECTED
				       : other == 1 ? RT_CONDITIONAL
						    : RT_ACCEPTED));
		CHECK(plan->tasks[0].copies == (other == 2 ? BOUND_NONE : 100 + 300));
		CHECK(plan->tasks[1].copies == 0);
		CHECK(plan->tasks[0].bound == (other == 2 ? BOUND_NONE : 2900));
		CHECK(plan->tasks[2].copies == (other == 2 ? 9000 + 2 * 100 : 300 + 100));
	}
}

/* Standstill leaves 0.005 % of the time. */
TEST_WITH(copies_beside_nearly_endless_standstill_have_no_bound, struct rt_rig *rig)
{
	rt_rig_partition(rig, "p");
	rt_rig_task(rig, RT_TIME_MAX, RT_TIME_MAX, 15, 500)->copy_in = 1;
	rig->set.preemption = 1;
	rig->set.queue_changes.number = RT_UNSET;
	rig->set.queue_changes.rates = (struct bound_rates){ { { 99995, 100000 } }, 1 };
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan(rig);
	CHECK(plan->result == RT_REJECTED && plan->tasks[0].copies == BOUND_NONE);
}

TEST_WITH(more_copying_processes_than_sdma_queues_do_not_fit, struct rt_rig *rig)
{
	rig->gpu.sdma_queues = 4;
	for (unsigned i = 0; i < 3; i++) {
		_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;

		rt_rig_needs(rig, 10);
		rig->tasks[i].copy_out = 10;
		plan = rt_rig_plan(rig);
		CHECK(plan->result == (i < 2 ? RT_ACCEPTED : RT_REJECTED));
		CHECK(i < 2 || plan->layout.lacks == REASON_SDMA);
	}
}

TEST_WITH(copies_of_two_gpus_can_slow_each_other, struct rt_rig *rig)
{
	struct rt_gpu gpus[] = { { .name = "left" }, { .name = "right" } };

	gpus[0].info = gpus[1].info = radeon_vii("g");
	for (unsigned i = 0; i < 2; i++) {
		strcpy(rt_rig_needs(rig, 15)->gpu, gpus[i].name);
		rig->tasks[i].copy_in = 10;
	}
	for (unsigned stated = 0; stated < 2; stated++) {
		rig->set.independent_copies = stated;
		_cleanup_(rt_plan_freep) struct rt_plan *plan = plan_on_gpus(rig, gpus, 2);
		CHECK(plan->result == (stated ? RT_ACCEPTED : RT_CONDITIONAL));
		CHECK(stated || strstr(plan->conditions[0], "(independent-copies = yes)"));
	}
}

/* The profile of the first GPU has the name of the second. */
TEST_WITH(a_name_in_the_set_comes_before_that_of_a_profile, struct rt_rig *rig)
{
	struct rt_gpu gpus[] = { { .name = "left" }, { .name = "right" } };

	gpus[0].info = radeon_vii("right");
	gpus[1].info = radeon_vii("g");
	strcpy(rt_rig_needs(rig, 10)->gpu, "right");
	_cleanup_(rt_plan_freep) struct rt_plan *plan = plan_on_gpus(rig, gpus, 2);
	CHECK(plan->partitions[0].gpu == 1);
}

/* A chain over two GPUs, of which only the first stands still. */
TEST_WITH(a_set_on_several_gpus_counts_each_of_them, struct rt_rig *rig)
{
	struct rt_gpu gpus[] = { { .name = "left" }, { .name = "right" } };

	gpus[0].info = gpus[1].info = radeon_vii("g");
	gpus[1].info.scheduler = SCHEDULER_MES;
	rig->set.borrowers = true;
	rig->set.neighbours = RT_UNSET;
	rig->set.preemption = 10;
	rig->set.changed_queues = 10;
	for (unsigned i = 0; i < 3; i++) {
		struct rt_partition *partition = rt_rig_needs(rig, 60);

		strcpy(partition->gpu, i == 0 ? "left" : "right");
		rig->tasks[i].period = rig->tasks[i].deadline = 10000;
	}
	rig->tasks[1].after = 1;
	for (unsigned crowd = 0; crowd < 2; crowd++) {
		rig->set.n_partitions = rig->set.n_tasks = 2 + crowd;
		_cleanup_(rt_plan_freep) struct rt_plan *plan = plan_on_gpus(rig, gpus, 2);
		CHECK(plan->result == (crowd ? RT_REJECTED : RT_ACCEPTED));
		CHECK(plan->gpus[0].neighbours == 1 && plan->gpus[1].neighbours == 1 + crowd);
		CHECK(plan->tasks[0].bound == 500 + 2 * 100);
		CHECK(plan->tasks[1].jitter == 700 && plan->tasks[1].bound == 1200);
		CHECK(!crowd || plan->crowded == 1);
	}
}

/* On these two GPUs, in these words. */
static void refused_on(const struct rt_rig *rig, const struct rt_gpu *gpus, const char *words)
{
	struct rt_plan *plan = NULL;
	char problem[512];

	CHECK(rt_plan_make(&rig->set, gpus, 2, &plan, problem, sizeof(problem)) == -EINVAL &&
	      !plan);
	CHECK(strstr(problem, words));
}

TEST_WITH(partitions_on_gpus_that_share_a_memory_are_neighbours, struct rt_rig *rig)
{
	struct rt_gpu gpus[] = { { .name = "left", .memory = "0000:03:00.0" },
				 { .name = "right", .memory = "0000:03:00.0" } };

	gpus[0].info = gpus[1].info = radeon_vii("g");
	rig->set.neighbours = RT_UNSET;
	rig->set.margin_percent = MARGIN_MEASURED;
	for (unsigned i = 0; i < 2; i++)
		strcpy(rt_rig_needs(rig, 60)->gpu, gpus[i].name);
	for (unsigned shared = 2; shared-- > 0;) {
		_cleanup_(rt_plan_freep) struct rt_plan *plan = plan_on_gpus(rig, gpus, 2);

		for (size_t i = 0; i < 2; i++)
			CHECK(plan->gpus[i].neighbours == shared &&
			      (plan->gpus[i].margin.slowdown > 100) == (shared > 0));
		strcpy(gpus[1].memory, "0000:03:00.0@1");
	}
	strcpy(gpus[1].memory, gpus[0].memory);
	rig->set.neighbours = 0;
	refused_on(rig, gpus, "neighbours = 0");
	refused_on(rig, gpus, "memory");
}

TEST_WITH(a_partition_on_a_gpu_that_is_not_in_the_set_is_refused, struct rt_rig *rig)
{
	const struct rt_gpu gpus[] = { { .name = "left" }, { .name = "right" } };
	static const char *const words[] = { "p0", "left, right", "middle" };

	strcpy(rt_rig_needs(rig, 10)->gpu, "middle");
	for (size_t i = 0; i < 3; i++)
		refused_on(rig, gpus, words[i]);
	rig->set.partitions[0].gpu[0] = '\0';
	for (size_t i = 0; i < 2; i++)
		refused_on(rig, gpus, words[i]);
}

static const struct rt_rig *scarce; /* what is planned without memory */

static int make_plan(long allocations)
{
	struct gpu_info gpu = radeon_vii("g");
	struct rt_plan *plan = NULL;
	char problem[512];
	int r;

	lack_left = allocations;
	r = rt_rig_make(scarce, &gpu, &plan, problem, sizeof(problem));
	CHECK((r == 0) == (plan != NULL));
	if (plan)
		rt_plan_free(plan);
	return r;
}

TEST(a_plan_is_made_whole_or_not)
{
	for (enum rt_policy policy = RT_FIFO; policy <= RT_NP_DM; policy++) {
		struct rt_rig rig = RT_RIG_INIT(rig);

		rt_rig_partition(&rig, "p")->policy = policy;
		for (unsigned i = 0; i < 3; i++) {
			rig.tasks[i].offset_line = 1;
			rig.tasks[i].offset = i * 3300;
			rt_rig_task(&rig, i == 2 ? 20000 : 10000, 4000, 15, 3000);
		}
		rt_rig_partition(&rig, "q")->policy = policy;
		rt_rig_task(&rig, 10000, 9000, 15, 1000);
		rt_rig_task(&rig, 10000, 9000, 15, 500)->copy_in = 100;
		scarce = &rig;
		CHECK(lack_each("rt_plan_make", make_plan) >= 10);
	}
}
