/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/ledger/quota.h"
#include "core/mask/extend.h"

/* ---- shrink ------------------------------------------------------------------------ */

/* To change the mask of one queue, HWS takes all queues of the GPU off the hardware:
 * execute_queues_cpsch(), kfd_device_queue_manager.c. MES (gfx11) takes only that one. */
void lend_disturb(struct arbiter *arbiter, const struct lease *by, unsigned gpu)
{
	const struct partition *changed = lease_partition_on(by, gpu);

	if (!changed || arbiter->gpus[gpu].info.scheduler == SCHEDULER_MES)
		return;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (lease == by || lease->class != CLASS_REALTIME ||
		    lease->state != STATE_GRANTED || !lease_partition_on(lease, gpu))
			continue;
		lease->lend.disturbances += max_u(changed->used.queues, 1);
		ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_SAVE);
	}
}

/* Takes from the mask the CUs that other leases claim (claims: of all leases). false: there were
 * none. */
static bool shrink_partition(struct arbiter *arbiter, const struct lease *lease,
			     struct partition *p, const struct cuset *claims)
{
	struct cuset cus;

	if (!borrow_shrink(&arbiter->gpus[p->gpu], p, &claims[p->gpu], &cus))
		return false;
	if (cuset_empty(&p->before))
		p->before = p->cus;
	partition_set_mask(p, &arbiter->gpus[p->gpu].info.geometry, &cus);
	if (lease->lend.never_granted)
		p->occupied = cus; /* no queue ever had the other CUs */
	else
		lend_disturb(arbiter, lease, p->gpu);
	return true;
}

static void shrink(struct arbiter *arbiter, struct lease *lease, const struct cuset *claims,
		   uint64_t now_usec)
{
	bool changed = false, paused;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		paused = pause_partition(arbiter, lease, &lease->partitions[i]);
		if (paused && !lease->lend.never_granted)
			lend_disturb(arbiter, lease, lease->partitions[i].gpu);
		changed |= paused;
		changed |= shrink_partition(arbiter, lease, &lease->partitions[i], claims);
	}
	pause_count(lease, now_usec);
	if (!changed)
		return;
	lease->generation++;
	lease->verify.pending = lease->verify.false_ack = false;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
	ledger_examine_again(arbiter, lease_gpus(lease)); /* its quota has room again */
}

/* ---- grants and deadlines ---------------------------------------------------------- */

static void grant(struct arbiter *arbiter, struct lease *lease)
{
	lease->state = STATE_GRANTED;
	lease->lend.never_granted = false;
	lease->deadline_usec = lease->lend.give_up_usec = UINT64_MAX;
	lease_set_reason(lease, "");
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_ACTIVE);
}

/* When the activating lease is granted at the latest, even if no borrower answers. If policy does
 * not allow to kill a borrower: the deadline of the borrowers. */
static uint64_t granted_by(const struct arbiter *arbiter, const struct lease *lease,
			   uint64_t now_usec)
{
	uint64_t by = 0, over;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *other = arbiter->leases[i];

		if (!lease_borrows(other) || other->id == lease->id ||
		    borrow_overlap(arbiter, lease, other, NULL) == 0)
			continue;
		over = enforce_over_at(arbiter, other, now_usec);
		if (over > by)
			by = over;
	}
	if (by == UINT64_MAX)
		by = now_usec + arbiter->settings->activate_grace_usec;
	return lease->lend.give_up_usec < by ? lease->lend.give_up_usec : by;
}

