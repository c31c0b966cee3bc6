/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "core/change/arbiter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/decide/admit.h"
#include "core/decide/borrow.h"
#include "core/ledger/cover.h"
#include "core/policy/request.h"

/* The outcome of examining a waiting lease. */
enum examined { EXAMINED_WAITS, EXAMINED_FITS, EXAMINED_ENDED };

/* ---- one lease --------------------------------------------------------------------- */

static void take_steps(struct arbiter *arbiter, struct lease *lease, unsigned steps)
{
	lease->wait.steps += steps;
	arbiter->round_steps -= arbiter->round_steps < steps ? arbiter->round_steps : steps;
}

/* The steps of deciding once more. */
static void take_decision(struct arbiter *arbiter, struct lease *lease)
{
	take_steps(arbiter, lease, gang_steps(arbiter, lease->request, false));
}

/* Would the lease be granted without itself in the ledger, or (alone) without the leases of all other users? Without
 * memory to find out: false. */
static bool fits_in_copy(struct arbiter *arbiter, struct lease *lease, bool alone,
			 struct partition *partitions)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct arbiter copy;
	uint64_t unused;
	int r;

	take_decision(arbiter, lease);
	take_steps(arbiter, lease, (unsigned)arbiter->n_gpus); /* a microsecond to copy each */
	if (ledger_copy(arbiter, &copy) < 0)
		return false;
	if (alone)
		ledger_leave_user(&copy, lease->owner);
	else
		ledger_leave_out(&copy, lease);
	r = plan_waiting(&copy, lease, lease->owner, lease->request, partitions, &unused, &result);
	ledger_copy_done(&copy);
	return r >= 0;
}

static bool any_waits_in_vain(const struct arbiter *arbiter, const struct partition *p, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= borrow_waits_in_vain(arbiter, &p[i]);
	return any;
}

/* Has a scan of processes, or one of queue descriptors, shown queues of its processes? They may cover any CUs, and
 * a new grant forgets that the lease drifts. */
static bool has_queues(const struct arbiter *arbiter, const struct lease *lease)
{
	size_t i = 0;

	while (i < arbiter->n_covers && arbiter->covers[i].lease != lease->id)
		i++;
	return lease->observed.processes > 0 || i < arbiter->n_covers;
}

bool wait_begins_elsewhere(struct arbiter *arbiter, struct lease *lease)
{
	struct partition partitions[REQUEST_WANTS];

	if (lease->state != STATE_ACTIVATING || !lease->lend.never_granted || !lease->request ||
	    has_queues(arbiter, lease) || lease->lend.late_seen == arbiter->times_late ||
	    !any_waits_in_vain(arbiter, lease->partitions, lease->n_partitions) ||
	    lease->wait.examined == arbiter->changes || arbiter->round_steps == 0)
		return false;
	lease->wait.examined = arbiter->changes;
	return fits_in_copy(arbiter, lease, false, partitions) &&
	       !any_waits_in_vain(arbiter, partitions, lease->n_partitions);
}

static void wait_on(struct arbiter *arbiter, struct lease *lease, const struct refusal *refusal,
		    uint64_t candidates, bool over_quota)
{
	struct partition partitions[REQUEST_WANTS];
	/* It bars no GPU to other users where leases of its own user are in its way. */
	bool may_bar = lease->wait.passed >= LEASE_PASSES_MAX && !over_quota &&
		       fits_in_copy(arbiter, lease, true, partitions);
	char before[REQUEST_TEXT];

	memcpy(before, lease->reason, sizeof(before));
	lease_set_refusal(lease, refusal);
	if (strcmp(before, lease->reason) != 0)
		ledger_touch(arbiter, lease, TOUCH_REASON);
	queue_judged(arbiter, lease, candidates, over_quota, may_bar);
}

