/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/waiting-queue.h"

#include <string.h>

#include "core/policy/request.h"

/* ---- order ------------------------------------------------------------------------- */

static bool is_before(const struct lease *lease, const struct rank *rank)
{
	const struct rank own = lease_rank(lease);

	return queue_before(&own, rank);
}

size_t queue_count_before(const struct arbiter *arbiter, const struct rank *rank)
{
	return COUNT_BEFORE(arbiter->n_waiting, i, is_before(arbiter->waiting[i], rank));
}

unsigned queue_position(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct rank rank = lease_rank(lease);

	return lease->state == STATE_WAITING ? (unsigned)queue_count_before(arbiter, &rank) + 1 : 0;
}

uint64_t queue_next_turn(const struct arbiter *arbiter, enum lease_class lease_class, uid_t uid)
{
	uint64_t turn = 0;
	bool first = true;

	for (size_t i = 0; i < arbiter->n_waiting; i++) {
		const struct lease *lease = arbiter->waiting[i];

		if (lease->class != lease_class)
			continue;
		if (first)
			turn = lease->wait.turn;
		first = false;
		if (lease->owner == uid)
			turn = lease->wait.turn + 1;
	}
	return turn;
}

/* ---- barriers ---------------------------------------------------------------------- */

/* Does a waiting lease bar its candidates? */
static bool bars(const struct lease *lease)
{
	return lease->wait.passed >= LEASE_PASSES_MAX && lease->wait.may_bar &&
	       !lease->wait.over_quota;
}

static uint64_t all_gpus(const struct arbiter *arbiter)
{
	return arbiter->n_gpus == 64 ? UINT64_MAX : (UINT64_C(1) << arbiter->n_gpus) - 1;
}

/* One of these GPUs that a lease may bar now: one that this lease bars already, or the one with the most free CUs. 0: there
 * are none. */
static uint64_t best_gpu(const struct arbiter *arbiter, const struct lease *lease, uint64_t gpus)
{
	uint64_t best = 0;
	unsigned most = 0;

	for (; gpus; gpus &= gpus - 1) {
		const struct gpu *gpu = &arbiter->gpus[__builtin_ctzll(gpus)];
		unsigned worth = gpu->barrier.rank.id == lease->id ? CODEC_BITS + 1
								   : gpu_cus_free(gpu);

		if (gpu->barrier.open_usec || (best && worth <= most))
			continue;
		best = gpus & -gpus;
		most = worth;
	}
	return best;
}

/* Of these GPUs one for each want, those first that name one GPU. */
static uint64_t needed_gpus(const struct arbiter *arbiter, const struct lease *lease, uint64_t gpus)
{
	const struct request *request = lease->request;
	char missing[GPU_NAME_MAX];
	uint64_t wanted, needed = 0;

	for (size_t i = 0; i < 2 * request->n_wants; i++)
		if (ledger_wanted(arbiter, request->wants[i % request->n_wants].gpu, &wanted,
				  missing) >= 0 &&
		    (__builtin_popcountll(wanted) > 1) == (i >= request->n_wants))
			needed |= best_gpu(arbiter, lease, wanted & gpus & ~needed);
	return needed;
}

/* by: the lease that bars the GPU; NULL: none. Leases that rank between the old and the new one are
 * not barred any more. */
static void set_barrier(struct arbiter *arbiter, unsigned index, const struct lease *by)
{
	struct gpu *gpu = &arbiter->gpus[index];
	const struct rank old = gpu->barrier.rank;

	gpu->barrier.rank = by ? lease_rank(by) : (struct rank){ 0 };
	gpu->changed |= old.id != gpu->barrier.rank.id;
	if (old.id && (!by || queue_before(&old, &gpu->barrier.rank)))
		ledger_examine_again(arbiter, UINT64_C(1) << index);
}

void queue_find_barriers(struct arbiter *arbiter)
{
	uint64_t left = all_gpus(arbiter);

	for (size_t i = 0; i < arbiter->n_waiting && left; i++) {
		const struct lease *lease = arbiter->waiting[i];
		uint64_t barred = lease->wait.preempts & left;

		if (bars(lease))
			barred |= needed_gpus(arbiter, lease, lease->wait.candidates & left);
		left &= ~barred;
		FOR_EACH_BIT(gpu, barred)
			set_barrier(arbiter, (unsigned)gpu, lease);
	}
	FOR_EACH_BIT(gpu, left)
		set_barrier(arbiter, (unsigned)gpu, NULL);
}

void queue_judged(struct arbiter *arbiter, struct lease *lease, uint64_t candidates,
		  bool over_quota, bool may_bar)
{
	bool barred = bars(lease), same = lease->wait.candidates == candidates;
	bool preempts = over_quota && lease->wait.preempts;

	lease->wait.candidates = candidates;
	lease->wait.over_quota = over_quota;
	lease->wait.may_bar = may_bar;
	if (preempts) /* what was revoked for it does not help */
		lease->wait.preempts = 0;
	if (preempts || bars(lease) != barred || (barred && !same))
		queue_find_barriers(arbiter);
}

void queue_served(struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_GPU(gpu, arbiter)
		if (gpu->barrier.rank.id == lease->id)
			gpu->barrier.since_usec = 0;
}

/* ---- how long a GPU is barred ------------------------------------------------------ */

/* A GPU that was barred in vain is open for so many times as long: it is barred for a quarter of the time at
 * most, whoever waits and however often. */
#define OPEN_TIMES 3U

static uint64_t max_wait(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->max_wait_usec ? tenant->max_wait_usec : TENANT_MAX_WAIT_USEC;
}

