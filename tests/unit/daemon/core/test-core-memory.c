/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memory that runs out at any one allocation of the arbiter, in the states that random operations
 * lead to: a decision says so and changes nothing, a change keeps the promises, and with memory
 * everything is decided as the model expects.
 *
 *	MODEL_SEED=N …    the same run again
 */

#include <errno.h>

#include "arbiter-model.h"
#include "check.h"
#include "core/change/graphics.h"
#include "lack.h"
#include "lend-rig.h"
#include "seed.h"

#define STEPS 6000 /* of the model; between them one call is tried without memory */

/* A call, its arguments and what it made. */
struct call {
	struct model *model;
	struct caller caller;
	struct request request;
	uint64_t id;
	uint64_t now;
	struct result result;
	struct lease *proposal;
	struct effects effects;
};

/* ---- decisions: they change nothing --------------------------------------------------------- */

static int plan(struct call *call)
{
	return preempt_plan(call->model->arbiter, &call->caller, &call->request, &call->proposal,
			    &call->result);
}

static int plan_resize(struct call *call)
{
	return arbiter_plan_resize(call->model->arbiter, &call->caller, call->id, &call->request,
				   &call->proposal, &call->result);
}

static int plan_activate(struct call *call)
{
	const struct lease *lease = ledger_find(call->model->arbiter, call->id);

	return arbiter_plan_activate(call->model->arbiter, &call->caller, call->id,
				     lease && lease->state == STATE_INACTIVE, &call->proposal,
				     &call->result);
}

/* What a plan answers, moves included. */
static int plan_effects(struct call *call)
{
	return arbiter_plan_effects(call->model->arbiter, &call->caller, &call->request, call->now,
				    &call->proposal, &call->effects, &call->result);
}

typedef int (*decide_t)(struct call *call);

/* Without memory the result says so, or it is one that needs less, as without advice. */
static int decide_once(struct call *call, decide_t decide, long allocations)
{
	int r;

	lack_left = allocations;
	r = decide(call);
	CHECK(r >= 0 || (!call->proposal && call->result.sentence[0]));
	lease_free(call->proposal);
	call->proposal = NULL;
	effects_done(&call->effects);
	r = r < 0 && call->result.kind == RESULT_NO_MEMORY ? -ENOMEM : 0;
	result_done(&call->result);
	call->result = (struct result){ 0 };
	return r;
}

/* Each allocation of the decision fails in turn. Returns how often it failed for that. */
static unsigned decide_all(struct call *call, decide_t decide)
{
	unsigned failures = 0;

	for (long i = 0; i < LACK_MOST; i++) {
		int r = decide_once(call, decide, i);
		bool enough = lack_left >= 0;

		lack_left = -1;
		CHECK(r == 0 || !enough);
		failures += r != 0;
		if (enough) {
			model_check(call->model);
			return failures;
		}
	}
	CHECK(!"unbounded");
	return 0;
}

/* ---- changes: they are made, or put off ------------------------------------------------------ */

static void grant_next(struct call *call)
{
	struct lease *next;

	ledger_examine_again(call->model->arbiter, UINT64_MAX);
	if (arbiter_plan_next(call->model->arbiter, &next) == 1)
		lease_free(next);
	wait_try_again(call->model->arbiter);
}

static void grow(struct call *call)
{
	struct lease *next;

	if (arbiter_plan_growth(call->model->arbiter, call->now, &next) == 1)
		lease_free(next);
}

static void make_room(struct call *call)
{
	struct move_set set;

	if (arbiter_make_room(call->model->arbiter, call->now, &(unsigned){ ROOM_STEPS }, &set) > 0)
		move_set_done(&set);
}

static void observe(struct call *call)
{
	const struct observed rows[] = {
		{ .pid = 1000, .start_time = 1, .uid = 1, .kfd_gpu_id = 1, .queues = 1 },
		{ .pid = 1001, .start_time = 1, .uid = 2, .kfd_gpu_id = 2, .queues = 2 },
	};
	int r = arbiter_observe(call->model->arbiter, rows, 2);

	CHECK(r == 0 || r == -ENOMEM);
	model_forget_gone(call->model);
}

