/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/lend.h"

#include <stdio.h>
#include <string.h>

#include "core/ledger/ledger.h"
#include "core/mask/extend.h"
#include "core/policy/tenant.h"

/* ---- who may have what ---------------------------------------------------------------- */

void gpu_add_engines(const struct gpu *gpu, struct cuset *set)
{
	uint32_t engines = cuset_engines(set);

	for (unsigned x = 0; x < gpu->info.geometry.xccs; x++)
		for (unsigned e = 0; e < gpu->info.geometry.engines; e++)
			if (engines & (UINT32_C(1) << e))
				set->pair[cuset_pair(x, e)] |= gpu->all.pair[cuset_pair(x, e)];
}

/* All that nobody else may have CUs of while the lease is active. */
static void needs(const struct arbiter *arbiter, const struct partition *p, struct cuset *ret)
{
	*ret = *partition_claim(p);
	if (p->alone)
		gpu_add_engines(&arbiter->gpus[p->gpu], ret);
}

static const struct partition *partition_on(const struct lease *lease, unsigned gpu)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].gpu == gpu)
			return &lease->partitions[i];
	return NULL;
}

void lend_forbidden(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		    struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p;
		struct cuset needed;

		if (lease->state == STATE_INACTIVE || lease->idle ||
		    (self && lease->id == self->id))
			continue;
		p = partition_on(lease, gpu);
		if (!p)
			continue;
		needs(arbiter, p, &needed);
		cuset_add(ret, &needed);
	}
}

void lend_borrowed(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		   struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = lease_borrows(lease) ? partition_on(lease, gpu) : NULL;

		if (p && !(self && lease->id == self->id))
			cuset_add(ret, &p->occupied);
	}
}

/* CUs that b still has of what a needs. */
static unsigned overlap(const struct arbiter *arbiter, const struct lease *a, const struct lease *b,
			unsigned *ret_gpu)
{
	for (size_t i = 0; i < a->n_partitions; i++) {
		const struct partition *p = partition_on(b, a->partitions[i].gpu);
		struct cuset needed;

		if (!p)
			continue;
		needs(arbiter, &a->partitions[i], &needed);
		cuset_keep(&needed, &p->occupied);
		if (cuset_empty(&needed))
			continue;
		*ret_gpu = p->gpu;
		return cuset_count(&needed);
	}
	return 0;
}

const struct lease *lend_contested(const struct arbiter *arbiter, const struct lease *lease,
				   unsigned *ret_gpu, unsigned *ret_cus)
{
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *other = arbiter->leases[i];

		if (!lease_borrows(other) || other->id == lease->id)
			continue;
		*ret_cus = overlap(arbiter, lease, other, ret_gpu);
		if (*ret_cus > 0)
			return other;
	}
	return NULL;
}

/* ---- a new lease ---------------------------------------------------------------------- */

void lend_set_mask(const struct arbiter *arbiter, struct partition *partition,
		   const struct cuset *cus)
{
	const struct gpu *gpu = &arbiter->gpus[partition->gpu];

	cuset_add(&partition->occupied, cus);
	partition->cus = *cus;
	partition->count = cuset_count(cus);
	partition->effective = geometry_effective(&gpu->info.geometry, cus);
	partition->verified = partition->judged = false;
}

static void borrow_at_once(const struct arbiter *arbiter, const struct lease *proposal,
			   struct partition *p)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];
	struct extend request = {
		.base = &p->base, .avail = gpu->all, .all = &gpu->all, .cap = p->asked
	};
	struct cuset taken, cus;
	unsigned left;

	lend_forbidden(arbiter, p->gpu, proposal, &taken);
	cuset_remove(&request.avail, &taken);
	lend_borrowed(arbiter, p->gpu, proposal, &taken);
	cuset_remove(&request.avail, &taken);
	request.preferred = request.avail;
	cuset_remove(&request.preferred,
		     &gpu->taken); /* what is left of it, an inactive lease lends */
	left = quota_cus_left(arbiter, proposal, p->gpu);
	request.cap = min_u(request.cap, left);
	extend(&gpu->info.geometry, &request, &cus);
	lend_set_mask(arbiter, p, &cus);
}

