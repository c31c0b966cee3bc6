/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Explores all behaviours of sets that rt plan accepts (rt-model.h): all sets of one or two tasks
 * up to a size, and random larger ones. No accepted set may ever miss a deadline. The test prints
 * how many sets are refused, and how much longer the bound is than the longest response.
 */

#include <inttypes.h>

#include "check.h"
#include "random-geometry.h"
#include "rt-model.h"
#include "rt-rig.h"
#include "seed.h"

struct tally {
	unsigned sets, accepted, cautious; /* refused, and yet nothing was ever missed */
	unsigned disturbed, inactive, jittery;
	size_t states;
	double bound, observed; /* of accepted ones, summed over tasks */
	unsigned exact;         /* accepted tasks that were seen to need all of their bound */
	unsigned tasks;
};

static void draw_tasks(struct rt_rig *rig)
{
	static const unsigned most[] = { 0, 15, 12, 8 }; /* periods, by how many tasks */
	unsigned n = 1 + below(10) % 3;

	for (unsigned i = 0; i < n; i++) {
		unsigned period = 2 + below(most[n] - 1);
		unsigned deadline = period - below(1 + period / 4);
		struct rt_task *task = rt_rig_task(rig, period, deadline, 15, 1 + below(3));

		if (below(2))
			task->jitter = below(3);
	}
}

static void draw_set(struct rt_rig *rig)
{
	static const unsigned margins[] = { 0, 0, 0, 50, 100 };
	struct rt_partition *partition;

	*rig = (struct rt_rig)RT_RIG_INIT(*rig);
	rig->set.margin_percent = margins[below(ARRAY_SIZE(margins))];
	partition = rt_rig_partition(rig, "p");
	partition->dispatcher_stated = true; /* it submits jobs while others run */
	partition->host_submission = below(3) ? 0 : 1 + below(2);
	draw_tasks(rig);
	if (below(3) == 0) {
		rig->set.borrowers = true;
		rig->set.preemption = 1;
		rig->set.daemon.activate_min_interval = 2 + below(10);
		rig->set.activations.number = below(2);
		rig->set.changed_queues = rig->set.activations.number > 0 ? 1 : 1 + below(2);
	}
	if (below(4) == 0) {
		partition->start_inactive = true;
		partition->activation = 1 + below(2);
	}
}

/* Steps of standstill without growing masks: one for each preemption. An activation before the window
 * may be answered within it. */
static unsigned others_once(const struct rt_set *set)
{
	uint64_t changes = set->activations.number + (set->activations.number > 0);

	return (unsigned)(set->queue_changes.number +
			  (set->borrowers ? changes * set->changed_queues : 0));
}

/* The model of the set on its CUs. Of the computed bound only the window is used, within which a
 * number of other changes may occur. */
static void make_model(const struct rt_plan *plan, struct rt_model *ret)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition *partition = &set->partitions[0];
	const struct rt_partition_plan *p = &plan->partitions[0];

	*ret = (struct rt_model){
		.n_tasks = set->n_tasks,
		.host = (unsigned)partition->host_submission,
		.activation = partition->start_inactive ? (unsigned)partition->activation : 0,
		.interval = set->borrowers ? (unsigned)set->daemon.activate_min_interval : 0,
		.queues = set->borrowers ? (unsigned)set->changed_queues : 0,
		.once = others_once(set),
		.window = p->response < RT_MODEL_TIME ? (unsigned)p->response : RT_MODEL_TIME,
	};
	for (size_t i = 0; i < set->n_tasks; i++) {
		ret->task[i].period = (unsigned)set->tasks[i].period;
		ret->task[i].deadline = (unsigned)set->tasks[i].deadline;
		ret->task[i].jitter = (unsigned)set->tasks[i].jitter;
		/* The margin is for what a job takes longer than was measured. */
		ret->task[i].longest =
			(unsigned)(plan->tasks[i].wcet * (100 + set->margin_percent) / 100);
	}
}

static void compare(const struct rt_plan *plan, const struct rt_seen *observed, struct tally *tally)
{
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		const struct rt_task_plan *t = &plan->tasks[i];

		CHECK(observed->worst[i] <= t->bound);
		tally->tasks++;
		tally->exact += observed->worst[i] == t->bound;
		tally->bound += (double)t->bound;
		tally->observed += observed->worst[i];
	}
}

/* refused_too: explores refused sets, too, to count those that never miss. */
static void play(const struct rt_rig *rig, const struct gpu_info *gpu, bool refused_too,
		 struct tally *tally)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(rig, gpu);
	struct rt_model model;
	struct rt_seen observed;

	make_model(plan, &model);
	if (plan->result != RT_ACCEPTED && !refused_too) {
		tally->sets++;
		return;
	}
	rt_model_explore(&model, &observed);
	tally->sets++;
	tally->states += observed.states;
	tally->disturbed += model.queues > 0;
	tally->inactive += model.activation > 0;
	for (size_t i = 0; i < model.n_tasks; i++)
		tally->jittery += model.task[i].jitter > 0;
	if (plan->result != RT_ACCEPTED) {
		CHECK(plan->result == RT_REJECTED);
		tally->cautious += !observed.missed && !observed.cut;
		return;
	}
	tally->accepted++;
	CHECK(!observed.missed && !observed.cut);
	compare(plan, &observed, tally);
}

