/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What rt plan accepts, against everything that such a set can do: random small ones, each
 * explored whole (rt-model.h). None that is accepted may ever miss a deadline. How much is
 * refused, or foretold longer than it ever gets, is printed.
 *
 * RT_SEED: the seed; RT_SETS: how many.
 */

#include <inttypes.h>
#include <time.h>

#include "check.h"
#include "random-geometry.h"
#include "rt-model.h"
#include "rt-rig.h"

#define SETS 3000U

struct tally {
	unsigned sets, accepted, cautious; /* refused, and yet nothing was ever missed */
	unsigned disturbed, inactive, jittery;
	size_t states;
	double bound, seen; /* of accepted ones, summed over tasks */
	unsigned exact;     /* accepted tasks that were seen to need all of their bound */
	unsigned tasks;
};

static unsigned number(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

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

	rt_rig_init(rig);
	rig->set.margin_percent = margins[below(ARRAY_SIZE(margins))];
	partition = rt_rig_partition(rig, "p");
	partition->host_submission = below(3) ? 0 : 1 + below(2);
	draw_tasks(rig);
	if (below(3) == 0) {
		rig->set.borrowers = true;
		rig->set.preemption = 1;
		rig->set.changed_queues = 1 + below(2);
		rig->set.activate_min_interval = 2 + below(10);
		rig->set.activations = below(2);
	}
	if (below(4) == 0) {
		partition->start_inactive = true;
		partition->activation = 1 + below(2);
	}
}

/* The same set, as it may behave on the CUs that it was given. */
static void make_model(const struct rt_plan *plan, struct rt_model *ret)
{
	const struct rt_set *set = plan->set;
	const struct rt_partition_plan *p = &plan->partitions[0];

	*ret = (struct rt_model){
		.n_tasks = set->n_tasks,
		.host = (unsigned)set->partitions[0].host_submission,
		.activation = (unsigned)p->bound.latency,
		.interval = set->borrowers ? (unsigned)set->activate_min_interval : 0,
		.queues = set->borrowers ? (unsigned)set->changed_queues : 0,
		.once = (unsigned)p->bound.once,
		.window = p->response < RT_MODEL_TIME ? (unsigned)p->response : RT_MODEL_TIME,
	};
	for (size_t i = 0; i < set->n_tasks; i++) {
		ret->task[i].period = (unsigned)set->tasks[i].period;
		ret->task[i].deadline = (unsigned)set->tasks[i].deadline;
		ret->task[i].jitter = (unsigned)set->tasks[i].jitter;
		/* The margin is for what a job takes longer than was measured. */
		ret->task[i].longest = (unsigned)(plan->tasks[i].wcet * (100 + set->margin_percent) /
						  100);
	}
}

static void compare(const struct rt_plan *plan, const struct rt_seen *seen, struct tally *tally)
{
	for (size_t i = 0; i < plan->set->n_tasks; i++) {
		const struct rt_task_plan *t = &plan->tasks[i];

		CHECK(seen->worst[i] <= t->bound);
		tally->tasks++;
		tally->exact += seen->worst[i] == t->bound;
		tally->bound += (double)t->bound;
		tally->seen += seen->worst[i];
	}
}

static void play(struct tally *tally, const struct gpu_info *gpu)
{
	_cleanup_(rt_plan_freep) struct rt_plan *plan = NULL;
	struct rt_rig rig;
	struct rt_model model;
	struct rt_seen seen;

	draw_set(&rig);
	plan = rt_rig_plan(&rig, gpu);
	make_model(plan, &model);
	rt_model_explore(&model, &seen);
	tally->sets++;
	tally->states += seen.states;
	tally->disturbed += model.queues > 0;
	tally->inactive += model.activation > 0;
	for (size_t i = 0; i < model.n_tasks; i++)
		tally->jittery += model.task[i].jitter > 0;
	if (plan->verdict != RT_ACCEPTED) {
		CHECK(plan->verdict == RT_REJECTED);
		tally->cautious += !seen.missed;
		return;
	}
	tally->accepted++;
	CHECK(!seen.missed);
	compare(plan, &seen, tally);
}

TEST(what_is_accepted_never_misses_whatever_happens)
{
	unsigned seed = number("RT_SEED", (unsigned)time(NULL)), sets = number("RT_SETS", SETS);
	struct gpu_info gpu = radeon_vii("g");
	struct tally tally = {0};

	printf("RT_SEED=%u, %u sets\n", seed, sets);
	fflush(stdout);
	srand48((long)seed);
	for (unsigned i = 0; i < sets; i++)
		play(&tally, &gpu);
	printf("%u accepted; %u refused, of which %u never miss: too cautious; %zu states\n"
	       "%u with mask changes, %u to be activated, %u tasks with jitter\n"
	       "bounds of accepted tasks are %.2f x the worst seen, %u of %u are reached\n",
	       tally.accepted, tally.sets - tally.accepted, tally.cautious, tally.states,
	       tally.disturbed, tally.inactive, tally.jittery,
	       tally.seen > 0 ? tally.bound / tally.seen : 0, tally.exact, tally.tasks);
	if (sets < SETS)
		return;
	/* Else it would prove nothing. */
	CHECK(tally.accepted > sets / 10 && tally.sets - tally.accepted > sets / 10);
	CHECK(tally.disturbed > 0 && tally.inactive > 0 && tally.jittery > 0);
	CHECK(tally.exact > tally.tasks / 10);
}

/* The bound without one of its terms is not safe, and the model sees that. */
static bool misses(struct rt_model *model)
{
	struct rt_seen seen;

	rt_model_explore(model, &seen);
	return seen.missed;
}

TEST(the_model_finds_what_breaks_a_set_that_just_passes)
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

/* Two changes close together, the first of them late: what the "+ 1" is for. */
TEST(a_borrower_that_is_late_can_change_its_masks_twice_in_one_response)
{
	struct rt_model model = { .n_tasks = 1, .task = { { 12, 3, 0, 2 } },
				  .queues = 1, .interval = 10 };

	CHECK(misses(&model));
	model.task[0].deadline = 4;
	CHECK(!misses(&model));
}
