/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Lending in the model: who borrows, gives way, is activated, revoked, and believed. */

#include "arbiter-model.h"
#include "core/change/graphics.h"

void model_set_lending(struct model *model, struct settings *settings)
{
	settings->activate_grace_usec = 20;
	settings->activate_min_interval_usec = 10;
	settings->grow_delay_usec = 5;
	settings->enforce_delay_usec = 10;
	for (size_t i = 0; i < settings->n_tenants; i++)
		settings->tenants[i].enforce = ENFORCE_STEP_REPORT + model_below(model, 3);
	for (size_t i = 0; i < settings->n_tenants; i++)
		settings->tenants[i].preempt = model_chance(model, 50);
	model_set_drift(model, settings);
}

/* What no adaptable lease may ask for is left in now and then: it is refused. */
void model_random_lending(struct model *model, struct request *request)
{
	request->start_inactive = model_chance(model, 15);
	request->adaptable = !request->start_inactive && model_chance(model, 20);
	request->exclusive = model_chance(model, 5);
	if (model_chance(model, 5))
		return;
	if (request->start_inactive || request->exclusive)
		request->class = CLASS_REALTIME;
	if (!request->adaptable)
		return;
	request->class = CLASS_BESTEFFORT;
	for (size_t i = 0; i < request->n_wants; i++) {
		struct want *want = &request->wants[i];

		want->exact = want->any_shape = false;
		want->shader_engines = 0;
		if (model_chance(model, 50)) { /* as run does: a small base, and all it can get */
			want->cus = want->cus_min = 1 + model_below(model, 8);
			want->cus_max = 400;
		}
		if (want->isolation == ISOLATION_SHARED)
			want->isolation = ISOLATION_CU;
	}
}

static struct lease *random_lease(struct model *model)
{
	size_t n = model->arbiter->n_leases;

	return n ? model->arbiter->leases[model_below(model, (unsigned)n)] : NULL;
}

static void expect(const struct result *result, int r, bool possible, const char *what)
{
	if (r >= 0 && !possible)
		model_fail(what);
	if (r < 0 && (result->kind == RESULT_OK || !result->sentence[0]))
		model_fail("refused without a sentence");
}

static void activate_one(struct model *model, struct lease *lease)
{
	bool own = model_chance(model, 90), active = model_chance(model, 60);
	struct caller caller = caller_of(own ? lease->owner : 77);
	enum lease_state was = lease->state;
	_cleanup_(result_done) struct result result = { 0 };
	int r;

	r = set_active(model->arbiter, &caller, lease->id, active, &result);
	expect(&result, r,
	       own && (active ? was == STATE_INACTIVE
			      : was == STATE_GRANTED || was == STATE_ACTIVATING),
	       "activated what cannot be");
	model->activated += r >= 0 && active;
}

static void revoke_one(struct model *model, const struct lease *lease)
{
	_cleanup_(result_done) struct result result = { 0 };
	uint64_t id = lease->id, before = lease->deadline_usec;
	enum lease_state was = lease->state;
	int r;

	r = arbiter_revoke(model->arbiter, id, model->now, model_below(model, 60), "model",
			   &result);
	expect(&result, r, was != STATE_ENDING, "revoked what ends already");
	if (r >= 0 && was == STATE_REVOKING &&
	    ledger_find(model->arbiter, id)->deadline_usec >= before)
		model_fail("a second revocation put the end off");
	model->revoked += r >= 0;
}

/* Queues of one bound process, with the mask of now or with all that its lease ever had. */
static size_t add_rows(struct model *model, const struct lease *lease, struct observed_mask *rows)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		rows[i] = (struct observed_mask){
			.pid = lease->bound[0],
			.kfd_gpu_id = model->arbiter->gpus[p->gpu].info.kfd_gpu_id,
			.cus = p->cus,
			.active = !p->paused || model_chance(model, 30)
		};
		if (model_chance(model, 60))
			rows[i].cus = p->occupied;
	}
	return lease->n_partitions;
}

static void observe_masks(struct model *model, const struct observed_mask *rows, size_t n)
{
	if (arbiter_masks_observed(model->arbiter, rows, n) < 0)
		model_fail("arbiter_masks_observed");
	model_keep_rows(model, rows, n);
	arbiter_judge_drift(model->arbiter, model->now);
	for (size_t i = 0; i < model->arbiter->n_leases; i++)
		model->drifted += (lease_drifts(model->arbiter->leases[i]) & 1U << DRIFT_MASK) != 0;
}

