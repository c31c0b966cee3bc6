/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What keeps a lease alive, and how it ends. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/change/arbiter.h"
#include "core/ledger/ledger.h"

void lease_set_reason(struct lease *lease, const char *reason)
{
	size_t n = strnlen(reason, sizeof(lease->reason));
	char text[sizeof(lease->reason)] = "";

	if (n == sizeof(lease->reason))
		do
			n--;
		while (n > 0 && ((unsigned char)reason[n] & 0xc0) == 0x80);
	memcpy(text, reason, n); /* which may be its own */
	memcpy(lease->reason, text, sizeof(text));
}

void arbiter_end(struct arbiter *arbiter, uint64_t id, enum result_kind cause, const char *reason)
{
	struct lease *lease = ledger_find(arbiter, id);
	bool waiting;

	if (!lease || lease->state == STATE_ENDING)
		return;
	waiting = lease->state == STATE_WAITING;
	if (waiting)
		queue_remove(arbiter, lease);
	lease->idle |= lease->state == STATE_INACTIVE || lease->state == STATE_ACTIVATING;
	lease->give_up_usec = UINT64_MAX;
	lease->state = STATE_ENDING;
	lease->cause = cause;
	lease_set_reason(lease, reason);
	ledger_touch(arbiter, lease, TOUCH_ENDING);
	if (waiting)
		ledger_remove(arbiter, lease);
}

static void end_if_dead(struct arbiter *arbiter, const struct lease *lease, const char *reason)
{
	if (!lease_alive(lease))
		arbiter_end(arbiter, lease->id, RESULT_OK, reason);
}

void arbiter_add_holder(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (lease)
		lease->n_holders++;
}

void arbiter_holder_gone(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease || lease->n_holders == 0)
		return;
	lease->n_holders--;
	end_if_dead(arbiter, lease, "the last holder was closed");
}

int arbiter_bind(struct arbiter *arbiter, uint64_t id, pid_t pid)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return -ENOENT;
	if (lease_is_bound(lease, pid))
		return 0;
	if (lease->n_bound == LEASE_BOUND_MAX)
		return -ENOSPC;
	lease->bound[lease->n_bound++] = pid;
	return 0;
}

/* Its queues outlive it: the next look has to know whose they are, though it may be the
 * first. Without memory they are a stranger's. */
static void remember(struct arbiter *arbiter, pid_t pid, uint64_t id)
{
	struct known_process *more;

	for (size_t i = 0; i < arbiter->n_known; i++) {
		if (arbiter->known[i].pid != pid)
			continue;
		if (!ledger_find(arbiter, arbiter->known[i].lease))
			arbiter->known[i].lease = id;
		return;
	}
	more = reallocarray(arbiter->known, arbiter->n_known + 1, sizeof(*more));
	if (!more)
		return;
	arbiter->known = more;
	more[arbiter->n_known++] = (struct known_process){ pid, KNOWN_UNSEEN, id, true };
}

void arbiter_bound_gone(struct arbiter *arbiter, uint64_t id, pid_t pid)
{
	struct lease *lease = ledger_find(arbiter, id);

	for (size_t i = 0; lease && i < lease->n_bound; i++) {
		if (lease->bound[i] != pid)
			continue;
		lease->bound[i] = lease->bound[--lease->n_bound];
		remember(arbiter, pid, id);
		end_if_dead(arbiter, lease, "the last bound process is gone");
		return;
	}
}

int arbiter_acknowledge(struct arbiter *arbiter, uint64_t id, uint64_t generation)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return -ENOENT;
	if (generation > lease->generation || generation == 0)
		return -ERANGE;
	if (generation <= lease->acknowledged)
		return 0;
	lease->acknowledged = generation;
	if (generation < lease->generation)
		return 0; /* a later change is on its way: what it needs stays charged */
	if (lease->state == STATE_REVOKING) {
		arbiter_end(arbiter, id, RESULT_OK, lease->reason);
		return 0;
	}
	ledger_touch(arbiter, lease, TOUCH_CHANGED); /* to be saved: it is told only once */
	lease->ack_unverified = lease->adaptable && arbiter->verifies;
	if (!lease->ack_unverified)
		ledger_follow(arbiter, lease);
	return 0;
}

void ledger_follow(struct arbiter *arbiter, struct lease *lease)
{
	lease->ack_unverified = lease->false_acknowledged = false;
	ledger_discharge(arbiter, lease);
	for (size_t i = 0; i < lease->n_partitions; i++) {
		lease->partitions[i].occupied = lease->partitions[i].cus;
		lease->partitions[i].charged = lease->partitions[i].granted;
	}
	ledger_recount_shared(arbiter, lease);
	ledger_charge(arbiter, lease);
	ledger_wake(arbiter, lease_gpus(lease));
}
