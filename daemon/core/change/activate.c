/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Leases that lend, and leases that are taken back: from one state to the next. */

#include <stdio.h>
#include <string.h>

#include "core/ledger/ledger.h"

static int wrong_state(const struct lease *lease, struct result *result, const char *which)
{
	return result_set(result, RESULT_INVALID_STATE, "lease %llu is %s: %s",
			  (unsigned long long)lease->id, state_name(lease->state), which);
}

/* A lease that this caller may act on, and that can lend. */
static int find_lender(struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		       struct lease **ret, struct result *result)
{
	const struct lease *lease;
	int r;

	r = ledger_find_owned(arbiter, caller, id, ret, result);
	if (r < 0)
		return r;
	lease = *ret;
	if (lease->class == CLASS_REALTIME)
		return 0;
	return result_set(result, RESULT_INVALID_STATE,
			  "lease %llu is of class %s: only realtime leases lend and are activated",
			  (unsigned long long)lease->id, class_name(lease->class));
}

int arbiter_activate(struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		     struct result *result)
{
	struct lease *lease;
	int r;

	r = find_lender(arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (lease->state != STATE_INACTIVE)
		return wrong_state(lease, result, "only an inactive lease can be activated");
	lease->state = STATE_ACTIVATING;
	lease->deadline_usec = UINT64_MAX; /* set when it is known that somebody has to move */
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
	return 0;
}

int arbiter_deactivate(struct arbiter *arbiter, const struct caller *caller, uint64_t id,
		       struct result *result)
{
	struct lease *lease;
	int r;

	r = find_lender(arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (lease->state != STATE_GRANTED && lease->state != STATE_ACTIVATING)
		return wrong_state(lease, result, "only an active lease can be deactivated");
	lease->state = STATE_INACTIVE;
	lease->never_granted = false;
	lease->deadline_usec = lease->give_up_usec = UINT64_MAX;
	memset(lease->reason, 0, sizeof(lease->reason));
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
	ledger_grow(arbiter, lease_gpus(lease));
	return 0;
}

static uint64_t later(uint64_t now_usec, uint64_t grace_usec)
{
	return grace_usec > UINT64_MAX - 1 - now_usec ? UINT64_MAX - 1 : now_usec + grace_usec;
}

int arbiter_revoke(struct arbiter *arbiter, uint64_t id, uint64_t now_usec, uint64_t grace_usec,
		   const char *reason, struct result *result)
{
	struct lease *lease = ledger_find(arbiter, id);
	uint64_t deadline = later(now_usec, grace_usec);
	char text[2 * REQUEST_TEXT];

	if (!lease)
		return result_set(result, RESULT_NO_SUCH_LEASE, "there is no lease %llu",
				  (unsigned long long)id);
	if (grace_usec > REVOKE_GRACE_MAX_USEC)
		return result_set(
			result, RESULT_INVALID_REQUEST, "grace_usec %llu: a day, %llu, is the most",
			(unsigned long long)grace_usec, (unsigned long long)REVOKE_GRACE_MAX_USEC);
	if (lease->state == STATE_ENDING)
		return wrong_state(lease, result, "there is nothing left to revoke");
	if (lease->state == STATE_REVOKING && deadline >= lease->deadline_usec)
		return wrong_state(lease, result,
				   "its deadline is sooner; it can only be brought "
				   "forward");
	snprintf(text, sizeof(text), "revoked by an administrator%s%s", reason[0] ? ": " : "",
		 reason);
	lease->revoked = true;
	if (lease->state == STATE_WAITING || lease->never_granted) { /* it was never granted */
		arbiter_end(arbiter, id, RESULT_NOT_PERMITTED, text);
		return 0;
	}
	lease->idle |= lease->state == STATE_INACTIVE || lease->state == STATE_ACTIVATING;
	lease->state = STATE_REVOKING;
	lease->generation++;
	lease->deadline_usec = lease->enforce_step_usec = deadline;
	lease->give_up_usec = UINT64_MAX;
	lease->enforce_step = ENFORCE_STEP_NONE;
	lease_set_reason(lease, text);
	ledger_touch(arbiter, lease, TOUCH_CHANGED);
	return 0;
}