/* Grants an activating lease if its CUs are free; otherwise says what it waits for. */
static void grant_or_wait(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	char reason[REQUEST_TEXT];
	unsigned gpu = 0, cus;
	const struct lease *by = borrow_contested(arbiter, lease);

	if (!by) {
		grant(arbiter, lease);
		return;
	}
	if (lease->deadline_usec == UINT64_MAX) {
		lease->deadline_usec = granted_by(arbiter, lease, now_usec);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
	cus = borrow_overlap(arbiter, lease, by, &gpu);
	if (pause_is_due(by))
		snprintf(reason, sizeof(reason), "waits until lease %llu has paused on %s",
			 (unsigned long long)by->id, arbiter->gpus[gpu].info.name);
	else
		snprintf(reason, sizeof(reason),
			 "waits for %u CUs of %s, which lease %llu gives back", cus,
			 arbiter->gpus[gpu].info.name, (unsigned long long)by->id);
	if (strncmp(lease->reason, reason, sizeof(lease->reason) - 1) == 0)
		return;
	lease_set_reason(lease, reason);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* Does an activating lease need CUs that the borrower occupies? */
static bool is_needed(const struct arbiter *arbiter, const struct lease *borrower)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->state == STATE_ACTIVATING &&
		    arbiter->leases[i]->id != borrower->id &&
		    borrow_overlap(arbiter, arbiter->leases[i], borrower, NULL) > 0)
			return true;
	return false;
}

/* A revoked borrower whose CUs are needed gets no more time than any other borrower. */
static void shorten_grace(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	uint64_t deadline = now_usec + arbiter->settings->activate_grace_usec;

	if (lease->deadline_usec <= deadline)
		return;
	lease->deadline_usec = lease->enforce.due_usec = deadline;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* Starts the grace of a borrower when a lease first needs its CUs, and ends it when none does. A
 * second lease that needs them meanwhile does not extend the grace: the first was promised a
 * deadline. */
static void set_deadline(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	bool needed = is_needed(arbiter, lease);

	if (lease->state == STATE_REVOKING && needed)
		shorten_grace(arbiter, lease, now_usec);
	if (lease->state == STATE_REVOKING || (lease->state == STATE_ENDING && lease->revoked))
		return; /* its end has a deadline already */
	if (needed && lease->enforce.step == ENFORCE_STEP_NONE &&
	    lease->enforce.due_usec == UINT64_MAX) {
		lease->enforce.due_usec = now_usec + arbiter->settings->activate_grace_usec;
		if (lease->state == STATE_GRANTED)
			lease->deadline_usec = lease->enforce.due_usec;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	} else if (!needed && (lease->enforce.step != ENFORCE_STEP_NONE ||
			       lease->enforce.due_usec != UINT64_MAX)) {
		lease->enforce.step = ENFORCE_STEP_NONE;
		lease->enforce.due_usec = UINT64_MAX;
		if (lease->state == STATE_GRANTED) {
			lease->deadline_usec = UINT64_MAX;
			lease_set_reason(lease, "");
		}
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

/* ---- after every change ------------------------------------------------------------ */

void lend_sum_up(struct arbiter *arbiter)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		struct cuset borrowed;

		borrow_occupied(arbiter, i, NULL, &borrowed);
		cuset_remove(&borrowed, &gpu->taken);
		gpu->changed |= !cuset_equal(&borrowed, &gpu->lend.borrowed);
		gpu->lend.borrowed = borrowed;
	}
}

/* Fixes the time of the next round of growth. */
static void schedule_growth(struct arbiter *arbiter, uint64_t now_usec)
{
	const struct settings *settings = arbiter->settings;

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		uint64_t next = gpu->lend.grown_usec + settings->activate_min_interval_usec;

		if (!gpu->lend.may_grow || gpu->lend.grow_usec != UINT64_MAX)
			continue;
		gpu->lend.grow_usec = now_usec + settings->grow_delay_usec;
		if (gpu->lend.grown_usec > 0 && gpu->lend.grow_usec < next)
			gpu->lend.grow_usec = next;
	}
}

