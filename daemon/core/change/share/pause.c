/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pauses of adaptable leases. While an exclusive lease (decide/exclusive.h) is active, no queue of
 * an adaptable lease on its GPU may be on the run list. The holder makes them inactive and
 * acknowledges, as it does for a smaller mask; the grace, the deadline and the enforcement steps of
 * borrowers apply. The masks stay as they are.
 */

#include "core/change/arbiter.h"
#include "core/decide/exclusive.h"

static bool is_paused(const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (p->paused)
			return true;
	return false;
}

bool pause_is_due(const struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease)
		if (p->paused && !p->stopped)
			return true;
	return false;
}

void pause_count(struct lease *lease, uint64_t now_usec)
{
	if (is_paused(lease) == (lease->pause.since_usec > 0))
		return;
	if (lease->pause.since_usec > 0) {
		lease->pause.usec += now_usec - lease->pause.since_usec;
		lease->pause.since_usec = 0;
		lease->pause.long_reported = false;
		return;
	}
	lease->pause.since_usec = now_usec;
	lease->pause.count++;
}

bool pause_partition(struct partition *p, const struct lease *lease, bool paused)
{
	if (paused == p->paused)
		return false;
	p->paused = paused;
	p->stopped = paused && lease->lend.never_granted; /* it has no queue yet */
	return true;
}

uint64_t pause_report_at(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant;

	/* The reason of a lease that is revoked or overdue says that. */
	if (lease->pause.since_usec == 0 || lease->pause.long_reported ||
	    lease->state != STATE_GRANTED || lease->enforce.step != ENFORCE_STEP_NONE)
		return UINT64_MAX;
	tenant = tenant_named(arbiter->settings, lease->tenant);
	return tenant && tenant->max_pause_usec > 0
		       ? lease->pause.since_usec + tenant->max_pause_usec
		       : UINT64_MAX;
}

void pause_report(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	if (pause_report_at(arbiter, lease) > now_usec)
		return;
	lease->pause.long_reported = true;
	ledger_touch(arbiter, lease, TOUCH_CHANGED | TOUCH_PAUSED);
}