/* usec: until then leases move for it; 0: none do. */
static void set_moves_usec(struct arbiter *arbiter, struct lease *lease, uint64_t usec)
{
	if (!usec != !lease->wait.moves_usec)
		ledger_touch(arbiter, lease, TOUCH_REASON);
	lease->wait.moves_usec = usec;
}

/* ---- one round through the queue --------------------------------------------------- */

/* Is every candidate barred by a lease that ranks before this one? */
static bool is_barred(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct rank rank = lease_rank(lease);

	FOR_EACH_BIT(g, lease->wait.candidates) {
		const struct rank *barrier = &arbiter->gpus[g].barrier.rank;

		if (!barrier->id || !queue_before(barrier, &rank))
			return false;
	}
	return true;
}

/* Does only what becomes free on one of its candidates help the lease? What a floor keeps free, and on which GPU,
 * depends on where its tenant holds leases: other GPUs become candidates. And a request within its own floor
 * passes a barrier. */
static bool needs_candidates(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->wait.candidates && !lease->wait.over_quota &&
	       !floor_configured(arbiter->settings);
}

/* When leases of its user end, max-gpus may allow other GPUs. */
static bool is_bound_to_gpus(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->max_gpus.kind != LIMIT_NONE;
}

bool wait_is_examined(const struct arbiter *arbiter, const struct lease *lease)
{
	const uint64_t examined = lease->wait.examined;
	uint64_t gpus = lease->wait.candidates;

	if (examined == arbiter->changes)
		return true;
	if (examined < arbiter->freed_all || !needs_candidates(arbiter, lease))
		return false;
	while (gpus && arbiter->freed[__builtin_ctzll(gpus)] <= examined)
		gpus &= gpus - 1;
	return !gpus || (is_barred(arbiter, lease) && !is_bound_to_gpus(arbiter, lease));
}

bool wait_precedes(const struct arbiter *arbiter, enum lease_class lease_class, uid_t uid)
{
	const struct rank rank = { lease_class, queue_next_turn(arbiter, lease_class, uid),
				   arbiter->next_id };

	if (!arbiter_in_round(arbiter))
		return false;
	for (size_t i = queue_count_before(arbiter, &rank); i-- > 0;)
		if (!wait_is_examined(arbiter, arbiter->waiting[i]))
			return true;
	return false;
}

static bool is_equal(const struct lease *a, const struct lease *b)
{
	return a->class == b->class && lease_same_account(a, b) && a->adaptable == b->adaptable &&
	       a->request->exclusive == b->request->exclusive &&
	       a->request->start_inactive == b->request->start_inactive &&
	       request_wants_equal(a->request, b->request);
}

/* Are there queues outside of their lease, or processes that draw? They are in the way of all leases but those of
 * their own process. */
static bool any_disturbs(const struct arbiter *arbiter)
{
	const bool drawn = arbiter->settings->graphics == GRAPHICS_REFUSE_REALTIME;

	FOR_EACH_GPU(gpu, arbiter)
		if (!cuset_empty(&gpu->outside) || (drawn && gpu->graphics.state == GRAPHICS_DRAWN))
			return true;
	return false;
}

/* So many leases before a waiting one are compared with it: equal ones are mostly of one array of jobs, in a row or in
 * turn with those of other users. */
#define NOT_FAR 64U

/* An equal lease before it in the queue that was examined since something became free: it waits for the same reason. */
static const struct lease *find_equal(const struct arbiter *arbiter, const struct lease *lease)
{
	size_t at = queue_position(arbiter, lease) - 1, end = beyond(at, NOT_FAR);

	if (any_disturbs(arbiter))
		return NULL;
	while (at-- > end)
		if (is_equal(arbiter->waiting[at], lease) &&
		    wait_is_examined(arbiter, arbiter->waiting[at]))
			return arbiter->waiting[at];
	return NULL;
}

/* CUs that the want is never granted less than; 0: that depends on more than its numbers. */
static unsigned least_cus(const struct want *want)
{
	if (want_has_percent(want))
		return 0;
	return want->exact && want->cus_min == 0 ? want->cus : want_least_cus(want, want->cus);
}