void arbiter_lend(struct arbiter *arbiter, uint64_t now_usec)
{
	struct cuset claims[REQUEST_WANTS]; /* of all active leases, by GPU */
	size_t borrowers = 0, activating = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		borrowers += lease_borrows(arbiter->leases[i]);
		activating += arbiter->leases[i]->state == STATE_ACTIVATING;
	}
	if (borrowers + activating == 0 && !arbiter->lending)
		return;
	arbiter->lending = borrowers > 0;
	for (unsigned i = 0; borrowers > 0 && i < arbiter->n_gpus; i++)
		borrow_forbidden(arbiter, i, NULL, &claims[i]);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_borrows(arbiter->leases[i]) && arbiter->leases[i]->state != STATE_ENDING)
			shrink(arbiter, arbiter->leases[i], claims, now_usec);
	for (size_t i = 0; activating > 0 && i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->state == STATE_ACTIVATING)
			grant_or_wait(arbiter, arbiter->leases[i], now_usec);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_borrows(arbiter->leases[i])) {
			set_deadline(arbiter, arbiter->leases[i], now_usec);
			pause_report(arbiter, arbiter->leases[i], now_usec);
		}
	lend_sum_up(arbiter);
	schedule_growth(arbiter, now_usec);
}

/*
 * ---- growth ------------------------------------------------------------------------------------
 *
 * arbiter_plan_growth() divides the free CUs of a GPU among its adaptable leases. A lease that
 * shrank gets its previous mask back, bit for bit, if all of it is free; the remaining CUs go to
 * the leases with the fewest CUs for their weight first. If a lease would stay below STARVED /
 * STARVED_OF of its share, the others shrink for it first.
 *
 * The shares are weighted max-min: as many CUs for each unit of weight as there are, but no lease
 * gets less than its base or more than it asked for.
 */
#define STARVED 3U
#define STARVED_OF 4U

struct grower {
	struct lease *lease;
	struct partition *p;
	struct cuset target; /* the mask that it is to get; contains its base */
	unsigned base, cap;  /* CUs that it has at least and may have at most */
	unsigned weight;     /* of its tenant */
	unsigned share;      /* CUs */
	bool restored;       /* target is the mask before it shrank */
};

/* One GPU. */
struct growth {
	struct arbiter *arbiter;
	struct gpu *gpu;
	unsigned index;
	struct cuset pool;      /* CUs to be divided: free ones, and those that the growers have */
	struct cuset left;      /* of it: in no target */
	struct grower *growers; /* n, and behind them the leases that keep their masks for now */
	size_t n, n_all;
	unsigned cus; /* to be shared by all: those of the pool, and of leases that keep theirs */
};

static unsigned weight_of(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->weight > 0 ? tenant->weight : TENANT_WEIGHT;
}

/* Has the holder acknowledged everything, and is the lease neither activating, paused nor ending? */
static bool is_settled(const struct lease *lease, const struct partition *p)
{
	return lease->state == STATE_GRANTED && !p->paused &&
	       lease->generation == lease->acknowledged && !lease->verify.pending &&
	       cuset_equal(&p->cus, &p->occupied);
}

static struct grower make_grower(const struct growth *growth, struct lease *lease,
				 struct partition *p)
{
	return (struct grower){ .lease = lease,
				.p = p,
				.base = cuset_count(&p->base),
				.cap = min_u(p->asked,
					     quota_cus_left(growth->arbiter, lease, p->gpu)),
				.weight = weight_of(growth->arbiter, lease) };
}

/* Finds the adaptable leases, those that may get another mask first, and collects in the pool the
 * CUs that are not to be divided. */
static void find_growers(struct growth *growth)
{
	struct arbiter *arbiter = growth->arbiter;

	borrow_forbidden(arbiter, growth->index, NULL, &growth->pool);
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];
		struct partition *p = lease->adaptable ? lease_partition_on(lease, growth->index)
						       : NULL;

		if (!p)
			continue;
		growth->growers[growth->n_all] = make_grower(growth, lease, p);
		if (is_settled(lease, p)) {
			struct grower other = growth->growers[growth->n];

			growth->growers[growth->n++] = growth->growers[growth->n_all];
			if (growth->n_all >= growth->n)
				growth->growers[growth->n_all] = other;
		} else {
			cuset_add(&growth->pool, &p->occupied);
			growth->cus += cuset_count(&p->occupied);
		}
		growth->n_all++;
	}
}

/* Turns the pool into the CUs to be divided. The bases of growers are claims and so were among the
 * forbidden CUs: all CUs of growers are added again. */
