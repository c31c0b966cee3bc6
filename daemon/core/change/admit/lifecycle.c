/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/policy/request.h"
#include "util/text.h"

void arbiter_end(struct arbiter *arbiter, struct lease *lease, enum result_kind cause,
		 const char *reason)
{
	bool waiting = lease->state == STATE_WAITING;

	if (lease->state == STATE_ENDING)
		return;
	if (waiting)
		queue_remove(arbiter, lease);
	lease_set_ending(lease, cause, reason);
	/* Its room is free only when it is removed. But preemption counts it as leaving, and if it is idle
	 * it is in the way of no exclusive lease. */
	ledger_examine_again(arbiter, lease_gpus(lease));
	ledger_touch(arbiter, lease, TOUCH_ENDING);
	if (waiting)
		ledger_remove(arbiter, lease);
}

/* ---- holders and bound processes --------------------------------------------------- */

static void end_if_dead(struct arbiter *arbiter, struct lease *lease, const char *reason)
{
	if (!lease_alive(lease))
		arbiter_end(arbiter, lease, RESULT_OK, reason);
}

void arbiter_add_holder(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (lease)
		lease->n_holders++;
}

void arbiter_await_claims(struct arbiter *arbiter, uint64_t until_usec)
{
	for (size_t i = 0; i < arbiter->n_waiting; i++) {
		struct lease *lease = arbiter->waiting[i];

		if (!lease_may_wait(lease))
			lease->claim_usec = until_usec;
	}
}

void lifecycle_expire_claims(struct arbiter *arbiter, uint64_t now_usec)
{
	for (size_t i = arbiter->n_leases; i-- > 0;) { /* a waiting lease is removed when it ends */
		struct lease *lease = arbiter->leases[i];

		if (lease->abandoned && lease->state != STATE_ENDING) {
			arbiter_end(arbiter, lease, RESULT_OK, "Reserve could not be answered");
		} else if (lease->claim_usec > 0 && lease->claim_usec <= now_usec) {
			lease->claim_usec = 0;
			end_if_dead(arbiter, lease,
				    "gpuarbd was restarted, and its program did not ask again");
		}
	}
}

void arbiter_holder_gone(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease || lease->n_holders == 0)
		return;
	lease->n_holders--;
	end_if_dead(arbiter, lease, "the last holder was closed");
}

void lifecycle_review_bound(struct arbiter *arbiter, struct lease *lease)
{
	if (lease->asker_bound && !lease_is_bound(lease, lease->pid)) {
		lease->asker_bound = false;
		ledger_touch(arbiter, lease, TOUCH_SAVE);
	}
	lease->lend.unbound = lease->adaptable && lease->n_bound == 0;
	FOR_EACH_PARTITION(p, lease)
		if (lease->lend.unbound)
			p->adaptation->promised = (struct cuset){ 0 };
}

int arbiter_bind(struct arbiter *arbiter, uint64_t id, pid_t pid, bool delegated)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return -ENOENT;
	if (lease_is_bound(lease, pid))
		return 0;
	if (lease->n_bound == LEASE_BOUND_MAX)
		return -ENOSPC;
	lease->delegated |= (uint64_t)delegated << lease->n_bound;
	lease->bound[lease->n_bound++] = pid;
	if (lease->lend.unbound) {
		lease->lend.unbound = false;
		ledger_grow(arbiter, lease_gpus(lease));
	}
	/* The queues of the process do not keep the lease waiting any more. */
	if (lease->state == STATE_WAITING)
		ledger_examine_again(arbiter, lease->wait.candidates);
	return 0;
}

void arbiter_unbind(struct arbiter *arbiter, struct lease *lease, pid_t pid)
{
	if (!lease_is_bound(lease, pid))
		return;
	lease_unbind(lease, pid);
	lifecycle_review_bound(arbiter, lease);
}

void arbiter_bound_gone(struct arbiter *arbiter, uint64_t id, pid_t pid)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease || !lease_is_bound(lease, pid))
		return;
	known_bound_died(arbiter, lease, pid);
	arbiter_unbind(arbiter, lease, pid);
	end_if_dead(arbiter, lease, "the last bound process is gone");
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
		return 0; /* a later generation was sent: its charges stay */
	if (lease->state == STATE_REVOKING && !lease_requeues(lease)) {
		arbiter_end(arbiter, lease, RESULT_OK, lease->reason);
		return 0;
	}
	lease->resized = false;
	ledger_touch(arbiter, lease, TOUCH_CHANGED); /* save it: the holder does not repeat it */
	lease->verify.pending = lease->adaptable && arbiter->verifies;
	if (!lease->verify.pending)
		ledger_follow(arbiter, lease);
	return 0;
}

