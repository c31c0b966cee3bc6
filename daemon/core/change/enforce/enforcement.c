/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

/* The last step that the tenant's `enforce` allows; to report it is always allowed. */
static enum enforce_step tenant_step(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

	return tenant && tenant->enforce > ENFORCE_STEP_REPORT ? tenant->enforce
							       : ENFORCE_STEP_REPORT;
}

/* … that policy allows for the lease. */
static enum enforce_step last_step(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->enforce.kill ? ENFORCE_STEP_KILL : tenant_step(arbiter, lease);
}

/* Does the next step wait until the lease is on the CUs of a realtime lease again? A frozen program cannot leave
 * them. */
static bool is_spared(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->enforce.kill && !lease->enforce.terminate &&
	       lease->enforce.step == ENFORCE_STEP_REPORT &&
	       tenant_step(arbiter, lease) == ENFORCE_STEP_REPORT &&
	       drift_is_spared(arbiter, lease);
}

/* When the step after the present one is due: freezing at once after the report, killing after
 * enforce-delay. */
static uint64_t next_due(const struct arbiter *arbiter, const struct lease *lease,
			 uint64_t now_usec)
{
	if (lease->enforce.step >= last_step(arbiter, lease))
		return UINT64_MAX;
	return lease->enforce.step == ENFORCE_STEP_REPORT
		       ? now_usec
		       : now_usec + arbiter->settings->enforce_delay_usec;
}

/* Time from the kill until a scan shows that the processes are off the slowest of the GPUs. */
static uint64_t let_go_usec(const struct arbiter *arbiter, const struct lease *lease)
{
	uint64_t longest = 0;

	FOR_EACH_PARTITION(p, lease) {
		unsigned msec = arbiter->gpus[p->gpu].info.preemption_msec;

		longest = max_u64(longest,
				  msec == 0 ? ENFORCE_LET_GO_USEC
					    : msec * UINT64_C(1000) + SCAN_WHILE_ENDING_USEC);
	}
	return longest;
}

bool enforce_expires(const struct arbiter *arbiter, const struct lease *lease)
{
	return lease->lend.unbound && lease->state == STATE_GRANTED &&
	       known_processes(arbiter, lease->id, false, NULL, 0) == 0;
}

uint64_t enforce_over_at(const struct arbiter *arbiter, const struct lease *lease,
			 uint64_t now_usec)
{
	const struct settings *settings = arbiter->settings;
	uint64_t first = min_u64(now_usec + settings->activate_grace_usec, lease->enforce.due_usec);

	if (lease->enforce.step != ENFORCE_STEP_NONE)
		first = now_usec;
	if (enforce_expires(arbiter, lease))
		return first;
	if (last_step(arbiter, lease) < ENFORCE_STEP_KILL || is_spared(arbiter, lease) ||
	    known_processes(arbiter, lease->id, false, NULL, 0) >
		    known_processes(arbiter, lease->id, true, NULL, 0))
		return UINT64_MAX; /* a process on a GPU that may not be killed */
	return first + settings->enforce_delay_usec + let_go_usec(arbiter, lease);
}

/* Changes the state of the lease as the step requires. */
static void apply(struct arbiter *arbiter, struct lease *lease)
{
	if (lease->state == STATE_REVOKING) {
		arbiter_end(arbiter, lease, RESULT_OK, lease->reason);
	} else if (lease->enforce.step == ENFORCE_STEP_KILL && lease->state != STATE_ENDING) {
		lease->revoked = true;
		arbiter_end(arbiter, lease, RESULT_OK,
			    pause_is_due(lease)
				    ? "it had to pause for an exclusive lease, and did not in time"
				    : "its CUs were needed, and it did not give them back in time");
	} else if (lease->enforce.step == ENFORCE_STEP_REPORT && lease->state == STATE_GRANTED) {
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
	}
}

enum enforce_step arbiter_next_enforce_step(struct arbiter *arbiter, uint64_t now_usec,
					    struct lease **ret)
{
	FOR_EACH_LEASE(lease, arbiter) {
		if (lease->enforce.due_usec > now_usec)
			continue;
		if (lease->enforce.step >= last_step(arbiter, lease)) { /* policy was changed */
			lease->enforce.due_usec = UINT64_MAX;
			continue;
		}
		if (is_spared(arbiter, lease)) {
			lease->enforce.due_usec = now_usec + arbiter->settings->enforce_delay_usec;
			continue;
		}
		lease->enforce.step++;
		if (lease_shares(lease)) {
			lease->lend.late = true;
			arbiter->times_late++;
			ledger_examine_again(arbiter, lease_gpus(lease));
		}
		lease->enforce.due_usec = next_due(arbiter, lease, now_usec);
		if (!lease->enforce.repeats)
			ledger_touch(arbiter, lease, TOUCH_SAVE);
		apply(arbiter, lease);
		*ret = lease;
		return lease->enforce.step;
	}
	return ENFORCE_STEP_NONE;
}

/* After this time gpuarb-enforce may have been restarted, or have room for another request. */
#define KILL_AGAIN_USEC UINT64_C(1000000)

void arbiter_kill_again(struct arbiter *arbiter, uint64_t id, uint64_t now_usec)
{
	struct lease *lease = ledger_find(arbiter, id);

	if (!lease || lease->enforce.step != ENFORCE_STEP_KILL)
		return;
	lease->enforce.step--;
	lease->enforce.due_usec = now_usec + KILL_AGAIN_USEC;
	/* Saved once, and not each second: the next gpuarbd asks again in any case. */
	if (!lease->enforce.repeats)
		ledger_touch(arbiter, lease, TOUCH_SAVE);
	lease->enforce.repeats = true;
}

/* An agent connects again, or repeats what was refused, within a second. */
#define REPEAT_USEC UINT64_C(1000000)

void arbiter_give_time(struct arbiter *arbiter, uint64_t now_usec)
{
	uint64_t until = now_usec + min_u64(arbiter->settings->activate_grace_usec, REPEAT_USEC);
	bool given = false;

	FOR_EACH_LEASE(lease, arbiter) {
		if (lease->state != STATE_GRANTED || lease->enforce.due_usec >= until)
			continue;
		lease->enforce.due_usec = until;
		if (lease->enforce.step == ENFORCE_STEP_NONE)
			lease->deadline_usec = until;
		ledger_touch(arbiter, lease, TOUCH_CHANGED);
		given = true;
	}
	if (!given)
		return;
	/* Derived from the deadlines of borrowers: arbiter_lend() does it again. */
	FOR_EACH_LEASE(lease, arbiter)
		if (lease_deadline_awaits(lease))
			lease->deadline_usec = UINT64_MAX;
}

void arbiter_forget_frozen(struct arbiter *arbiter)
{
	FOR_EACH_LEASE(lease, arbiter) {
		if (!lease->enforce.frozen || lease->enforce.step >= ENFORCE_STEP_FREEZE)
			continue;
		lease->enforce.frozen = false;
		ledger_touch(arbiter, lease, TOUCH_SAVE);
	}
}