/* CUs of each GPU that no lease has claimed. */
static void count_free(const struct arbiter *arbiter, unsigned ret[static REQUEST_WANTS])
{
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		ret[i] = arbiter->gpus[i].cus - cuset_count(&arbiter->gpus[i].taken);
}

/* Do fewer GPUs have as many free CUs as its least want needs, whatever their shape, than it has wants? */
static bool lacks_cus(const struct arbiter *arbiter, const struct lease *lease,
		      const unsigned *free)
{
	const struct request *request = lease->request;
	unsigned least = UINT_MAX;
	size_t gpus = 0;

	for (size_t i = 0; i < request->n_wants; i++)
		least = min_u(least, least_cus(&request->wants[i]));
	FOR_EACH_BIT(g, lease->wait.candidates)
		gpus += free[g] >= least;
	return needs_candidates(arbiter, lease) && gpus < request->n_wants;
}

/* Does the lease lack CUs as before, because nothing changed on the GPU that its refusal tells of? gpuarbd examines a
 * lease that may bar GPUs in full. */
static bool still_lacks_cus(const struct arbiter *arbiter, const struct lease *lease,
			    const unsigned *free)
{
	const struct refusal *refusal = &lease->refusal;
	int gpu = ledger_find_gpu(arbiter, refusal->gpu);

	return refusal->resource == RESOURCE_CUS && lease->wait.passed < LEASE_PASSES_MAX &&
	       gpu >= 0 &&
	       max_u64(arbiter->freed_all, arbiter->freed[gpu]) <= lease->wait.examined &&
	       lacks_cus(arbiter, lease, free) && !is_bound_to_gpus(arbiter, lease);
}

static int examine_now(struct arbiter *arbiter, struct lease *lease, struct partition *partitions)
{
	_cleanup_(result_done) struct result result = { 0 };
	uint64_t candidates;

	take_decision(arbiter, lease);
	if (plan_waiting(arbiter, lease, lease->owner, lease->request, partitions, &candidates,
			 &result) >= 0)
		return EXAMINED_FITS;
	if (result.kind == RESULT_NO_MEMORY)
		return -ENOMEM;
	if (result.kind == RESULT_QUOTA_EXCEEDED)
		take_decision(arbiter, lease); /* again, as if its user held nothing */
	if (plan_may_wait(arbiter, lease, &result)) {
		wait_on(arbiter, lease, &result.refusals[result.deciding], candidates,
			result.kind == RESULT_QUOTA_EXCEEDED);
		return EXAMINED_WAITS;
	}
	arbiter_end(arbiter, lease, result.kind, result.sentence);
	return EXAMINED_ENDED;
}

/* EXAMINED_FITS: partitions is what it gets. */
static int examine(struct arbiter *arbiter, struct lease *lease, const unsigned *free,
		   struct partition *partitions)
{
	const struct lease *same;

	if (still_lacks_cus(arbiter, lease, free)) {
		take_steps(arbiter, lease, 1 + (unsigned)lease->request->n_wants / 8);
		return EXAMINED_WAITS;
	}
	same = find_equal(arbiter, lease);
	if (!same)
		return examine_now(arbiter, lease, partitions);
	wait_on(arbiter, lease, &same->refusal, same->wait.candidates, same->wait.over_quota);
	return EXAMINED_WAITS;
}

/* The next version of a lease that fits. */
static int make_granted(const struct arbiter *arbiter, const struct lease *lease,
			const struct partition *partitions, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	int r;

	r = lease_next_version(lease, 0, &next);
	if (r < 0)
		return r;
	next->lend.give_up_usec = lease->deadline_usec;
	next->deadline_usec = UINT64_MAX;
	memset(&next->wait, 0, sizeof(next->wait));
	next->wait.turn = lease->wait.turn;
	next->wait.examined = lease->wait.examined;
	next->wait.steps = lease->wait.steps;
	r = plan_grant(arbiter, next, partitions);
	if (r < 0)
		return r;
	if (!next->lend.never_granted)
		next->lend.give_up_usec = UINT64_MAX;
	*ret = TAKE_PTR(next);
	return 0;
}