/* When the GPU opens; UINT64_MAX: it is not barred, or by a preemption, whose time is limited. */
static uint64_t opens_at(const struct arbiter *arbiter, unsigned index)
{
	const struct gpu *gpu = &arbiter->gpus[index];
	const struct lease *lease;

	if (!gpu->barrier.rank.id || !gpu->barrier.since_usec)
		return UINT64_MAX;
	lease = ledger_find(arbiter, gpu->barrier.rank.id);
	/* The ledger of a plan has no others that wait. */
	if (!lease || lease->wait.preempts >> index & 1)
		return UINT64_MAX;
	return gpu->barrier.since_usec + max_wait(arbiter, lease);
}

static void open_gpu(struct gpu *gpu, uint64_t now_usec)
{
	uint64_t open_usec = now_usec + OPEN_TIMES * (now_usec - gpu->barrier.since_usec);

	/* It was barred for no time, or a preemption barred an open GPU for a moment. */
	if (open_usec > now_usec && open_usec > gpu->barrier.open_usec)
		gpu->barrier.open_usec = open_usec;
	gpu->barrier.since_usec = 0;
}

static void end_barrier(struct arbiter *arbiter, struct gpu *gpu, uint64_t now_usec)
{
	struct lease *lease = ledger_find(arbiter, gpu->barrier.rank.id);

	open_gpu(gpu, now_usec);
	lease->wait.passed = 0;
	lease->wait.may_bar = false;
	ledger_touch(arbiter, lease, TOUCH_SAVE);
}

void queue_time_barriers(struct arbiter *arbiter, uint64_t now_usec)
{
	/* While waiting leases are left to examine, the lease that barred a GPU may be one of them. */
	bool examined = arbiter->examined == arbiter->changes, changed = false;

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->barrier.open_usec && gpu->barrier.open_usec <= now_usec)
			gpu->barrier.open_usec = 0;
		else if (opens_at(arbiter, i) <= now_usec)
			end_barrier(arbiter, gpu, now_usec);
		else
			continue;
		changed = true;
	}
	if (changed)
		queue_find_barriers(arbiter);
	FOR_EACH_GPU(gpu, arbiter)
		if (gpu->barrier.rank.id && !gpu->barrier.since_usec)
			gpu->barrier.since_usec = now_usec;
		else if (!gpu->barrier.rank.id && gpu->barrier.since_usec && examined)
			open_gpu(gpu, now_usec);
}

uint64_t queue_next_limit(const struct arbiter *arbiter)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		uint64_t open = arbiter->gpus[i].barrier.open_usec, opens = opens_at(arbiter, i);

		next = open && open < next ? open : next;
		next = opens < next ? opens : next;
	}
	return next;
}

/* ---- passes ------------------------------------------------------------------------ */

/* Nothing became free, but the outcome of examining this lease may be another one. */
static void examine_again(struct arbiter *arbiter, struct lease *lease)
{
	arbiter->changes++;
	lease->wait.examined = 0;
}

void queue_wake_own(struct arbiter *arbiter, const struct lease *granted)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, granted->tenant);
	bool limited = tenant &&
		       (tenant_bounds_parts(tenant) || tenant->max_gpus.kind != LIMIT_NONE);
	bool barred = false;

	for (size_t i = 0; i < arbiter->n_waiting; i++) {
		struct lease *lease = arbiter->waiting[i];

		if (lease->owner != granted->owner)
			continue;
		if (lease->wait.may_bar || (limited && strcmp(lease->tenant, tenant->name) == 0))
			examine_again(arbiter, lease);
		barred |= bars(lease);
		lease->wait.may_bar = false; /* until it is examined */
	}
	if (barred)
		queue_find_barriers(arbiter);
}

void queue_pass(struct arbiter *arbiter, const struct lease *granted, uint64_t gpus,
		const struct rank *rank)
{
	size_t before = gpus ? queue_count_before(arbiter, rank) : 0;

	for (size_t i = 0; i < before; i++) {
		struct lease *lease = arbiter->waiting[i];

		if (!(lease->wait.candidates & gpus) || lease->wait.over_quota ||
		    lease->owner == granted->owner || lease->wait.passed >= LEASE_PASSES_MAX)
			continue;
		lease->wait.passed++;
		if (lease->wait.passed % LEASE_PASSES_SAVED == 0)
			ledger_touch(arbiter, lease, TOUCH_SAVE);
		if (lease->wait.passed == LEASE_PASSES_MAX) /* to learn whether it may bar */
			examine_again(arbiter, lease);
	}
	if (gpus)
		queue_wake_own(arbiter, granted);
}

/* ---- insert and remove ------------------------------------------------------------- */

void queue_add(struct arbiter *arbiter, struct lease *lease)
{
	size_t at = queue_position(arbiter, lease) - 1;

	memmove(&arbiter->waiting[at + 1], &arbiter->waiting[at],
		(arbiter->n_waiting - at) * sizeof(struct lease *));
	arbiter->waiting[at] = lease;
	arbiter->n_waiting++;
	if (lease->wait.preempts || bars(lease))
		queue_find_barriers(arbiter);
}

void queue_remove(struct arbiter *arbiter, struct lease *lease)
{
	size_t at = queue_position(arbiter, lease) - 1;

	arbiter->n_waiting--;
	memmove(&arbiter->waiting[at], &arbiter->waiting[at + 1],
		(arbiter->n_waiting - at) * sizeof(struct lease *));
	if (at < arbiter->next_examined)
		arbiter->next_examined--;
	if (lease->wait.preempts || bars(lease))
		queue_find_barriers(arbiter);
}
