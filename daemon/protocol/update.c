/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The update: what follows from a change of the ledger, until nothing follows any more. It runs
 * after each request and each event, and is the only caller of the three jobs: decide and save
 * (commit.c), publish (publish.c), and set the timers of the next update.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/protocol.h"
#include "protocol/timers.h"

#include "cap/cap.h"
#include "enforce/enforce.h"
#include "observe/observe.h"

/* An ending lease has CUs that other leases wait for: the default accuracy of sd-event, a
 * quarter of a second, is too long. */
#define SCAN_ACCURACY_USEC 5000U
#define DEADLINE_ACCURACY_USEC 1000U

/* Hang-ups of holders and processes are read first, then comes the update, and only then the next
 * request. */
#define UPDATE_PRIORITY ((SD_EVENT_PRIORITY_IMPORTANT + SD_EVENT_PRIORITY_NORMAL) / 2)

/* Where the processes of a lease that has just ended are gone already, this scan is the last step
 * of its end. */
static bool any_just_ended(const struct arbiter *arbiter)
{
	for (const struct lease *l = arbiter->touched; l; l = l->touched_next)
		if ((l->touched & (TOUCH_ENDING | TOUCH_REMOVED)) == TOUCH_ENDING ||
		    (!(l->touched & TOUCH_REMOVED) && lease_requeues(l)))
			return true;
	return false;
}

#define SAVE_AGAIN_USEC UINT64_C(1000000)

/* The timer scans GPUs at each audit-interval for so long after their last use. Later it scans once in
 * SCAN_UNUSED_USEC, so that the answer to a caller that only reads is never older. */
#define SCAN_AFTER_USE_USEC UINT64_C(60000000)
#define SCAN_UNUSED_USEC UINT64_C(60000000)

/* One turn of the event loop examines waiting leases for so many steps (decide/admit.h). Requests and
 * other events come before the next turn. */
#define ROUND_STEPS 1024U
/* It grants one lease after another for so long, or gives adaptable leases larger masks. */
#define TURN_USEC 3000U
#define ROUND_PAUSE_USEC 2000U

static void check_store(struct daemon *daemon)
{
	if (liveness_lost_store(daemon))
		log_warning("the service manager does not answer any more: leases will end when "
			    "gpuarbd stops");
}

/* What examining took is charged to the users of the waiting leases. A step is about a microsecond. */
static void charge_round(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_waiting; i++) {
		struct lease *lease = daemon->arbiter->waiting[i];

		if (daemon->bus && lease->wait.steps > 0)
			bus_examined(daemon->bus, lease->owner, lease->wait.steps);
		lease->wait.steps = 0;
	}
}