static void observe_masks(struct call *call)
{
	int r = arbiter_masks_observed(call->model->arbiter, NULL, 0);

	CHECK(r == 0 || r == -ENOMEM);
	if (r == 0)
		model_keep_rows(call->model, NULL, 0);
}

static void bind(struct call *call)
{
	int r = arbiter_bind(call->model->arbiter, call->id, 2000, false);

	CHECK(r == 0 || r == -ENOENT || r == -ENOSPC);
	if (r == 0)
		arbiter_bound_gone(call->model->arbiter, call->id, 2000);
}

static void copy_settings(struct call *call)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;

	(void)call;
	CHECK((settings_new(&settings) == 0) == (settings != NULL));
}

/* ---- the run --------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	decide_t decide; /* or */
	void (*change)(struct call *call);
	bool follows; /* from the last operation: tried in model_settle() */
} calls[] = {
	{ "plan", plan, NULL, false },
	{ "plan_resize", plan_resize, NULL, false },
	{ "plan_activate", plan_activate, NULL, false },
	{ "plan_effects", plan_effects, NULL, false },
	{ "observe", NULL, observe, false },
	{ "observe_masks", NULL, observe_masks, false },
	{ "settings", NULL, copy_settings, false },
	{ "bind", NULL, bind, false },
	{ "grant_next", NULL, grant_next, true },
	{ "grow", NULL, grow, true },
	{ "make room", NULL, make_room, true },
};
#define CALLS (sizeof(calls) / sizeof(*calls))

static unsigned failed[CALLS];

static void change_without(struct call *call, size_t i)
{
	lack_left = model_below(call->model, 6);
	calls[i].change(call);
	failed[i] += lack_left < 0;
	lack_left = -1;
	model_check(call->model);
}

static void unsettled(struct model *model)
{
	struct call call = { .model = model, .now = model->now };
	size_t i = model_below(model, CALLS);

	if (calls[i].follows)
		change_without(&call, i);
}

static void call_one(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;
	size_t i = model_below(model, CALLS);
	struct call call = { .model = model, .now = model->now };
	const struct lease *lease = NULL;

	if (arbiter->n_leases > 0)
		lease = arbiter->leases[model_below(model, (unsigned)arbiter->n_leases)];
	call.id = lease ? lease->id : 0;
	call.caller = caller_of(lease && model_chance(model, 90) ? lease->owner
								 : model_below(model, 4));
	model_random_request(model, &call.request);
	if (calls[i].decide)
		failed[i] += decide_all(&call, calls[i].decide);
	else if (!calls[i].follows)
		change_without(&call, i);
}

static void start(struct model *model)
{
	static const char *const names[] = { "0000:03:00.0", "0000:04:00.0" };

	for (size_t i = 0; i < 2; i++) {
		model->infos[i] = radeon_vii(names[i]);
		model->infos[i].kfd_gpu_id = (uint32_t)i + 1;
	}
	model->arbiter = arbiter_of(model->infos, 2);
	model->arbiter->verifies = true;
	model->unsettled = unsettled;
	model_set_policy(model);
}

TEST(random_calls_without_memory_keep_the_promises)
{
	static struct model model;

	model.first_seed = model.seed = seed_nth(SEED_OF_RUN("MODEL_SEED"), 0);
	start(&model);
	for (unsigned i = 0; i < check_rounds(STEPS, 5 * STEPS); i++) {
		model_step(&model);
		call_one(&model);
	}
	model_end(&model);
	arbiter_free(model.arbiter);
	for (size_t i = 0; i < CALLS; i++) {
		printf("%s: %u times without memory\n", calls[i].name, failed[i]);
		CHECK_REACHED(failed[i] > 0);
	}
}

/* ---- begin ------------------------------------------------------------------------------------- */

static int begin(long allocations)
{
	const struct gpu_info gpu = radeon_vii("0000:03:00.0");
	struct settings *settings = NULL;
	struct arbiter *arbiter = NULL;
	int r;

	CHECK(settings_new(&settings) == 0);
	lack_left = allocations;
	r = arbiter_new(settings, &gpu, 1, 1, &arbiter);
	CHECK((r == 0) == (arbiter != NULL));
	if (r < 0)
		settings_free(settings);
	arbiter_free(arbiter);
	return r;
}