/* ---- ends that the holder did not ask for ------------------------------------------ */

void lifecycle_revoke(struct arbiter *arbiter, struct lease *lease, uint64_t deadline_usec,
		      const char *reason)
{
	lease->revoked = true;
	if (lease->state == STATE_WAITING || lease->lend.never_granted) {
		arbiter_end(arbiter, lease, RESULT_NOT_PERMITTED, reason);
		return;
	}
	lease->lend.idle |= lease->state == STATE_INACTIVE || lease->state == STATE_ACTIVATING;
	/* A lease that is activated no more is in the way of no exclusive lease, nor is an exclusive one. */
	if (lease->lend.idle)
		ledger_examine_again(arbiter, lease_gpus(lease));
	lease->state = STATE_REVOKING;
	lease->generation++;
	lease->deadline_usec = lease->enforce.due_usec = deadline_usec;
	lease->lend.give_up_usec = UINT64_MAX;
	lease->enforce.step = ENFORCE_STEP_NONE;
	text_clean(lease->reason, sizeof(lease->reason), reason);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

/* A tenth of the duration, and a minute at most. */
#define NOTICE_PARTS 10U
#define NOTICE_MOST_USEC UINT64_C(60000000)

uint64_t lifecycle_notice_at(const struct arbiter *arbiter, const struct lease *lease)
{
	uint64_t notice = min_u64(lease->duration_usec / NOTICE_PARTS, NOTICE_MOST_USEC);
	uint64_t end = lease_end_usec(lease);

	if (end == UINT64_MAX || (lease->state != STATE_GRANTED && lease->state != STATE_INACTIVE &&
				  lease->state != STATE_ACTIVATING))
		return UINT64_MAX;
	notice = max_u64(notice, arbiter->settings->activate_grace_usec);
	return end - min_u64(notice, lease->duration_usec / 2);
}

void lifecycle_expire_durations(struct arbiter *arbiter, uint64_t now_usec)
{
	char reason[REQUEST_TEXT];

	FOR_EACH_LEASE(lease, arbiter) {
		if (lifecycle_notice_at(arbiter, lease) > now_usec)
			continue;
		snprintf(reason, sizeof(reason), "its duration of %llu s is over",
			 (unsigned long long)lease->duration_usec / 1000000);
		lifecycle_revoke(arbiter, lease, lease_end_usec(lease), reason);
		ledger_touch(arbiter, lease, TOUCH_PREEMPT);
	}
}

int arbiter_revoke(struct arbiter *arbiter, uint64_t id, uint64_t now_usec, uint64_t grace_usec,
		   const char *reason, struct result *result)
{
	struct lease *lease = ledger_find(arbiter, id);
	uint64_t deadline = min_u64(sum_u64(now_usec, grace_usec), UINT64_MAX - 1);
	char text[2 * REQUEST_TEXT];

	if (!lease)
		return result_set(result, RESULT_NO_SUCH_LEASE, "there is no lease %llu",
				  (unsigned long long)id);
	if (grace_usec > REVOKE_GRACE_MAX_USEC)
		return result_set(
			result, RESULT_INVALID_REQUEST, "grace_usec %llu: a day, %llu, is the most",
			(unsigned long long)grace_usec, (unsigned long long)REVOKE_GRACE_MAX_USEC);
	if (lease->state == STATE_ENDING)
		return lease_wrong_state(lease, result, "there is nothing left to revoke");
	if (lease->state == STATE_REVOKING && deadline >= lease->deadline_usec)
		return lease_wrong_state(lease, result,
					 "its deadline is sooner; it can only be brought "
					 "forward");
	snprintf(text, sizeof(text), "revoked by an administrator%s%s", reason[0] ? ": " : "",
		 reason);
	lease->revoked_for = 0;
	lifecycle_revoke(arbiter, lease, deadline, text);
	return 0;
}

void arbiter_kill_overdue(struct arbiter *arbiter, uint64_t id)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease)
		return;
	lease->enforce.kill = lease->enforce.terminate = true;
	ledger_touch(arbiter, lease, TOUCH_SAVE);
}