/* ---- the next turn ---------------------------------------------------------------------- */

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
	if (next < commit_failed_usec(daemon) + SAVE_AGAIN_USEC)
		next = commit_failed_usec(daemon) + SAVE_AGAIN_USEC;

	sd_event_source_set_time(daemon->timer->deadline, next);
	sd_event_source_set_enabled(daemon->timer->deadline,
				    next == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

bool update_scans(const struct daemon *daemon)
{
	return process_scan_used_usec(daemon) + SCAN_AFTER_USE_USEC > daemon_now_usec() ||
	       daemon->arbiter->n_leases > 0 ||
	       daemon->arbiter->settings->unmanaged == UNMANAGED_REFUSE;
}

/* A read of the descriptors that is due comes with a scan, and so does the judgement of what may be drift. */
static void schedule_scan(struct daemon *daemon)
{
	uint64_t drift = arbiter_drift_at(daemon->arbiter, FRESH_USE), next;
	uint64_t delay = daemon->arbiter->settings->audit_interval_usec;
	bool wanted = update_scans(daemon) || scan_is_unsettled(daemon) ||
		      unit_caps_repeats(daemon) || descriptors_awaited(daemon) ||
		      commit_error(daemon) < 0;

	if (commit_error(daemon) < 0 && delay > SAVE_AGAIN_USEC)
		delay = SAVE_AGAIN_USEC;
	if (scan_is_unsettled(daemon) && delay > SCAN_SETTLE_USEC)
		delay = SCAN_SETTLE_USEC;
	if (any_lease_ending(daemon->arbiter) && delay > SCAN_WHILE_ENDING_USEC)
		delay = SCAN_WHILE_ENDING_USEC;
	next = scan_begun_usec(daemon) + delay;
	if (descriptors_due_usec(daemon) < next)
		next = descriptors_due_usec(daemon);
	if (drift < next)
		next = drift;
	if (next < scan_begun_usec(daemon) + SCAN_WHILE_ENDING_USEC) /* it may have failed */
		next = scan_begun_usec(daemon) + SCAN_WHILE_ENDING_USEC;
	if (!wanted)
		next = scan_begun_usec(daemon) + SCAN_UNUSED_USEC;
	sd_event_source_set_time(daemon->timer->scan, next);
	sd_event_source_set_enabled(daemon->timer->scan, SD_EVENT_ONESHOT);
}

static void schedule_timers(struct daemon *daemon)
{
	schedule_deadline(daemon);
	schedule_scan(daemon);
}

/* A paused round goes on when there is nothing else to do; where there always is, after a pause in which
 * all kinds of requests have their turn. */
static void schedule_round(struct daemon *daemon, unsigned room_steps)
{
	sd_event_source *round = daemon->timer->round;

	if ((!daemon->arbiter->paused && room_steps > 0) || descriptors_bar_grants(daemon) ||
	    commit_error(daemon) < 0 || sd_event_source_get_enabled(round, NULL) > 0)
		return;
	sd_event_source_set_time(round, daemon_now_usec() + ROUND_PAUSE_USEC);
	sd_event_source_set_enabled(round, SD_EVENT_ONESHOT);
	sd_event_source_set_enabled(daemon->timer->idle, SD_EVENT_ONESHOT);
}

/* Their callers did not ask to wait. */
static void refuse_deferred(struct daemon *daemon)
{
	char sentence[128];

	if (!daemon->bus)
		return;
	snprintf(sentence, sizeof(sentence),
		 "changes of leases cannot be saved: %s: nothing was granted",
		 strerror(-commit_error(daemon)));
	bus_refuse_deferred(daemon->bus, RESULT_NOT_SAVED, sentence);
}

void update_now(struct daemon *daemon)
{
	uint64_t begun_usec = daemon_now_usec();
	unsigned steps = ROOM_STEPS;
	bool more;

	if (!daemon->arbiter->paused)
		daemon->arbiter->round_steps = ROUND_STEPS;
	check_store(daemon);
	do {
		arbiter_judge_drift(daemon->arbiter, daemon_now_usec());
		if (commit_error(daemon) == 0) /* an acknowledgement could not be counted */
			overdue_enforce(daemon);
		if (any_just_ended(daemon->arbiter))
			scan_hardware(daemon, 0);
		/* After the scan: what a removed lease leaves free lets borrowers grow. */
		arbiter_lend(daemon->arbiter, daemon_now_usec());
		if (commit_save_touched(daemon) < 0) {
			refuse_deferred(daemon);
			break; /* the next scan tries again */
		}
		publish_leases(daemon);
		more = commit_next(daemon, &steps);
		if (daemon_now_usec() - begun_usec > TURN_USEC)
			daemon->arbiter->round_steps = 0; /* the rest in the next turn */
		frozen_review(daemon);
	} while (more || daemon->arbiter->touched);
	charge_round(daemon);
	intrusions_review(daemon);
	publish_gpus(daemon);
	sd_event_source_set_enabled(daemon->timer->update, SD_EVENT_OFF);
	descriptors_refresh(daemon);
	graphics_refresh(daemon);
	driver_events_refresh(daemon);
	unit_caps_refresh(daemon);
	schedule_timers(daemon);
	schedule_round(daemon, steps);
}

/* ---- timers ------------------------------------------------------------------------- */

static int on_update(sd_event_source *, void *userdata)
{
	update_now(userdata);
	return 0;
}

/* After the update: a waiting lease is granted before a call that waited for the observation. */
static int on_answers(sd_event_source *, void *userdata)
{
	struct daemon *daemon = userdata;

	if (daemon->bus && !arbiter_in_round(daemon->arbiter))
		bus_observed(daemon->bus);
	return 0;
}

static int on_idle(sd_event_source *, void *userdata)
{
	struct daemon *daemon = userdata;

	sd_event_source_set_enabled(daemon->timer->round, SD_EVENT_OFF);
	daemon->arbiter->round_steps = ROUND_STEPS;
	update_now(daemon);
	if (!arbiter_in_round(daemon->arbiter))
		schedule_answers(daemon);
	return 0;
}

static int on_round(sd_event_source *, uint64_t, void *userdata)
{
	return on_idle(NULL, userdata);
}

static int on_scan(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;

	scan_hardware(daemon, 0);
	update_now(daemon); /* also tries again to save, and to grant what could not be saved */
	return 0;
}

static int on_deadline(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;

	arbiter_expire(daemon->arbiter, daemon_now_usec());
	update_now(daemon);
	return 0;
}

static int add_work(struct daemon *daemon, int64_t priority, sd_event_handler_t handler,
		    sd_event_source **ret)
{
	int r = sd_event_add_defer(daemon->event, ret, handler, daemon);

	if (r >= 0)
		r = sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
	return r < 0 ? r : sd_event_source_set_priority(*ret, priority);
}

int update_start(struct daemon *daemon)
{
	int r;

	daemon->timer = calloc(1, sizeof(*daemon->timer));
	if (!daemon->timer)
		return -ENOMEM;
	r = add_work(daemon, UPDATE_PRIORITY, on_update, &daemon->timer->update);
	if (r >= 0)
		r = add_work(daemon, SD_EVENT_PRIORITY_NORMAL, on_answers, &daemon->timer->answers);
	if (r >= 0)
		r = schedule_add(daemon, DEADLINE_ACCURACY_USEC, on_deadline,
				 &daemon->timer->deadline);
	if (r >= 0)
		r = schedule_add(daemon, SCAN_ACCURACY_USEC, on_scan, &daemon->timer->scan);
	if (r >= 0)
		r = schedule_add(daemon, 1, on_round, &daemon->timer->round);
	if (r >= 0)
		r = add_work(daemon, SD_EVENT_PRIORITY_IDLE, on_idle, &daemon->timer->idle);
	return r;
}

void update_stop(struct daemon *daemon)
{
	struct timers *timer = daemon->timer;

	if (!timer)
		return;
	sd_event_source_disable_unref(timer->update);
	sd_event_source_disable_unref(timer->answers);
	sd_event_source_disable_unref(timer->deadline);
	sd_event_source_disable_unref(timer->scan);
	sd_event_source_disable_unref(timer->round);
	sd_event_source_disable_unref(timer->idle);
	free(timer);
}
