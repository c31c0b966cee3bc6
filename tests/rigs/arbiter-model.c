/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arbiter-model.h"
#include "core/change/graphics.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ledger-check.h"
#include "refusal-check.h"

#define LEASES 40 /* that a run tries to keep alive at the most */

static unsigned input_byte(struct model *model)
{
	return model->input < model->input_end ? *model->input++ : 0;
}

unsigned model_below(struct model *model, unsigned n)
{
	unsigned number;

	if (!model->input)
		return (unsigned)rand_r(&model->seed) % n;
	number = input_byte(model);
	return (n > 256 ? number << 8 | input_byte(model) : number) % n;
}

bool model_chance(struct model *model, unsigned percent)
{
	return model_below(model, 100) < percent;
}

static const struct model *last; /* of model_step() */

void model_fail(const char *what)
{
	fprintf(stderr, "operation %" PRIu64 " from seed %u: %s\n", last ? last->now : 0,
		last ? last->first_seed : 0, what);
	abort();
}

void model_check(const struct model *model)
{
	char why[256];

	if (!ledger_check(model->arbiter, why, sizeof(why)))
		model_fail(why);
}

void model_carry_out(struct model *model)
{
	struct lease *lease;
	unsigned touched;

	while ((lease = ledger_take_touched(model->arbiter, &touched))) {
		if (!(touched & TOUCH_REMOVED))
			continue;
		model_count_ended(model, lease);
		lease_free(lease);
	}
}

/* ---- requests ------------------------------------------------------------------------ */

static void random_want(struct model *model, struct want *want)
{
	want_init(want);
	if (model_chance(model, 40))
		snprintf(want->gpu, sizeof(want->gpu), "%u", model_below(model, 5));
	if (model_chance(model, 85))
		want->cus = 1 + model_below(model, model_chance(model, 20) ? 330 : 40);
	if (model_chance(model, 20))
		want->shader_engines = 1 + model_below(model, 8);
	if (model_chance(model, 20))
		want->cus_min = 1 + model_below(model, 40);
	if (model_chance(model, 20))
		want->cus_max = 1 + model_below(model, 400);
	want->exact = model_chance(model, 10);
	want->any_shape = model_chance(model, 10);
	want->queues = model_chance(model, 50) ? 1 + model_below(model, 6) : 0;
	want->streams = model_chance(model, 10) ? model_below(model, 3) : 0;
	want->processes = model_chance(model, 20) ? 1 + model_below(model, 3) : 0;
	want->sdma_queues = model_chance(model, 20) ? model_below(model, 4) : 0;
	want->sdma_xgmi_queues = model_chance(model, 5) ? model_below(model, 8) : 0;
	want->vram = model_chance(model, 20) ? (uint64_t)model_below(model, 1000) << 24 : 0;
	want->cooperative = model_chance(model, 5);
	want->priority = model_chance(model, 10) ? model_below(model, 18) : PRIORITY_NORMAL;
	if (model_chance(model, 30))
		want->isolation = (enum isolation)model_below(model, 4);
}

void model_random_request(struct model *model, struct request *request)
{
	memset(request, 0, sizeof(*request));
	request->n_wants = model_chance(model, 20) ? 1 + model_below(model, 4) : 1;
	request->class = model_chance(model, 70) ? (int)model_below(model, 3) : -1;
	for (size_t i = 0; i < request->n_wants; i++)
		random_want(model, &request->wants[i]);
	model_random_lending(model, request);
	if (model_chance(model, 50))
		request->wait_usec = 1;
	request->requeue = model_chance(model, 30);
	if (model_chance(model, 10))
		snprintf(request->token, sizeof(request->token), "t%u", model_below(model, 5));
}

static void check_refusal(struct model *model, const struct result *result)
{
	if (result->kind == RESULT_OK || !result->sentence[0])
		model_fail("a refusal without a sentence");
	for (size_t i = 0; i < result->n_refusals; i++) {
		const char *lacks = refusal_lacks(&result->refusals[i]);

		if (lacks)
			fprintf(stderr, "%s: ", reason_names[result->refusals[i].reason]);
		if (lacks)
			model_fail(lacks);
		model->refused[result->refusals[i].reason]++;
	}
	if (result->kind == RESULT_NO_CAPACITY && result->n_refusals == 0)
		model_fail("nobody refused");
}

