/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Pauses of adaptable leases. While an exclusive lease (decide/exclusive.h) is active, no queue of
 * an adaptable lease on its GPU may be on the run list. The holder makes them inactive and
 * acknowledges, as it does for a smaller mask; the grace, the deadline and the enforcement steps of
 * borrowers apply. The masks stay as they are.
 */

#include <stdio.h>

#include "core/change/arbiter.h"
#include "core/decide/exclusive.h"

static bool is_paused(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].paused)
			return true;
	return false;
}

bool pause_is_due(const struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++)
		if (lease->partitions[i].paused && !lease->partitions[i].stopped)
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

/* ---- what the user reads ------------------------------------------------------------ */

/* The reason of a lease that is revoked or overdue says that. */
static bool may_report(const struct lease *lease)
{
	return lease->state == STATE_GRANTED && lease->enforce.step == ENFORCE_STEP_NONE;
}

uint64_t pause_report_at(const struct arbiter *arbiter, const struct lease *lease)
{
	const struct tenant *tenant;

	if (lease->pause.since_usec == 0 || lease->pause.long_reported || !may_report(lease))
		return UINT64_MAX;
	tenant = tenant_named(arbiter->settings, lease->tenant);
	return tenant && tenant->max_pause_usec > 0
		       ? lease->pause.since_usec + tenant->max_pause_usec
		       : UINT64_MAX;
}

static void set_reason(const struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	const struct lease *by = NULL;
	char reason[REQUEST_TEXT];
	unsigned gpu = 0;

	for (size_t i = 0; i < lease->n_partitions && !by; i++) {
		gpu = lease->partitions[i].gpu;
		by = exclusive_on(arbiter, gpu, lease);
	}
	if (!by)
		return;
	if (lease->pause.long_reported)
		snprintf(reason, sizeof(reason),
			 "paused for %llu ms, more than max-pause, by exclusive lease %llu on %s",
			 (unsigned long long)(now_usec - lease->pause.since_usec) / 1000,
			 (unsigned long long)by->id, arbiter->gpus[gpu].info.name);
	else
		snprintf(reason, sizeof(reason), "paused by exclusive lease %llu on %s",
			 (unsigned long long)by->id, arbiter->gpus[gpu].info.name);
	lease_set_reason(lease, reason);
}

void pause_report(struct arbiter *arbiter, struct lease *lease, uint64_t now_usec)
{
	bool paused = lease->pause.since_usec > 0;
	bool longer = pause_report_at(arbiter, lease) <= now_usec;

	if (!may_report(lease) || (paused ? lease->pause.reported && !longer && lease->reason[0]
					  : !lease->pause.reported))
		return;
	lease->pause.reported = paused;
	lease->pause.long_reported = paused && (longer || lease->pause.long_reported);
	if (paused)
		set_reason(arbiter, lease, now_usec);
	else
		lease_set_reason(lease, "");
	ledger_touch(arbiter, lease, TOUCH_CHANGED | (longer ? TOUCH_PAUSED : 0));
}
