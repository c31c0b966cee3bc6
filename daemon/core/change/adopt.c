/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Leases that an earlier daemon granted, and their processes. What became of them on the way
 * is not known: nothing is charged that adopt-check.c has not judged. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/change/adopt-check.h"
#include "core/change/arbiter.h"
#include "core/ledger/check.h"
#include "core/ledger/ledger.h"
#include "core/change/lend.h"

/* Passes that were not saved any more count as if there had been as many as there can. */
static unsigned count_passes(unsigned saved)
{
	return min_u(saved | (LEASE_PASSES_SAVED - 1), LEASE_PASSES_MAX);
}

/* What follows from other things is counted anew; what keeps a lease alive comes later. */
static void make_anew(struct arbiter *arbiter, struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct partition *p = &lease->partitions[i];

		p->used = (struct budget){ 0 };
		p->judged = p->verified = false;
		p->priorities_seen = 0;
		if (p->gpu == GPU_ABSENT)
			continue;
		p->count = cuset_count(&p->cus);
		p->effective = geometry_effective(&arbiter->gpus[p->gpu].info.geometry, &p->cus);
	}
	if (lease->n_partitions == 0) {
		free(lease->partitions);
		lease->partitions = NULL;
	}
	lease->candidates = 0;
	lease->over_quota = false;
	lease->passed = lease->state == STATE_WAITING ? count_passes(lease->passed) : 0;
	lease->n_holders = 0;
	lease->n_bound = 0;
	lease->users = 0;
	lease->touched = 0;
	lease->touched_next = NULL;
}

/* Leaves the partitions that can be charged. */
static void drop(struct lease *lease, uint64_t possible)
{
	size_t kept = 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		if (possible & (UINT64_C(1) << i))
			lease->partitions[kept++] = lease->partitions[i];
	lease->n_partitions = kept;
}

static void end_for(struct lease *lease, const char reason[static REQUEST_TEXT])
{
	if (lease->state == STATE_ENDING)
		return;
	lease->idle |= lease->state == STATE_INACTIVE || lease->state == STATE_ACTIVATING;
	lease->give_up_usec = UINT64_MAX;
	lease->state = STATE_ENDING;
	lease->cause = RESULT_NO_SUCH_GPU;
	memcpy(lease->reason, reason, sizeof(lease->reason));
}

/* Policy may have let best effort go beyond the slots, and have thought better of it. */
static void tell_oversubscribed(struct arbiter *arbiter, const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct gpu *gpu = &arbiter->gpus[lease->partitions[i].gpu];

		if (!arbiter->settings->oversubscribe_besteffort &&
		    (gpu->charged.queues > gpu->info.queue_slots ||
		     gpu->charged.processes > gpu->info.process_slots))
			gpu->oversubscribed = true;
	}
}

static void put_into_force(struct arbiter *arbiter, struct lease *lease)
{
	ledger_insert(arbiter, lease);
	ledger_charge(arbiter, lease);
	tell_oversubscribed(arbiter, lease);
	if (lease->state == STATE_WAITING) {
		queue_candidates(arbiter, lease);
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

	r = adopt_check_self(arbiter, lease, lost, why, size);
	if (r < 0)
		return r;
	if (arbiter->n_leases == arbiter->room) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	make_anew(arbiter, lease);
	possible = adopt_check_hardware(arbiter, lease, lost, reason, sizeof(reason));
	r = adopt_check_others(arbiter, lease, possible, why, size);
	if (r < 0)
		return r;

	drop(lease, possible);
	if (reason[0])
		end_for(lease, reason);
	put_into_force(arbiter, lease);
	return 0;
}

static bool has_any(const struct lease *borrower, unsigned gpu, const struct cuset *cus)
{
	for (size_t i = 0; i < borrower->n_partitions; i++)
		if (borrower->partitions[i].gpu == gpu &&
		    cuset_overlap(&borrower->partitions[i].occupied, cus))
			return true;
	return false;
}

/* Whether another borrower was granted CUs that left the mask of this one. */
static bool was_followed(const struct arbiter *arbiter, const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct partition *p = &lease->partitions[i];
		struct cuset left = p->occupied;

		cuset_remove(&left, &p->cus);
		for (size_t j = 0; !cuset_empty(&left) && j < arbiter->n_leases; j++)
			if (arbiter->leases[j] != lease && arbiter->leases[j]->adaptable &&
			    check_active(arbiter->leases[j]) &&
			    has_any(arbiter->leases[j], p->gpu, &left))
				return true;
	}
	return false;
}

/* Where a crash came between what a borrower said and its being saved, it may still have what
 * another was granted: that one is activating again. */
static void let_in_again(struct arbiter *arbiter, struct lease *lease)
{
	unsigned gpu, cus;

	if (!check_active(lease) || lease->state == STATE_ENDING ||
	    !lend_contested(arbiter, lease, &gpu, &cus))
		return;
	if (lease->state == STATE_GRANTED)
		lease->state = STATE_ACTIVATING;
	else
		lease->idle = true; /* it is revoked, and has nothing to wait for */
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* What is not to be let in again was let in because this one had said that it follows. */
static void take_as_followed(struct arbiter *arbiter, struct lease *lease)
{
	if (!lease->adaptable || !was_followed(arbiter, lease))
		return;
	lease->acknowledged = lease->generation;
	ledger_follow(arbiter, lease);
	ledger_touch(arbiter, lease, TOUCH_SAVE);
}

void arbiter_adopted(struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		let_in_again(arbiter, arbiter->leases[i]);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		take_as_followed(arbiter, arbiter->leases[i]);
	arbiter->lending = true; /* the next arbiter_lend() finds out */
	lend_sum_up(arbiter);
	ledger_grow(arbiter, UINT64_MAX);
}

/* ---- processes --------------------------------------------------------------------- */

size_t arbiter_processes(const struct arbiter *arbiter, uint64_t id, struct lease_process *ret,
			 size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < arbiter->n_known; i++) {
		const struct known_process *known = &arbiter->known[i];

		/* One that is on several GPUs is there several times. */
		if (known->lease != id || (i > 0 && known[-1].pid == known->pid &&
					   known[-1].start_time == known->start_time))
			continue;
		if (n < max)
			ret[n] = (struct lease_process){ known->pid, known->start_time };
		n++;
	}
	return n;
}

static bool is_known(const struct arbiter *arbiter, uint64_t id,
		     const struct lease_process *process)
{
	for (size_t i = 0; i < arbiter->n_known; i++)
		if (arbiter->known[i].pid == process->pid &&
		    arbiter->known[i].start_time == process->start_time &&
		    arbiter->known[i].lease == id)
			return true;
	return false;
}

int arbiter_adopt_process(struct arbiter *arbiter, uint64_t id, const struct lease_process *process)
{
	struct known_process *more;
	size_t at = arbiter->n_known;

	if (is_known(arbiter, id, process))
		return 0;
	more = reallocarray(arbiter->known, arbiter->n_known + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	arbiter->known = more;
	while (at > 0 && more[at - 1].pid > process->pid)
		at--;
	memmove(&more[at + 1], &more[at], (arbiter->n_known - at) * sizeof(*more));
	more[at] = (struct known_process){ .pid = process->pid,
					   .start_time = process->start_time,
					   .lease = id };
	arbiter->n_known++;
	return 0;
}