TEST(arbiter_that_cannot_be_made_leaves_the_settings_to_its_caller)
{
	CHECK(lack_each("arbiter_new", begin) > 2);
}

/* ---- growth ------------------------------------------------------------------------------- */

/* One turn at the time for which the arbiter asked. */
static void next_turn(struct lending *l, long allocations)
{
	struct lease *next;

	l->now = max_u64(l->now, arbiter_next_deadline(l->s.arbiter));
	lack_left = allocations;
	if (arbiter_plan_growth(l->s.arbiter, l->now, &next) > 0)
		arbiter_commit(l->s.arbiter, next);
	allocations = lack_left;
	lack_left = -1;
	arbiter_lend(l->s.arbiter, l->now);
	lack_left = allocations;
}

/* A lease may have the CUs of one that has ended: memory runs out when the GPU is divided, or when the lease gets
 * its promised mask with a base that moves. */
static int grow_in_turn(bool promised, long allocations)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct lease *lease = borrow(&l, 1, 60), *other = reserve_as(&l, LAB, "cus=30");
	struct adaptation *adaptation = lease->partitions[0].adaptation;
	long left;

	tenant_of(&l.s, "vr")->reserved_queues = 1;
	follow_each(&l);
	release(l.s.arbiter, other->id);
	if (promised) {
		lease->lend.rests_usec = l.now + 10 * SECOND_USEC;
		pass(&l, 9 * SECOND_USEC);
		CHECK(cuset_count(&adaptation->promised) == 60);
		adaptation->promised_base = adaptation->base;
	}
	arbiter_lend(l.s.arbiter, l.now);
	next_turn(&l, allocations);
	left = lack_left;
	CHECK(arbiter_next_deadline(l.s.arbiter) > l.now);
	for (unsigned i = 0; i < 4 && cus_of(lease) < 60; i++)
		next_turn(&l, -1);
	CHECK(cus_of(lease) == 60);
	lack_left = left;
	return left < 0 ? -ENOMEM : 0;
}

static int divide_once(long allocations)
{
	return grow_in_turn(false, allocations);
}

static int promise_once(long allocations)
{
	return grow_in_turn(true, allocations);
}

TEST(lease_grows_later_where_memory_runs_out)
{
	CHECK(lack_each("a round of growth", divide_once) > 2);
	CHECK(lack_each("a promised mask", promise_once) > 2);
}

/* ---- clients of the graphics driver -------------------------------------------------------- */

TEST(clients_that_cannot_be_listed_leave_those_that_were)
{
	const struct gpu_info gpu = radeon_vii("0000:03:00.0");
	const struct observed_client row = { .process = { .pid = 10, .start_time = 1, .uid = 7 },
					     .device = "0000:03:00.0",
					     .vram = UINT64_C(1) << 30 };
	struct settings *settings = NULL;
	_cleanup_(arbiter_freep) struct arbiter *arbiter = NULL;
	const struct gpu_graphics *graphics;

	CHECK(settings_new(&settings) == 0);
	CHECK(arbiter_new(settings, &gpu, 1, 1, &arbiter) == 0);
	graphics = &arbiter->gpus[0].graphics;
	arbiter_observe_clients(arbiter, &row, 1, 1, true);
	CHECK(graphics->state == GRAPHICS_NONE && graphics->vram == row.vram);
	lack_left = 0;
	arbiter_observe_clients(arbiter, NULL, 0, 1, true);
	CHECK(lack_left == -1);
	CHECK(graphics->state == GRAPHICS_UNKNOWN && graphics->vram == row.vram);
	CHECK(graphics->n_clients == 1 && graphics->clients[0].pid == 10);
	arbiter_observe_clients(arbiter, NULL, 0, 1, true);
	CHECK(graphics->state == GRAPHICS_NONE && graphics->vram == 0 && graphics->n_clients == 0);
}
