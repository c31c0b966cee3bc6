/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <errno.h>
#include <stdio.h>

#include "core/decide/borrow.h"
#include "core/policy/request.h"
#include "util/text.h"

#define ID(lease) ((unsigned long long)(lease)->id)

/* ---- is the lease consistent in itself? -------------------------------------------- */

static int check_values(const struct lease *lease, char *why, size_t size)
{
	if ((lease->adaptable && lease->class != CLASS_BESTEFFORT) ||
	    (lease->state == STATE_INACTIVE && lease->class != CLASS_REALTIME))
		return refuse(why, size, -EINVAL, "a lease of class %s cannot be %s",
			      class_names[lease->class],
			      lease->adaptable ? "adaptable" : "inactive");
	if (lease->lend.idle && lease->state != STATE_REVOKING && lease->state != STATE_ENDING)
		return refuse(why, size, -EINVAL, "a lease that is %s cannot be idle",
			      state_names[lease->state]);
	return 0;
}

static int check_request(const struct lease *lease, char *why, size_t size)
{
	struct result result = { 0 };
	struct request complete;
	int r;

	if (!lease->request && lease->state == STATE_WAITING)
		return refuse(why, size, -EINVAL, "it is waiting and has no request");
	if (!lease->request && lease->token[0] && lease->state == STATE_GRANTED)
		return refuse(why, size, -EINVAL, "it has a token and no request");
	if (!lease->request)
		return 0;
	if (lease->request->class >= 0 && lease->request->class != (int)lease->class)
		return refuse(why, size, -EINVAL, "its request is of class %d",
			      lease->request->class);
	request_recall(lease->request, &complete);
	r = request_complete(&complete, lease->class, &result);
	if (r < 0)
		refuse(why, size, -EINVAL, "its request is invalid: %s", result.sentence);
	result_done(&result);
	return r < 0 ? -EINVAL : 0;
}

static int check_terms(const struct lease *lease, const struct partition *p, char *why, size_t size)
{
	bool realtime = lease->class == CLASS_REALTIME;

	if ((p->isolation == ISOLATION_SHARED && lease->class != CLASS_BESTEFFORT) ||
	    ((p->isolation == ISOLATION_SHADER_ENGINE || p->alone || p->exclusive) && !realtime))
		return refuse(why, size, -EINVAL, "class %s cannot have isolation %s%s",
			      class_names[lease->class], isolation_names[p->isolation],
			      p->alone ? ", alone" : "");
	if ((p->paused && !p->adaptation) || (p->stopped && !p->paused))
		return refuse(why, size, -EINVAL, "a partition that does not adapt is paused");
	if (cuset_empty(&p->cus))
		return refuse(why, size, -EINVAL, "a partition has no CUs");
	if (!cuset_within(&p->cus, &p->occupied) || !budget_within(&p->granted, &p->charged))
		return refuse(why, size, -EINVAL, "a partition is granted more than it is charged");
	if (p->adaptation &&
	    (cuset_empty(&p->adaptation->base) || !cuset_within(&p->adaptation->base, &p->cus) ||
	     p->isolation == ISOLATION_SHARED))
		return refuse(why, size, -EINVAL,
			      "the base of an adaptable partition is not within its CUs");
	return 0;
}

static int check_place(const struct arbiter *arbiter, const struct lease *lease,
		       const struct partition *p, char *why, size_t size)
{
	if (lease_partition_on(lease, p->gpu) == p)
		return 0;
	return refuse(why, size, -EINVAL, "two partitions are on %s",
		      arbiter->gpus[p->gpu].info.name);
}