static void count_new(struct model *model, const struct request *request, struct lease *proposal)
{
	if (proposal->id <= model->last_id)
		model_fail("an id was used again");
	model->last_id = proposal->id;
	if (proposal->state == STATE_WAITING) {
		proposal->deadline_usec = model_chance(model, 50)
						  ? model->now + model_below(model, 300)
						  : UINT64_MAX;
		model->waited++;
		model->waited_gangs += request->n_wants > 1;
		return;
	}
	if (proposal->state == STATE_ACTIVATING && model_chance(model, 50))
		proposal->lend.give_up_usec = model->now + model_below(model, 100);
	model_check_grant(model, request, proposal);
	model_check_observed(model, proposal);
	model->granted[proposal->class]++;
	model->borrowed += proposal->adaptable;
	model->promised += partition_is_promised(&proposal->partitions[0]);
	model->gangs += proposal->n_partitions > 1;
}

void model_reserve(struct model *model, const struct caller *caller, const struct request *request)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct lease *lease = NULL;

	if (preempt_plan(model->arbiter, caller, request, &lease, &result) < 0) {
		check_refusal(model, &result);
	} else {
		count_new(model, request, lease);
		lease = arbiter_commit(model->arbiter, lease);
		arbiter_add_holder(model->arbiter, lease->id);
		if (model_chance(model, lease->adaptable ? 80 : 30))
			arbiter_bind(model->arbiter, lease->id,
				     (pid_t)(100 + model_below(model, 50)), false);
	}
}

static void reserve_one(struct model *model)
{
	struct caller caller = caller_of(model_below(model, 4));
	struct request request;

	model_random_request(model, &request);
	if (request.start_inactive && model_chance(model, 80))
		caller = caller_of(2); /* whose tenant may have realtime leases */
	if (!ledger_find_token(model->arbiter, caller.uid, request.token))
		model_reserve(model, &caller, &request);
}

/* ---- the other operations ------------------------------------------------------------ */

static struct lease *random_lease(struct model *model)
{
	size_t n = model->arbiter->n_leases;

	return n ? model->arbiter->leases[model_below(model, (unsigned)n)] : NULL;
}

static void resize_one(struct model *model)
{
	struct lease *lease = random_lease(model), *next = NULL;
	_cleanup_(result_done) struct result result = { 0 };
	struct request request;
	struct caller caller;

	if (!lease)
		return;
	caller = caller_of(model_chance(model, 90) ? lease->owner : 77);
	model_random_request(model, &request);
	if (model_chance(model, 90)) {
		request.n_wants = lease->n_partitions;
		for (size_t i = 0; i < request.n_wants; i++)
			strcpy(request.wants[i].gpu, "any");
	}
	for (size_t i = 0; i < request.n_wants; i++)
		if (!request.wants[i].cus)
			random_want(model, &request.wants[i]);
	if (lease->adaptable && model_chance(model, 60)) /* another base, often on borrowed CUs */
		for (size_t i = 0; i < lease->n_partitions; i++)
			request.wants[i] = (struct want){
				.gpu = "any",
				.cus_min = model_below(model, 2 * lease->partitions[i].count),
				.cus_max = model->arbiter->gpus[lease->partitions[i].gpu].cus,
				.queues = 1
			};
	if (arbiter_plan_resize(model->arbiter, &caller, lease->id, &request, &next, &result) < 0)
		check_refusal(model, &result);
	else if (arbiter_commit(model->arbiter, next))
		model->resized++;
}