/* Would the lease be granted what became free in this round? Leases that rank before it may not have been
 * examined since. */
static bool is_early(const struct arbiter *arbiter, const struct lease *lease,
		     const struct partition *partitions)
{
	bool early = false;

	for (size_t i = 0; i < lease->request->n_wants; i++)
		early |= arbiter->freed[partitions[i].gpu] > arbiter->round;
	return early;
}

static void begin_round(struct arbiter *arbiter)
{
	arbiter->next_examined = 0;
	arbiter->round = arbiter->changes;
}

/* Examines the leases that are left in this round. 1: *ret is granted; 0: none is left. -EAGAIN: the steps are
 * used up. -ENOMEM. */
static int examine_rest(struct arbiter *arbiter, struct lease **ret)
{
	struct partition partitions[REQUEST_WANTS];
	unsigned free[REQUEST_WANTS];
	int r;

	count_free(arbiter, free);
	while (arbiter->next_examined < arbiter->n_waiting) {
		struct lease *lease = arbiter->waiting[arbiter->next_examined];
		const uint64_t changes = arbiter->changes;

		if (wait_is_examined(arbiter, lease)) {
			arbiter->next_examined++;
			continue;
		}
		if (arbiter->round_steps == 0)
			return -EAGAIN;
		arbiter->next_examined++; /* queue_remove() corrects it */
		r = examine(arbiter, lease, free, partitions);
		if (r < 0)
			return r;
		if (r == EXAMINED_WAITS)
			lease->wait.examined = changes;
		if (r == EXAMINED_FITS && is_early(arbiter, lease, partitions)) {
			begin_round(arbiter);
		} else if (r == EXAMINED_FITS) {
			r = make_granted(arbiter, lease, partitions, ret);
			return r < 0 ? r : 1;
		}
	}
	return 0;
}

/* Calls that waited for the end of a round that was paused are served before the next one begins. */
static void end_round(struct arbiter *arbiter)
{
	arbiter->examined = arbiter->round;
	arbiter->next_examined = 0;
	arbiter->paused &= arbiter->examined != arbiter->changes;
	arbiter->round_steps = arbiter->paused ? 0 : arbiter->round_steps;
}

int arbiter_plan_next(struct arbiter *arbiter, struct lease **ret)
{
	while (arbiter->examined != arbiter->changes &&
	       !(arbiter->paused && arbiter->round_steps == 0)) {
		int r;

		if (arbiter->next_examined == 0)
			begin_round(arbiter);
		r = examine_rest(arbiter, ret);
		if (r == 0)
			end_round(arbiter);
		else if (r == -EAGAIN)
			arbiter->paused = true;
		else if (r < 0)
			wait_try_again(arbiter);
		if (r > 0 || r == -ENOMEM)
			return r > 0;
	}
	return 0;
}

void wait_try_again(struct arbiter *arbiter)
{
	arbiter->next_examined = 0;
	arbiter->paused = false;
}

/* The event for the end of a reset may be lost; and a GPU that did not survive it would bar its leases
 * for ever. */
static void expire_resets(struct arbiter *arbiter, uint64_t now_usec)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		if (arbiter->gpus[i].reset_until_usec <= now_usec)
			arbiter_gpu_reset_ended(arbiter, i);
}