TEST(an_accepted_set_never_misses)
{
	unsigned seed = SEED_OF_RUN("RT_SEED"), sets = check_rounds(200, 600);
	struct gpu_info gpu = radeon_vii("g");
	struct tally tally = { 0 };

	seed_rand(seed);
	for (unsigned i = 0; i < sets; i++) {
		struct rt_rig rig;

		draw_set(&rig);
		play(&rig, &gpu, true, &tally);
	}
	printf("%u accepted; %u refused, of which %u never miss: too cautious; %zu states\n"
	       "%u with mask changes, %u to be activated, %u tasks with jitter\n"
	       "bounds of accepted tasks are %.2f x the worst observed, %u of %u are reached\n",
	       tally.accepted, tally.sets - tally.accepted, tally.cautious, tally.states,
	       tally.disturbed, tally.inactive, tally.jittery,
	       tally.observed > 0 ? tally.bound / tally.observed : 0, tally.exact, tally.tasks);
	if (rounds_are_few())
		return;
	/* Else it would prove nothing. */
	CHECK(tally.accepted > sets / 10 && tally.sets - tally.accepted > sets / 10);
	CHECK(tally.disturbed > 0 && tally.inactive > 0 && tally.jittery > 0);
	CHECK(tally.exact > tally.tasks / 10);
}

/* ---- every set up to a size ---------------------------------------------------------------- */

#define PERIOD_MAX (rounds_are_few() ? 4U : check_size(5, 6))
#define LONGEST 2U

struct tiny {
	unsigned period, deadline, jitter, longest;
};

/* Every task with a period from 2 on, any deadline, and a jitter of 0 or 1 that leaves time. */
static size_t all_tasks(struct tiny *ret)
{
	size_t n = 0;

	for (unsigned period = 2; period <= PERIOD_MAX; period++)
		for (unsigned deadline = 1; deadline <= period; deadline++)
			for (unsigned jitter = 0; jitter <= 1 && jitter < deadline; jitter++)
				for (unsigned longest = 1; longest <= LONGEST; longest++)
					ret[n++] = (struct tiny){ period, deadline, jitter,
								  longest };
	return n;
}

static void add_tiny(struct rt_rig *rig, const struct tiny *tiny)
{
	rt_rig_task(rig, tiny->period, tiny->deadline, 15, tiny->longest)->jitter = tiny->jitter;
}

/* One bit each: host time, a borrower of one queue, a change by others, activation. */
static void play_around(const struct tiny *a, const struct tiny *b, unsigned around,
			const struct gpu_info *gpu, struct tally *tally)
{
	struct rt_partition *partition;
	struct rt_rig rig = RT_RIG_INIT(rig);

	partition = rt_rig_partition(&rig, "p");
	partition->dispatcher_stated = true;
	partition->host_submission = around & 1;
	rig.set.borrowers = around >> 1 & 1;
	rig.set.preemption = 1;
	rig.set.changed_queues = 1;
	rig.set.daemon.activate_min_interval = 3;
	rig.set.queue_changes.number = around >> 2 & 1;
	partition->start_inactive = around >> 3 & 1;
	partition->activation = partition->start_inactive ? 1 : RT_UNSET;
	add_tiny(&rig, a);
	if (b)
		add_tiny(&rig, b);
	play(&rig, gpu, false, tally);
}

TEST(no_accepted_small_set_ever_misses)
{
	struct gpu_info gpu = radeon_vii("g");
	struct tiny tasks[128];
	struct tally tally = { 0 };
	size_t n = all_tasks(tasks);
	unsigned kinds = 0;

	CHECK(n <= ARRAY_SIZE(tasks));
	for (unsigned around = 0; around < 16; around += check_one_in(1, 1), kinds++)
		for (size_t a = 0; a < n; a++) {
			play_around(&tasks[a], NULL, around, &gpu, &tally);
			for (size_t b = a; b < n; b++)
				play_around(&tasks[a], &tasks[b], around, &gpu, &tally);
		}
	printf("all %u sets of up to two of %zu tasks: %u accepted, %zu states; %u of %u bounds are "
	       "reached\n",
	       tally.sets, n, tally.accepted, tally.states, tally.exact, tally.tasks);
	CHECK(tally.sets == kinds * (n + n * (n + 1) / 2));
	CHECK_REACHED(tally.accepted > 100 && tally.exact > tally.tasks / 2);
}

/* ---- controls: the model finds misses ------------------------------------------------------- */

/* Without one of its terms the bound is not safe, and the model finds a miss. */
static bool misses(struct rt_model *model)
{
	struct rt_seen observed;

	rt_model_explore(model, &observed);
	return observed.missed;
}

TEST(the_model_finds_a_miss_if_a_term_of_the_bound_is_left_out)
{
	struct rt_model model = { .n_tasks = 2, .task = { { 8, 5, 1, 2 }, { 8, 4, 0, 2 } } };

	CHECK(!misses(&model)); /* 2 + 2 + 1 <= 5, 2 + 2 <= 4 */
	model.host = 1;
	CHECK(misses(&model));
	model.host = 0;
	model.task[0].jitter = 2;
	CHECK(misses(&model));
	model.task[0].jitter = 1;
	model.task[1].longest = 3;
	CHECK(misses(&model));
	model.task[1].longest = 2;
	model.activation = 1;
	CHECK(misses(&model));
	model.activation = 0;
	model.queues = 1;
	model.interval = 9;
	CHECK(misses(&model));
	model.queues = 0;
	model.once = 1;
	model.window = 9;
	CHECK(misses(&model));
}

/* The reason for the "+ 1" in the bound: two changes close together, the first of them late. */
TEST(a_late_borrower_can_change_masks_twice_in_one_response)
{
	struct rt_model model = {
		.n_tasks = 1, .task = { { 12, 3, 0, 2 } }, .queues = 1, .interval = 10
	};

	CHECK(misses(&model));
	model.task[0].deadline = 4;
	CHECK(!misses(&model));
}