static void end_one(struct model *model)
{
	struct lease *lease = random_lease(model);

	if (!lease || (lease->state == STATE_WAITING && model_chance(model, 80)))
		return;
	if (model_chance(model, 50))
		arbiter_holder_gone(model->arbiter, lease->id);
	else if (lease->n_bound > 0)
		arbiter_bound_gone(model->arbiter, lease->id, lease->bound[0]);
	else
		arbiter_end(model->arbiter, lease, RESULT_OK, "model");
}

static void observe(struct model *model)
{
	struct observed rows[6];
	struct lease *lease;
	unsigned n = model_below(model, 7);

	memset(rows, 0, sizeof(rows));
	for (unsigned i = 0; i < n; i++) {
		rows[i].pid = (pid_t)(100 + 10 * i + model_below(model, 10));
		rows[i].start_time = 1;
		rows[i].uid = model_below(model, 4);
		rows[i].kfd_gpu_id = 1 + model_below(model, 5);
		rows[i].queues = model_below(model, 4);
		rows[i].sdma_queues = model_below(model, 2);
		rows[i].sdma_xgmi_queues = model_below(model, 2);
		rows[i].vram = (uint64_t)model_below(model, 100) << 20;
	}
	if (arbiter_observe(model->arbiter, rows, n) < 0)
		model_fail("arbiter_observe");
	model_forget_gone(model);
	lease = random_lease(model);
	if (lease)
		arbiter_set_filtered(model->arbiter, lease, model_chance(model, 50));
	if (model_chance(model, 30))
		model_see_masks(model);
}

/* Processes that draw, or have a GPU open; now and then they cannot be observed. */
static void observe_clients(struct model *model)
{
	struct observed_client rows[3];
	unsigned n = model_below(model, 4);

	memset(rows, 0, sizeof(rows));
	for (unsigned i = 0; i < n; i++) {
		const struct gpu *gpu =
			&model->arbiter->gpus[model_below(model, (unsigned)model->arbiter->n_gpus)];

		rows[i].process.pid = (pid_t)(100 + 10 * i + model_below(model, 10));
		rows[i].process.start_time = 1;
		rows[i].process.uid = model_below(model, 4);
		snprintf(rows[i].device, sizeof(rows[i].device), "%.*s",
			 (int)strcspn(gpu->info.name, "/"), gpu->info.name);
		rows[i].busy.gfx = model_below(model, 2);
	}
	arbiter_observe_clients(model->arbiter, rows, n, 1000000, model_chance(model, 90));
}

/* ---- policy --------------------------------------------------------------------------- */

void model_set_policy(struct model *model)
{
	struct settings *settings;
	struct tenant *tenant;

	if (settings_new(&settings) < 0)
		model_fail("settings_new");
	settings->oversubscribe_besteffort = model->oversubscribe;
	settings->graphics = model_chance(model, 20) ? GRAPHICS_REFUSE_REALTIME : GRAPHICS_WARN;
	arbiter_set_settings(model->arbiter, settings);
	if (model_chance(model, 90)) {
		tenant = add_tenant(model->arbiter, "lab", 1, CLASS_GUARANTEED);
		tenant->max_cus = (struct limit){ LIMIT_PERCENT, 60 + model_below(model, 40) };
		if (model_chance(model, 50))
			tenant->max_gpus = (struct limit){ LIMIT_COUNT, 1 + model_below(model, 3) };
	}
	tenant = add_tenant(model->arbiter, "vr", 2,
			    model_chance(model, 90) ? CLASS_REALTIME : CLASS_GUARANTEED);
	tenant->priority = PRIORITY_HIGH;
	tenant->alone = model_chance(model, 30);
	tenant->exclusive = model_below(model, EXCLUSIVE_ACTIVE + 1);
	tenant->max_pause_usec = model_below(model, 50);
	tenant->max_queues = (struct limit){ LIMIT_COUNT, 8 + model_below(model, 16) };
	if (model_chance(model, 30)) {
		tenant->reserved_engines = 1;
		tenant->reserved_queues = 2;
	}
	for (size_t i = 0; i < model->arbiter->settings->n_tenants; i++)
		model->arbiter->settings->tenants[i].max_wait_usec =
			1 + model_below(model, MODEL_MAX_WAIT);
	model_set_lending(model, model->arbiter->settings);
}