void arbiter_expire(struct arbiter *arbiter, uint64_t now_usec)
{
	queue_time_barriers(arbiter, now_usec);
	expire_resets(arbiter, now_usec);
	lifecycle_expire_claims(arbiter, now_usec);
	lifecycle_expire_durations(arbiter, now_usec);
	for (size_t i = arbiter->n_waiting; i-- > 0;) {
		struct lease *lease = arbiter->waiting[i];
		char wait[REFUSAL_TEXT], reason[REFUSAL_TEXT + 64];

		wait_search_again(arbiter, lease, now_usec);
		if (lease->deadline_usec > now_usec)
			continue;
		refusal_wait(&lease->refusal, wait);
		snprintf(reason, sizeof(reason), "its deadline passed while it waited for %s",
			 wait);
		arbiter_end(arbiter, lease, RESULT_TIMED_OUT, reason);
	}
	FOR_EACH_LEASE(lease, arbiter) {
		char reason[2 * REQUEST_TEXT];

		if (lease->lend.give_up_usec > now_usec || lease->state != STATE_ACTIVATING)
			continue;
		snprintf(reason, sizeof(reason), "its deadline passed; it %s", lease->reason);
		arbiter_end(arbiter, lease, RESULT_TIMED_OUT, reason);
	}
}

void wait_gpus_changed(struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_waiting; i++)
		arbiter->waiting[i]->wait.candidates = 0;
	queue_find_barriers(arbiter);
	ledger_wake(arbiter, UINT64_MAX);
}

/* ---- moves ------------------------------------------------------------------------- */

/* Has a holder on a GPU that the waiting lease could use not acknowledged a move, or that it shrank for one? */
static bool any_moves(const struct arbiter *arbiter, const struct lease *waiting)
{
	FOR_EACH_LEASE(lease, arbiter)
		if (lease->adaptable && lease->state == STATE_GRANTED &&
		    (lease->generation != lease->acknowledged || lease->verify.pending) &&
		    (lease_gpus(lease) & waiting->wait.candidates))
			return true;
	return false;
}

/* Were moves searched in vain for an equal lease, and did no CU become free since? */
static bool is_searched(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct lease *other = find_equal(arbiter, lease);

	return other && other->wait.searched == other->wait.examined && !other->wait.preempts &&
	       !other->wait.moves_usec;
}

/* When a lease on a GPU that the waiting lease could use may move again; 0: each may, or never. */
static uint64_t rested_at(const struct arbiter *arbiter, const struct lease *waiting,
			  uint64_t now_usec)
{
	uint64_t interval = arbiter->settings->activate_min_interval_usec, next = UINT64_MAX;

	FOR_EACH_LEASE(lease, arbiter)
		if (lease->lend.moves > 0 && lease->lend.moved_usec + interval > now_usec &&
		    (lease_gpus(lease) & waiting->wait.candidates))
			next = min_u64(next, lease->lend.moved_usec + interval);
	return next < UINT64_MAX ? next : 0;
}

void wait_search_again(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	if (lease->wait.search_usec == 0 || lease->wait.search_usec > now_usec)
		return;
	set_moves_usec(arbiter, lease, 0);
	lease->wait.search_usec = 0;
	lease->wait.searched = 0;
}

int wait_plan_moves(struct arbiter *arbiter, struct lease *waiting, uint64_t now_usec,
		    struct move_set *ret)
{
	const struct asker asker = { waiting, waiting->request };
	unsigned free[REQUEST_WANTS];
	bool found, lacks;

	/* It is examined again when they are acknowledged, or at moves_usec. */
	if (waiting->wait.moves_usec > now_usec && any_moves(arbiter, waiting))
		return -EAGAIN;
	count_free(arbiter, free);
	lacks = lacks_cus(arbiter, waiting, free);
	found = !lacks && !is_searched(arbiter, waiting) &&
		move_find(arbiter, &asker, now_usec, MOVE_STEPS, ret) > 0;
	set_moves_usec(arbiter, waiting,
		       found ? now_usec + arbiter->settings->activate_grace_usec : 0);
	waiting->wait.search_usec = found || lacks ? waiting->wait.moves_usec
						   : rested_at(arbiter, waiting, now_usec);
	return found;
}