void model_see_masks(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;
	struct observed_mask rows[MODEL_QUEUES];
	bool urgent;
	size_t n = 0;

	if (!arbiter->verifies ||
	    (!arbiter_wants_masks(arbiter, &urgent) && model_chance(model, 60)))
		return;
	if (model_chance(model, 2)) {
		observe_masks(model, NULL, 0);
		return;
	}
	for (size_t i = 0; i < arbiter->n_leases && n + 4 <= 32; i++)
		if (arbiter->leases[i]->n_bound > 0 && arbiter->leases[i]->n_partitions <= 4)
			n += add_rows(model, arbiter->leases[i], &rows[n]);
	if (model_chance(model, 80))
		n += model_add_processes(model, &rows[n], MODEL_QUEUES - n);
	observe_masks(model, rows, n);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		model->untrue += arbiter->leases[i]->verify.false_ack;
}

void model_lend_one(struct model *model)
{
	struct lease *lease = random_lease(model);
	unsigned what = model_below(model, 100);

	if (!lease || what < 30)
		model_see_masks(model);
	else if (what < 90)
		activate_one(model, lease);
	else
		revoke_one(model, lease);
}

/* ---- all that becomes of it ------------------------------------------------------------- */

static bool is_enforce_step_allowed(const struct model *model, const struct lease *lease,
				    enum enforce_step enforce_step)
{
	const struct settings *settings = model->arbiter->settings;

	for (size_t i = 0; i < settings->n_tenants; i++)
		if (strcmp(settings->tenants[i].name, lease->tenant) == 0)
			return enforce_step <= settings->tenants[i].enforce || lease->enforce.kill;
	return enforce_step == ENFORCE_STEP_REPORT || lease->enforce.kill;
}

static void enforce(struct model *model)
{
	struct lease *lease;
	enum enforce_step enforce_step;

	while ((enforce_step = arbiter_next_enforce_step(model->arbiter, model->now, &lease))) {
		if (!is_enforce_step_allowed(model, lease, enforce_step))
			model_fail("forced further than its tenant's policy lets");
		if (!lease->adaptable && !lease->revoked)
			model_fail("forced, and nobody asked it to give anything back");
		lease->enforce.frozen |= enforce_step == ENFORCE_STEP_FREEZE;
		model->forced[enforce_step]++;
	}
	arbiter_forget_frozen(model->arbiter);
	for (size_t i = 0; i < model->arbiter->n_leases; i++)
		if (model->arbiter->leases[i]->enforce.frozen &&
		    model->arbiter->leases[i]->enforce.step < ENFORCE_STEP_FREEZE)
			model_fail("frozen, and no step against it is due");
}

static bool may_be_revoked(const struct model *model, const struct lease *lease,
			   enum lease_class lease_class)
{
	const struct settings *settings = model->arbiter->settings;

	for (size_t i = 0; i < settings->n_tenants; i++)
		if (strcmp(settings->tenants[i].name, lease->tenant) == 0)
			return settings->tenants[i].preempt && lease->class < lease_class;
	return false;
}

/* What the leases were revoked for, and their states, before a step. */
struct revoked {
	uint64_t by[256], states[256];
	size_t n, waiting;
};

static void note_revoked(const struct arbiter *arbiter, struct revoked *ret)
{
	ret->n = arbiter->n_leases;
	ret->waiting = arbiter->n_waiting;
	if (ret->n > 256)
		model_fail("more leases than expected");
	for (size_t i = 0; i < ret->n; i++) {
		ret->by[i] = arbiter->leases[i]->revoked_for;
		ret->states[i] = arbiter->leases[i]->state;
	}
}

/* Preemption revokes for a higher class only, and only what policy allows. */
static void check_revoked(struct model *model, const struct revoked *before)
{
	const struct arbiter *arbiter = model->arbiter;
	size_t n = arbiter->n_leases;

	if (before->n - n != before->waiting - arbiter->n_waiting)
		model_fail("preemption removed a lease");
	if (n != before->n) /* a request that may not wait, and no lease makes room for it */
		return;
	for (size_t i = 0; i < n; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct lease *by = ledger_find(arbiter, lease->revoked_for);

		if (lease->revoked_for && lease->state == STATE_REVOKING &&
		    (!by || by->state != STATE_WAITING))
			model_fail("revoked for a lease that does not wait");
		model->kept += before->by[i] && !lease->revoked_for;
		if (before->by[i] == lease->revoked_for)
			continue;
		if (lease->revoked_for && !may_be_revoked(model, lease, by->class))
			model_fail("revoked against policy or for its own class");
		if (!lease->revoked_for && before->states[i] == STATE_REVOKING &&
		    lease->state != STATE_GRANTED && lease->state != STATE_ACTIVATING)
			model_fail("not revoked any more, and neither granted nor activating");
		model->preempted += lease->revoked_for != 0;
	}
}