static void drain(struct model *model)
{
	char gpu[12];

	snprintf(gpu, sizeof(gpu), "%u", model_below(model, 5));
	arbiter_drain(model->arbiter, gpu, model_chance(model, 30));
}

/* ---- all of them ---------------------------------------------------------------------- */

static void operate(struct model *model)
{
	unsigned what = model_below(model, 100);
	struct lease *lease = random_lease(model);

	if (what < 40 && model->arbiter->n_leases < LEASES)
		reserve_one(model);
	else if (what < 48)
		resize_one(model);
	else if (what < 58)
		model_lend_one(model);
	else if (what < 74)
		end_one(model);
	else if (what < 84 && lease)
		arbiter_acknowledge(model->arbiter, lease->id,
				    lease->generation -
					    (lease->generation > 1 && model_chance(model, 20)));
	else if (what < 94)
		model_chance(model, 50) ? observe(model) : observe_clients(model);
	else if (what < 97)
		drain(model);
	else if (what < 98 && model_chance(model, 20))
		model_set_policy(model);
	else if (what < 99 && model_chance(model, 20))
		model_restart(model);
	else
		model_expire(model);
}

/* The driver resets a GPU now and then; that lasts one step. */
static void reset_gpus(struct model *model, bool begin)
{
	for (unsigned i = 0; i < model->arbiter->n_gpus; i++) {
		const struct gpu *gpu = &model->arbiter->gpus[i];

		if (gpu->reset_until_usec > 0)
			arbiter_gpu_reset_ended(model->arbiter, i);
		else if (begin && !gpu->absent && model_below(model, 200) == 0)
			arbiter_gpu_reset(model->arbiter, i, model->now);
	}
}

/* What its queues may have is occupied. */
static void check_occupied(struct model *model, const struct lease *lease)
{
	struct model_had *had = &model->had[lease->id % ARRAY_SIZE(model->had)];
	/* What no process can give back counts as returned at a deadline. */
	bool same = had->lease == lease->id && had->acknowledged == lease->acknowledged &&
		    !lease->lend.unbound;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];
		struct cuset *cus = &had->on[i].cus;

		if (!same || had->on[i].gpu != p->gpu || cuset_equal(&p->cus, &p->occupied))
			*cus = (struct cuset){ 0 };
		cuset_add(cus, &p->cus);
		had->on[i].gpu = p->gpu;
		if (!cuset_within(cus, &p->occupied))
			model_fail("queues have CUs that are not occupied");
	}
	/* Until it is granted, no queue has the mask. */
	had->lease = lease->lend.never_granted || lease->n_partitions == 0 ? 0 : lease->id;
	had->acknowledged = lease->acknowledged;
}

void model_step(struct model *model)
{
	last = model;
	model->now++;
	reset_gpus(model, true);
	operate(model);
	model_check(model);
	model_settle(model);
	for (size_t i = 0; i < model->arbiter->n_leases; i++)
		check_occupied(model, model->arbiter->leases[i]);
	if (!model_chance(model, 1))
		return;
	reset_gpus(model, false);
	model_settle(model);
	model_check_progress(model);
}

void model_end(struct model *model)
{
	while (model->arbiter->n_leases > 0) {
		arbiter_end(model->arbiter, model->arbiter->leases[0], RESULT_OK, "end");
		if (arbiter_observe(model->arbiter, NULL, 0) < 0)
			model_fail("arbiter_observe");
		model_carry_out(model);
	}
	arbiter_lend(model->arbiter, model->now);
	for (size_t i = 0; i < model->arbiter->n_gpus; i++) {
		const struct gpu *gpu = &model->arbiter->gpus[i];

		if (!cuset_empty(&gpu->taken) || !cuset_empty(&gpu->shared) ||
		    gpu_cus_free(gpu) != gpu->cus || gpu->charged.queues || gpu->charged.vram ||
		    gpu->n_partitions)
			model_fail("something was not given back");
	}
	model_check(model);
}