/* The reader of files (sys/state/state-json.c) has checked that each value is a possible one. */
static int check_self(const struct arbiter *arbiter, const struct lease *lease, char *why,
		      size_t size)
{
	size_t least = lease->state != STATE_WAITING && lease->state != STATE_ENDING,
	       most = REQUEST_WANTS;

	if (check_values(lease, why, size) < 0)
		return -EINVAL;
	if (lease->state == STATE_WAITING)
		most = 0;
	if (lease->n_partitions < least || lease->n_partitions > most)
		return refuse(why, size, -EINVAL, "a lease that is %s cannot have %zu partitions",
			      state_names[lease->state], lease->n_partitions);
	FOR_EACH_PARTITION(p, lease)
		if (p->gpu != GPU_ABSENT && (check_place(arbiter, lease, p, why, size) < 0 ||
					     check_terms(lease, p, why, size) < 0))
			return -EINVAL;
	return check_request(lease, why, size);
}

/* ---- can the present hardware have its partitions? --------------------------------- */

static bool is_possible(const struct gpu *gpu, const struct partition *p, char *buf, size_t size)
{
	const struct budget whole = gpu_all(&gpu->info);

	if (budget_within(&p->charged, &whole))
		return gpu_check_partition(gpu, p, buf, size) == 0;
	snprintf(buf, size, "it has more queues, processes or VRAM than the GPU");
	return false;
}

static uint64_t check_hardware(const struct arbiter *arbiter, const struct lease *lease,
			       const char *lost, char *reason, size_t size)
{
	uint64_t possible = 0;
	char why[192];

	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];

		if (p->gpu == GPU_ABSENT)
			continue;
		if (is_possible(&arbiter->gpus[p->gpu], p, why, sizeof(why)))
			possible |= UINT64_C(1) << i;
		else
			snprintf(reason, size, "GPU %s cannot have this partition: %.60s",
				 arbiter->gpus[p->gpu].info.name, why);
	}
	if (lost[0])
		snprintf(reason, size, "GPU %s is gone or replaced", lost);
	return possible;
}

/* ---- does it contradict a lease in force? ------------------------------------------ */

static int check_ids(const struct arbiter *arbiter, const struct lease *lease, char *why,
		     size_t size)
{
	const struct lease *other = ledger_find(arbiter, lease->id);

	if (other)
		return refuse(why, size, -EEXIST, "lease %llu exists already", ID(other));
	if (lease->state == STATE_ENDING)
		return 0;
	other = ledger_find_token(arbiter, lease->owner, lease->token);
	if (other)
		return refuse(why, size, -EEXIST, "lease %llu of the same user has the same token",
			      ID(other));
	return 0;
}

static int check_pair(const struct arbiter *arbiter, const struct lease *lease,
		      const struct partition *p, const struct lease *other, char *why, size_t size)
{
	FOR_EACH_PARTITION(q, other) {
		const char *shared = p->gpu == q->gpu
					     ? partition_conflict(lease->class, p, other->class, q)
					     : NULL;

		if (p->gpu == q->gpu && p->adaptation && q->adaptation && lease_is_active(lease) &&
		    lease_is_active(other) && cuset_overlap(&p->cus, &q->cus))
			shared = "CUs";
		if (shared)
			return refuse(why, size, -EEXIST, "lease %llu already has %s of it on %s",
				      ID(other), shared, arbiter->gpus[p->gpu].info.name);
	}
	return 0;
}

/* Can the partition collide with a lease on the GPU at all? If not, the leases need not be compared
 * one by one: thousands are adopted in a row. Only realtime leases and those with `alone` exclude
 * others from an engine. */
static bool may_collide(const struct gpu *gpu, enum lease_class lease_class,
			const struct partition *p)
{
	const struct cuset claim = partition_claim(p);

	return lease_class == CLASS_REALTIME || p->adaptation ||
	       cuset_overlap(&gpu->taken, &claim) ||
	       (p->isolation != ISOLATION_SHARED && cuset_overlap(&gpu->shared, &claim)) ||
	       (cuset_engines(&claim) & gpu_engines_closed(gpu));
}