static void invert_pool(struct growth *growth)
{
	struct cuset forbidden = growth->pool;

	growth->pool = growth->gpu->all;
	cuset_remove(&growth->pool, &forbidden);
	for (size_t i = 0; i < growth->n; i++)
		cuset_add(&growth->pool, &growth->growers[i].p->cus);
	growth->cus += cuset_count(&growth->pool);
}

#define LEVEL_BITS 16U

/* Sets the shares for this many CUs (in 2^-LEVEL_BITS) for each unit of weight. Returns their sum. */
static uint64_t set_shares(struct growth *growth, uint64_t level)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < growth->n_all; i++) {
		struct grower *grower = &growth->growers[i];
		uint64_t share = level * grower->weight >> LEVEL_BITS;

		if (share > grower->cap)
			share = grower->cap;
		grower->share = max_u((unsigned)share, grower->base);
		sum += grower->share;
	}
	return sum;
}

/* Finds the highest level that the CUs suffice for. */
static void find_shares(struct growth *growth)
{
	uint64_t low = 0, high = (uint64_t)growth->cus << LEVEL_BITS;

	while (low < high) {
		uint64_t middle = high - (high - low) / 2;

		if (set_shares(growth, middle) <= growth->cus)
			low = middle;
		else
			high = middle - 1;
	}
	set_shares(growth, low);
}

static bool any_starves(const struct growth *growth)
{
	for (size_t i = 0; i < growth->n; i++)
		if (cuset_count(&growth->growers[i].target) * STARVED_OF <
		    growth->growers[i].share * STARVED)
			return true;
	return false;
}

/* CUs of the pool that are in no other grower's target. */
static void left_for(const struct growth *growth, const struct grower *grower, struct cuset *ret)
{
	*ret = growth->left;
	cuset_add(ret, &grower->target);
}

static void set_target(struct growth *growth, struct grower *grower, const struct cuset *target)
{
	cuset_add(&growth->left, &grower->target);
	cuset_remove(&growth->left, target);
	grower->target = *target;
}

static void restore(struct growth *growth, struct grower *grower)
{
	const struct cuset *before = &grower->p->before;
	struct cuset avail;

	left_for(growth, grower, &avail);
	grower->restored = !cuset_empty(before) && cuset_within(&grower->target, before) &&
			   cuset_within(before, &avail) && cuset_count(before) <= grower->cap;
	if (grower->restored)
		set_target(growth, grower, before);
}

static void extend_target(struct growth *growth, struct grower *grower, unsigned cap)
{
	const struct gpu *gpu = growth->gpu;
	struct extend request = { .all = &gpu->all, .cap = cap };
	struct cuset base = grower->target, target;

	if (cuset_count(&base) >= cap || cuset_empty(&growth->left))
		return;
	request.base = &base;
	left_for(growth, grower, &request.avail);
	request.keep = grower->p->cus;
	cuset_add(&request.keep, &grower->p->before);
	request.preferred = request.avail;
	cuset_remove(&request.preferred, &gpu->taken);
	extend(&gpu->info.geometry, &request, &target);
	set_target(growth, grower, &target);
}

static int by_size(const void *left, const void *right)
{
	const struct grower *a = left, *b = right;

	unsigned x = a->p->count * b->weight, y = b->p->count * a->weight;

	if (x != y)
		return x < y ? -1 : 1;
	return a->lease->id < b->lease->id ? -1 : a->lease->id > b->lease->id;
}

/* from_base: leases may lose CUs that are not in their base. */
static void share_out(struct growth *growth, bool from_base)
{
	growth->left = growth->pool;
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];

		grower->target = from_base ? grower->p->base : grower->p->cus;
		grower->restored = false;
		cuset_remove(&growth->left, &grower->target);
	}
	for (size_t i = 0; !from_base && i < growth->n; i++)
		restore(growth, &growth->growers[i]);
	for (size_t i = 0; i < growth->n; i++)
		if (!growth->growers[i].restored)
			extend_target(growth, &growth->growers[i], growth->growers[i].share);
	for (size_t i = 0; i < growth->n; i++)
		if (!growth->growers[i].restored)
			extend_target(growth, &growth->growers[i], growth->growers[i].cap);
}