void lend_start(const struct arbiter *arbiter, struct lease *proposal, bool inactive)
{
	unsigned gpu, cus;

	proposal->state = inactive ? STATE_INACTIVE : STATE_GRANTED;
	if (inactive)
		return;
	if (lend_contested(arbiter, proposal, &gpu, &cus)) {
		proposal->state = STATE_ACTIVATING;
		proposal->never_granted = true;
	}
	for (size_t i = 0; proposal->adaptable && i < proposal->n_partitions; i++)
		borrow_at_once(arbiter, proposal, &proposal->partitions[i]);
}

/* ---- giving way ------------------------------------------------------------------------- */

/* Before gfx11 the scheduler takes all queues of the GPU off the hardware to change one:
 * execute_queues_cpsch(), kfd_device_queue_manager.c; MES only the one that changes. */
void lend_disturb(struct arbiter *arbiter, const struct lease *by, unsigned gpu)
{
	const struct partition *changed = partition_on(by, gpu);

	if (!changed || arbiter->gpus[gpu].info.scheduler == SCHEDULER_MES)
		return;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		if (lease == by || lease->class != CLASS_REALTIME ||
		    lease->state != STATE_GRANTED || !partition_on(lease, gpu))
			continue;
		lease->disturbances += max_u(changed->used.queues, 1);
		ledger_touch(arbiter, lease, TOUCH_REASON | TOUCH_SAVE);
	}
}

static bool give_way(struct arbiter *arbiter, const struct lease *lease, struct partition *p)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];
	struct extend request = {
		.base = &p->base, .avail = p->cus, .keep = p->cus, .all = &gpu->all, .cap = p->count
	};
	struct cuset taken, cus;

	lend_forbidden(arbiter, p->gpu, lease, &taken);
	if (!cuset_overlap(&p->cus, &taken))
		return false;
	cuset_remove(&request.avail, &taken);
	request.preferred = request.avail;
	if (cuset_empty(&p->before))
		p->before = p->cus;
	extend(&gpu->info.geometry, &request, &cus);
	lend_set_mask(arbiter, p, &cus);
	if (lease->never_granted)
		p->occupied = cus; /* it never had them */
	else
		lend_disturb(arbiter, lease, p->gpu);
	return true;
}

static void yield(struct arbiter *arbiter, struct lease *lease)
{
	bool changed = false;

	for (size_t i = 0; i < lease->n_partitions; i++)
		changed |= give_way(arbiter, lease, &lease->partitions[i]);
	if (!changed)
		return;
	lease->generation++;
	lease->ack_unverified = lease->false_acknowledged = false;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
	ledger_look_again(arbiter, lease_gpus(lease)); /* its tenant's quota has room again */
}

/* ---- being granted ---------------------------------------------------------------------- */

static void set_reason(struct arbiter *arbiter, struct lease *lease, const char *reason)
{
	if (strncmp(lease->reason, reason, sizeof(lease->reason) - 1) == 0)
		return;
	memset(lease->reason, 0, sizeof(lease->reason));
	snprintf(lease->reason, sizeof(lease->reason), "%s", reason);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

static void activate(struct arbiter *arbiter, struct lease *lease)
{
	lease->state = STATE_GRANTED;
	lease->never_granted = false;
	lease->deadline_usec = lease->give_up_usec = UINT64_MAX;
	memset(lease->reason, 0, sizeof(lease->reason));
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_ACTIVE);
}

/* By when it is granted, whatever borrowers do; where policy gives no such time, when they are
 * to have given way. */
static uint64_t granted_by(const struct arbiter *arbiter, const struct lease *lease,
			   uint64_t now_usec)
{
	uint64_t by = 0, over;
	unsigned gpu;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *other = arbiter->leases[i];

		if (!lease_borrows(other) || other->id == lease->id ||
		    overlap(arbiter, lease, other, &gpu) == 0)
			continue;
		over = enforce_over_at(arbiter, other, now_usec);
		if (over > by)
			by = over;
	}
	if (by == UINT64_MAX)
		by = now_usec + arbiter->settings->activate_grace_usec;
	return lease->give_up_usec < by ? lease->give_up_usec : by;
}