/* Adds what leases have that may not oversubscribe: all classes but best effort. */
static void add_firm(const struct arbiter *arbiter, unsigned gpu, struct budget *sum)
{
	FOR_EACH_LEASE(lease, arbiter) {
		const struct partition *p = lease_partition_on(lease, gpu);

		if (p && lease->class != CLASS_BESTEFFORT)
			budget_add(sum, &p->charged);
	}
}

/* Only best effort may oversubscribe the slots, and only on a GPU without realtime leases. */
static bool fits_slots(const struct arbiter *arbiter, const struct lease *lease,
		       const struct partition *p)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];
	struct budget sum = p->charged;

	if (gpu->n_realtime > 0 || lease->class == CLASS_REALTIME)
		budget_add(&sum, &gpu->charged);
	else if (lease->class == CLASS_BESTEFFORT)
		return true;
	else
		add_firm(arbiter, p->gpu, &sum);
	return sum.queues <= gpu->info.queue_slots && sum.processes <= gpu->info.process_slots;
}

static bool fits_rest(const struct gpu *gpu, const struct partition *p)
{
	const struct budget whole = gpu_all(&gpu->info);
	struct budget sum = gpu->charged;

	budget_add(&sum, &p->charged);
	sum.queues = sum.processes = 0;
	return budget_within(&sum, &whole);
}

static int check_others(const struct arbiter *arbiter, const struct lease *lease, uint64_t possible,
			char *why, size_t size)
{
	int r = check_ids(arbiter, lease, why, size);

	for (size_t i = 0; r == 0 && i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];
		bool ask;

		if (!(possible & (UINT64_C(1) << i)))
			continue;
		ask = may_collide(&arbiter->gpus[p->gpu], lease->class, p);
		for (size_t j = 0; ask && r == 0 && j < arbiter->n_leases; j++)
			r = check_pair(arbiter, lease, p, arbiter->leases[j], why, size);
		if (r == 0 &&
		    !(fits_slots(arbiter, lease, p) && fits_rest(&arbiter->gpus[p->gpu], p)))
			r = refuse(why, size, -EEXIST,
				   "other leases on %s leave too few slots or bytes",
				   arbiter->gpus[p->gpu].info.name);
	}
	return r;
}

/* ---- put it into force ------------------------------------------------------------- */

/* Not every pass is saved (LEASE_PASSES_SAVED): assume as many as can have been lost. */
static unsigned count_passes(unsigned saved)
{
	return min_u(saved | (LEASE_PASSES_SAVED - 1), LEASE_PASSES_MAX);
}

/* Computes what follows from the members that are saved. */
static void derive(const struct arbiter *arbiter, struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease) {
		if (p->adaptation && lease->lend.never_granted)
			p->adaptation->promised = p->cus;
		if (p->gpu == GPU_ABSENT)
			continue;
		p->count = cuset_count(&p->cus);
		p->effective = geometry_effective(&arbiter->gpus[p->gpu].info.geometry, &p->cus);
	}
	lease->wait.passed = lease->state == STATE_WAITING ? count_passes(lease->wait.passed) : 0;
}

/* Drops the partitions that the hardware cannot have. */
static void drop_impossible(struct lease *lease, uint64_t possible)
{
	size_t kept = 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		if (possible & (UINT64_C(1) << i))
			lease->partitions[kept++] = lease->partitions[i];
	if (kept < lease->n_partitions)
		lease->reset.partition = 0; /* the lease ends for another reason */
	lease->n_partitions = kept;
}

/* The leases may be granted more than the slots if an earlier policy allowed it: the GPU counts as
 * oversubscribed until the first scan. */
static void mark_oversubscribed(struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease) {
		struct gpu *gpu = &arbiter->gpus[p->gpu];

		if (!arbiter->settings->oversubscribe_besteffort &&
		    (gpu->charged.queues > gpu->info.queue_slots ||
		     gpu->charged.processes > gpu->info.process_slots))
			gpu->observed.oversubscribed = true;
	}
}