/* The fewest CUs for each unit of weight (in 2^-LEVEL_BITS) among the growers that get less than
 * their share; UINT64_MAX: none does. */
static uint64_t least(const struct growth *growth)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < growth->n; i++) {
		const struct grower *g = &growth->growers[i];
		unsigned has = cuset_count(&g->target);
		uint64_t level = ((uint64_t)has << LEVEL_BITS) / g->weight;

		if (has < g->share && level < least)
			least = level;
	}
	return least;
}

/* Keeps only the targets that shrink: what they free is divided in a later round, when their
 * holders have acknowledged. */
static void shrink_only(struct growth *growth)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];
		struct extend request = { .base = &grower->p->base, .all = &growth->gpu->all };

		if (cuset_within(&grower->p->cus, &grower->target)) {
			grower->target = grower->p->cus;
			continue;
		}
		request.avail = request.keep = request.preferred = grower->p->cus;
		cuset_keep(&request.avail, &grower->target);
		request.cap = cuset_count(&grower->target);
		extend(&growth->gpu->info.geometry, &request, &grower->target);
	}
}

static void decide(struct growth *growth)
{
	uint64_t without;

	qsort(growth->growers, growth->n, sizeof(*growth->growers), by_size);
	share_out(growth, false);
	if (!any_starves(growth))
		return;
	without = least(growth);
	share_out(growth, true);
	if (least(growth) > without)
		shrink_only(growth);
	else
		share_out(growth, false);
}

static int make_next(const struct growth *growth, const struct grower *grower, struct lease **ret)
{
	const struct lease *lease = grower->lease;
	struct partition *p;
	struct lease *next;

	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return 0;
	next->generation++;
	p = &next->partitions[grower->p - lease->partitions];
	partition_set_mask(p, &growth->gpu->info.geometry, &grower->target);
	if (cuset_within(&p->before, &p->cus))
		p->before = (struct cuset){ 0 };
	*ret = next;
	return 1;
}

/* The next version of the first grower that gets another mask and was not considered in this
 * round. */
static int next_of(struct growth *growth, struct lease **ret)
{
	for (size_t i = 0; i < growth->n; i++) {
		struct grower *grower = &growth->growers[i];

		if (grower->lease->lend.grown_usec == growth->gpu->lend.grow_usec ||
		    cuset_equal(&grower->target, &grower->p->cus))
			continue;
		grower->lease->lend.grown_usec = growth->gpu->lend.grow_usec;
		return make_next(growth, grower, ret);
	}
	return 0;
}

static int grow(struct arbiter *arbiter, unsigned index, struct lease **ret)
{
	struct growth growth = { .arbiter = arbiter, .gpu = &arbiter->gpus[index], .index = index };
	_cleanup_(freep) struct grower *growers = calloc(arbiter->n_leases + 1, sizeof(*growers));

	if (!growers)
		return 0;
	growth.growers = growers;
	find_growers(&growth);
	invert_pool(&growth);
	find_shares(&growth);
	decide(&growth);
	return next_of(&growth, ret);
}

int arbiter_plan_growth(struct arbiter *arbiter, uint64_t now_usec, struct lease **ret)
{
	for (unsigned i = 0; arbiter->lending && i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (!gpu->lend.may_grow || gpu->lend.grow_usec > now_usec)
			continue;
		if (grow(arbiter, i, ret) > 0) {
			gpu->lend.grown_usec = now_usec;
			return 1;
		}
		gpu->lend.may_grow = false;
		gpu->lend.grow_usec = UINT64_MAX;
	}
	return 0;
}

double lend_fairness(const struct arbiter *arbiter, unsigned gpu)
{
	double sum = 0, squares = 0;
	unsigned n = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = lease->adaptable ? lease_partition_on(lease, gpu)
							     : NULL;
		double x = p ? (double)p->count / weight_of(arbiter, lease) : 0;

		n += p != NULL;
		sum += x;
		squares += x * x;
	}
	return squares > 0 ? sum * sum / (n * squares) : 1;
}
