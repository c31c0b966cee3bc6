/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Timers and the clock: when the daemon acts next. */

#include "protocol/protocol.h"
#include "observe/observe.h"
#include "util/clock.h"

#define SAVE_AGAIN_USEC UINT64_C(1000000)

/* The timer scans GPUs at each audit-interval for so long after their last use. Later it scans once in
 * SCAN_UNUSED_USEC, so that the answer to a caller that only reads is never older. */
#define SCAN_AFTER_USE_USEC UINT64_C(60000000)
#define SCAN_UNUSED_USEC UINT64_C(60000000)

uint64_t daemon_now_usec(void)
{
	return clock_usec(CLOCK_BOOTTIME);
}

void schedule_update(struct daemon *daemon)
{
	sd_event_source_set_enabled(daemon->timer.update, SD_EVENT_ONESHOT);
}

void schedule_answers(struct daemon *daemon)
{
	sd_event_source_set_enabled(daemon->timer.answers, SD_EVENT_ONESHOT);
}

static bool any_lease_ending(const struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->state == STATE_ENDING || lease_requeues(arbiter->leases[i]))
			return true;
	return false;
}

static void schedule_deadline(struct daemon *daemon)
{
	uint64_t next = arbiter_next_deadline(daemon->arbiter);

	/* What is due may be what cannot be saved. */
	if (next < daemon->commit.failed_usec + SAVE_AGAIN_USEC)
		next = daemon->commit.failed_usec + SAVE_AGAIN_USEC;

	sd_event_source_set_time(daemon->timer.deadline, next);
	sd_event_source_set_enabled(daemon->timer.deadline,
				    next == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

bool schedule_scans(const struct daemon *daemon)
{
	return daemon->scan.used_usec + SCAN_AFTER_USE_USEC > daemon_now_usec() ||
	       daemon->arbiter->n_leases > 0 ||
	       daemon->arbiter->settings->unmanaged == UNMANAGED_REFUSE;
}

/* A read of the descriptors that is due comes with a scan, and so does the judgement of what may be drift. */
static void schedule_scan(struct daemon *daemon)
{
	uint64_t drift = arbiter_drift_at(daemon->arbiter, FRESH_USE), next;
	uint64_t delay = daemon->arbiter->settings->audit_interval_usec;
	bool wanted = schedule_scans(daemon) || daemon->list.unsettled ||
		      daemon->unit_caps.repeated || daemon->descriptors.until_usec > 0 ||
		      daemon->commit.unsaved < 0;

	if (daemon->commit.unsaved < 0 && delay > SAVE_AGAIN_USEC)
		delay = SAVE_AGAIN_USEC;
	if (daemon->list.unsettled && delay > SCAN_SETTLE_USEC)
		delay = SCAN_SETTLE_USEC;
	if (any_lease_ending(daemon->arbiter) && delay > SCAN_WHILE_ENDING_USEC)
		delay = SCAN_WHILE_ENDING_USEC;
	next = daemon->scan.usec + delay;
	if (daemon->descriptors.due_usec < next)
		next = daemon->descriptors.due_usec;
	if (drift < next)
		next = drift;
	if (next < daemon->scan.usec + SCAN_WHILE_ENDING_USEC) /* it may have failed */
		next = daemon->scan.usec + SCAN_WHILE_ENDING_USEC;
	if (!wanted)
		next = daemon->scan.usec + SCAN_UNUSED_USEC;
	sd_event_source_set_time(daemon->timer.scan, next);
	sd_event_source_set_enabled(daemon->timer.scan, SD_EVENT_ONESHOT);
}

void schedule_timers(struct daemon *daemon)
{
	schedule_deadline(daemon);
	schedule_scan(daemon);
}