static void wait_for_borrowers(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	char reason[REQUEST_TEXT];
	unsigned gpu = 0, cus = 0;
	const struct lease *by = lend_contested(arbiter, lease, &gpu, &cus);

	if (!by) {
		activate(arbiter, lease);
		return;
	}
	if (lease->deadline_usec == UINT64_MAX) {
		lease->deadline_usec = granted_by(arbiter, lease, now_usec);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
	snprintf(reason, sizeof(reason), "waits for %u CUs of %s, which lease %llu gives back", cus,
		 arbiter->gpus[gpu].info.name, (unsigned long long)by->id);
	set_reason(arbiter, lease, reason);
}

static bool is_needed(const struct arbiter *arbiter, const struct lease *borrower)
{
	unsigned unused;

	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->state == STATE_ACTIVATING &&
		    arbiter->leases[i]->id != borrower->id &&
		    overlap(arbiter, arbiter->leases[i], borrower, &unused) > 0)
			return true;
	return false;
}

/* Notice of its end gives a borrower no longer than others have. */
static void hurry(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	uint64_t deadline = now_usec + arbiter->settings->activate_grace_usec;

	if (lease->deadline_usec <= deadline)
		return;
	lease->deadline_usec = lease->enforce_step_usec = deadline;
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* The time that a borrower has, from when somebody first needs what it has: another who comes
 * to need more of it meanwhile gives it no more time, or the first would wait beyond what it
 * was told. */
static void set_deadline(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	bool needed = is_needed(arbiter, lease);

	if (lease->state == STATE_REVOKING && needed)
		hurry(arbiter, lease, now_usec);
	if (lease->state == STATE_REVOKING || (lease->state == STATE_ENDING && lease->revoked))
		return; /* it has another */
	if (needed && lease->enforce_step == ENFORCE_STEP_NONE &&
	    lease->enforce_step_usec == UINT64_MAX) {
		lease->enforce_step_usec = now_usec + arbiter->settings->activate_grace_usec;
		if (lease->state == STATE_GRANTED)
			lease->deadline_usec = lease->enforce_step_usec;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	} else if (!needed && (lease->enforce_step != ENFORCE_STEP_NONE ||
			       lease->enforce_step_usec != UINT64_MAX)) {
		lease->enforce_step = ENFORCE_STEP_NONE;
		lease->enforce_step_usec = UINT64_MAX;
		if (lease->state == STATE_GRANTED)
			lease->deadline_usec = UINT64_MAX;
		memset(lease->reason, 0, lease->state == STATE_GRANTED ? sizeof(lease->reason) : 0);
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

/* ---- all of it -------------------------------------------------------------------------- */

void lend_sum_up(struct arbiter *arbiter)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		struct cuset borrowed;

		lend_borrowed(arbiter, i, NULL, &borrowed);
		cuset_remove(&borrowed, &gpu->taken);
		gpu->changed |= !cuset_equal(&borrowed, &gpu->borrowed);
		gpu->borrowed = borrowed;
	}
}

static void plan_growth(struct arbiter *arbiter, uint64_t now_usec)
{
	const struct settings *settings = arbiter->settings;

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		uint64_t next = gpu->grown_usec + settings->activate_min_interval_usec;

		if (!gpu->may_grow || gpu->grow_usec != UINT64_MAX)
			continue;
		gpu->grow_usec = now_usec + settings->grow_delay_usec;
		if (gpu->grown_usec > 0 && gpu->grow_usec < next)
			gpu->grow_usec = next;
	}
}

void arbiter_lend(struct arbiter *arbiter, uint64_t now_usec)
{
	size_t borrowers = 0, activating = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		borrowers += lease_borrows(arbiter->leases[i]);
		activating += arbiter->leases[i]->state == STATE_ACTIVATING;
	}
	if (borrowers + activating == 0 && !arbiter->lending)
		return;
	arbiter->lending = borrowers > 0;
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_borrows(arbiter->leases[i]) && arbiter->leases[i]->state != STATE_ENDING)
			yield(arbiter, arbiter->leases[i]);
	for (size_t i = 0; activating > 0 && i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->state == STATE_ACTIVATING)
			wait_for_borrowers(arbiter, arbiter->leases[i], now_usec);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_borrows(arbiter->leases[i]))
			set_deadline(arbiter, arbiter->leases[i], now_usec);
	lend_sum_up(arbiter);
	plan_growth(arbiter, now_usec);
}