/* None moves or grows unless its holder has acknowledged everything; none moves back. */
static void check_adaptable(enum step_kind kind, const struct lease *lease,
			    const struct lease *next)
{
	if (!lease->adaptable || lease->class == CLASS_REALTIME ||
	    lease->generation != lease->acknowledged)
		model_fail("a lease is changed that may not be, or has not followed yet");
	for (size_t k = 0; kind == STEP_MOVE && k < lease->n_partitions; k++)
		if (cuset_equal(&next->partitions[k].adaptation->base,
				&lease->partitions[k].adaptation->moved_from))
			model_fail("a lease moves back");
}

static void commit_one(struct model *model, enum step_kind kind, struct lease *next)
{
	const struct lease *lease = ledger_find(model->arbiter, next->id);
	unsigned count = lease->n_partitions > 0 ? lease->partitions[0].count : 0;

	if (kind == STEP_MOVE || kind == STEP_GROW)
		check_adaptable(kind, lease, next);
	if (kind == STEP_REQUEUE && !lease->lend.never_granted &&
	    (lease->state != STATE_REVOKING || lease->observed.processes > 0))
		model_fail("a lease waits again that has not returned everything");
	if (kind == STEP_GRANT)
		model_check_waited(model, lease, next);
	lease = arbiter_commit(model->arbiter, next);
	if (kind == STEP_GRANT)
		model_check_granted(model, lease);
	if (kind == STEP_REQUEUE &&
	    (lease->state != STATE_WAITING || lease->n_partitions > 0 || lease->revoked))
		model_fail("revoked, and not as if it had always waited");
	model->requeued += kind == STEP_REQUEUE;
	model->moved += kind == STEP_MOVE;
	model->grown += kind == STEP_GROW && lease->partitions[0].count > count;
}

/* The next step, as the daemon takes it. false: there is none. */
static bool take_step(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;
	struct revoked before;
	struct move_set set;
	enum step_kind kind;

	note_revoked(arbiter, &before);
	arbiter->round_steps = model_chance(model, 50) ? 1 : UINT64_MAX;
	kind = arbiter_next_step(arbiter, model->now, false, &(unsigned){ UINT_MAX }, &set);
	if (kind == STEP_NONE) {
		check_revoked(model, &before);
		return arbiter->paused || arbiter->round_steps == 0;
	}
	for (size_t i = 0; i < set.n_first; i++) {
		commit_one(model, kind, TAKE_PTR(set.next[i]));
		if (kind == STEP_MOVE)
			model_check(model);
	}
	model->steps += set.n_first < set.n;
	move_set_done(&set);
	return true;
}

static void unsettled(struct model *model)
{
	if (model->unsettled)
		model->unsettled(model);
}

void model_settle(struct model *model)
{
	unsigned rounds = 0;
	bool more;

	do {
		if (++rounds > 10000)
			model_fail("it never settles");
		arbiter_judge_drift(model->arbiter, model->now);
		enforce(model);
		arbiter_lend(model->arbiter, model->now);
		model_carry_out(model);
		unsettled(model);
		more = take_step(model);
		model_check(model);
	} while (more || model->arbiter->touched);
	model_check_waiting(model);
}

static bool any_awaits(const struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_awaits_cus(arbiter->leases[i]))
			return true;
	return false;
}

/* All holders follow what they were told, and leases that end have let go. */
static void all_follow(struct model *model)
{
	struct arbiter *arbiter = model->arbiter;

	if (arbiter_observe(arbiter, NULL, 0) < 0)
		model_fail("arbiter_observe");
	model_forget_gone(model);
	for (size_t i = arbiter->n_leases; i-- > 0;)
		if (arbiter->leases[i]->adaptable)
			arbiter_acknowledge(arbiter, arbiter->leases[i]->id,
					    arbiter->leases[i]->generation);
	if (arbiter->verifies)
		observe_masks(model, NULL, 0);
	arbiter_observe_clients(arbiter, NULL, 0, 0, true);
	model_settle(model);
}

/* Then nothing is left to wait for. A lease that waited may be granted in any of these rounds: it is
 * followed in turn, after one step of moves or two, and paused, too. */
void model_check_progress(struct model *model)
{
	size_t most = 3 + 2 * model->arbiter->n_leases;

	for (size_t round = 0; round < 3 || any_awaits(model->arbiter); round++) {
		if (round == most)
			model_fail("all gave way, and one is not granted");
		all_follow(model);
	}
	model->settled++;
}