static void put_into_force(struct arbiter *arbiter, struct lease *lease)
{
	ledger_insert(arbiter, lease);
	mark_oversubscribed(arbiter, lease);
	if (lease->state == STATE_WAITING) {
		queue_add(arbiter, lease);
		ledger_wake(arbiter, UINT64_MAX);
	} else if (lease->state == STATE_ENDING) {
		ledger_touch(arbiter, lease, TOUCH_ENDING);
	}
}

int arbiter_adopt(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		  size_t size)
{
	char reason[REQUEST_TEXT] = "";
	uint64_t possible;
	int r;

	r = check_self(arbiter, lease, why, size);
	if (r < 0)
		return r;
	if (arbiter->n_leases == arbiter->room)
		return refuse(why, size, -ENOMEM, "out of memory");
	derive(arbiter, lease);
	possible = check_hardware(arbiter, lease, lost, reason, sizeof(reason));
	r = check_others(arbiter, lease, possible, why, size);
	if (r < 0)
		return r;

	drop_impossible(lease, possible);
	if (reason[0] && lease->state != STATE_ENDING)
		lease_set_ending(lease, RESULT_NO_SUCH_GPU, reason);
	put_into_force(arbiter, lease);
	return 0;
}

/* Does another borrower occupy CUs that left the mask of this one? */
static bool was_acknowledged(const struct arbiter *arbiter, const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease) {
		struct cuset left = p->occupied;

		cuset_remove(&left, &p->cus);
		if (cuset_empty(&left))
			continue;
		FOR_EACH_LEASE(other, arbiter) {
			const struct partition *q = lease_partition_on(other, p->gpu);

			if (other != lease && other->adaptable && lease_is_active(other) && q &&
			    cuset_overlap(&q->occupied, &left))
				return true;
		}
	}
	return false;
}

/* If the daemon crashed after a borrower acknowledged and before that was saved, a granted lease
 * and the borrower have the same CUs: the lease is activating again. An adaptable lease goes on:
 * assume_acknowledged(). */
static void reactivate(struct arbiter *arbiter, struct lease *lease)
{
	if (!lease_is_active(lease) || lease->state == STATE_ENDING || lease->adaptable ||
	    lease_is_resized(lease) || !borrow_contested(arbiter, lease))
		return;
	if (lease->state == STATE_GRANTED)
		lease->state = STATE_ACTIVATING;
	else
		lease->lend.idle = true; /* revoked: its CUs are not reclaimed for it */
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* Two borrowers with the same CUs: the second got them when the first had acknowledged. */
static void assume_acknowledged(struct arbiter *arbiter, struct lease *lease)
{
	if (!lease->adaptable || !was_acknowledged(arbiter, lease))
		return;
	lease->acknowledged = lease->generation;
	ledger_follow(arbiter, lease);
	ledger_touch(arbiter, lease, TOUCH_SAVE);
}

void arbiter_adopted(struct arbiter *arbiter, uint64_t now_usec)
{
	FOR_EACH_GPU(gpu, arbiter)
		gpu->lend.grown_usec = now_usec;
	FOR_EACH_LEASE(lease, arbiter)
		lend_rest(arbiter, lease, now_usec);
	FOR_EACH_LEASE(lease, arbiter)
		reactivate(arbiter, lease);
	FOR_EACH_LEASE(lease, arbiter)
		assume_acknowledged(arbiter, lease);
	FOR_EACH_LEASE(lease, arbiter)
		lifecycle_review_bound(arbiter, lease);
	/* Holders acknowledge to this daemon what they did before it started. */
	arbiter_give_time(arbiter, now_usec);
	preemption_adopted(arbiter);
	arbiter->lending = true; /* the next arbiter_lend() counts the borrowers */
	borrow_sum_up(arbiter);
	ledger_grow(arbiter, UINT64_MAX);
}
