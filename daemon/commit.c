/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon.h"
#include "holder-record.h"
#include "util/log.h"

void daemon_tell_holders(struct daemon *daemon, const struct lease *lease)
{
	_cleanup_(freep) void *record = NULL;
	size_t size = 0;

	if (record_new(daemon->arbiter, lease, &record, &size) < 0)
		return;
	holders_tell(daemon->holders, lease->id, record, size);
}

void daemon_tell(struct daemon *daemon, const struct lease *lease, int holder)
{
	_cleanup_(freep) void *record = NULL;
	size_t size = 0;

	if (record_new(daemon->arbiter, lease, &record, &size) >= 0)
		send(holder, record, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void save(struct daemon *daemon, const struct lease *lease)
{
	int r;

	if (daemon->saved == lease->id) {
		daemon->saved = 0;
		return;
	}
	r = state_save(daemon->state, daemon->arbiter, lease);
	if (r < 0)
		log_warning("cannot save lease %" PRIu64 ": %s", lease->id, strerror(-r));
	daemon->stale |= r < 0;
}

int daemon_save_again(struct daemon *daemon)
{
	bool stale = daemon->stale;
	int r = 0;

	for (size_t i = 0; stale && r >= 0 && i < daemon->arbiter->n_leases; i++)
		r = state_save(daemon->state, daemon->arbiter, daemon->arbiter->leases[i]);
	daemon->stale = r < 0;
	return r;
}

int daemon_save(struct daemon *daemon, const struct lease *proposal)
{
	int r = daemon_save_again(daemon);

	return r < 0 ? r : state_save(daemon->state, daemon->arbiter, proposal);
}

/* What is left is nobody's, and ends with the next start. */
static void forget(struct daemon *daemon, const struct lease *lease)
{
	int r = state_forget(daemon->state, lease->id);

	if (r < 0)
		log_warning("cannot remove the file of lease %" PRIu64 ": %s", lease->id,
			    strerror(-r));
}

static void carry_out_lease(struct daemon *daemon, struct lease *lease, unsigned touched)
{
	/* Who waited is told before that, so that its next daemon tells it again if need be. */
	if ((touched & TOUCH_REMOVED) && lease->n_partitions > 0)
		forget(daemon, lease);
	if (touched & (TOUCH_CHANGED | TOUCH_ENDING))
		daemon_tell_holders(daemon, lease);
	if (touched & TOUCH_ENDING)
		journal_events_ended(daemon, lease);
	else if (touched & TOUCH_DRIFT)
		journal_events_drift(daemon, lease);
	else if (touched & TOUCH_ACTIVE)
		journal_events_active(daemon, lease);
	if ((touched & TOUCH_REMOVED) && lease->frozen)
		daemon_thaw(daemon, lease);
	if (daemon->bus)
		bus_tell_lease(daemon->bus, lease, touched);
	if (touched & TOUCH_REMOVED) {
		/* The file goes first: what the store has without one is nobody's. */
		if (lease->n_partitions == 0)
			forget(daemon, lease);
		holders_drop(daemon->holders, lease->id);
		lease_free(lease);
	}
}

static void tell_gpu(struct daemon *daemon, unsigned index, struct gpu *gpu)
{
	bool gone = gpu->shown && (gpu->absent || gpu->replaced);
	bool came = !gpu->absent && (!gpu->shown || gpu->replaced);

	gpu->shown = !gpu->absent;
	gpu->replaced = false;
	if (gone || came)
		log_notice("GPU %s is %s", gpu->info.name,
			   gone && came ? "another now"
			   : came       ? "here"
					: "gone");
	if (!daemon->bus)
		return;
	if (gone)
		bus_tell_gpu_removed(daemon->bus, index);
	if (came)
		bus_tell_gpu_added(daemon->bus, index);
	else if (gpu->shown)
		bus_tell_gpu(daemon->bus, index);
}

static void carry_out_gpu(struct daemon *daemon, unsigned index)
{
	struct gpu *gpu = &daemon->arbiter->gpus[index];
	uint64_t bit = UINT64_C(1) << index;

	gpu->changed = false;
	journal_events_gpu(daemon, gpu, daemon->warned & bit);
	daemon->warned = gpu->oversubscribed ? daemon->warned | bit : daemon->warned & ~bit;
	tell_gpu(daemon, index, gpu);
}

/* Whether the hardware still has something of a lease that has just ended: if not, that is
 * all of its end. */
static bool must_look(const struct arbiter *arbiter)
{
	for (const struct lease *l = arbiter->touched; l; l = l->touched_next)
		if ((l->touched & (TOUCH_ENDING | TOUCH_REMOVED)) == TOUCH_ENDING)
			return true;
	return false;
}

/* Grants to the next who waits and fits. What cannot be saved is not granted: it waits on,
 * and the next look is the next attempt. */
static bool grant_next(struct daemon *daemon)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	const struct lease *lease;
	int r;

	if (arbiter_plan_next(daemon->arbiter, &proposal) <= 0)
		return false;
	r = daemon_save(daemon, proposal);
	if (r < 0) {
		if (!daemon->unsaved)
			log_error("lease %" PRIu64
				  " would fit, but cannot be saved: %s; it waits on",
				  proposal->id, strerror(-r));
		daemon->unsaved = true;
		daemon->arbiter->next_look = 0; /* not to be passed by who is behind it */
		return false;
	}
	daemon->unsaved = false;
	daemon->saved = proposal->id;
	lease = arbiter_commit(daemon->arbiter, TAKE_PTR(proposal));
	if (lease->state != STATE_ACTIVATING)
		journal_events_granted(daemon, lease, ", after waiting");
	return true;
}

/* An adaptable lease may have more; nothing of it is told before it is saved. */
static bool grow_next(struct daemon *daemon)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;

	if (arbiter_plan_growth(daemon->arbiter, daemon_now_usec(), &proposal) <= 0)
		return false;
	if (daemon_save(daemon, proposal) < 0) {
		arbiter_grow_later(daemon->arbiter);
		return false;
	}
	daemon->saved = proposal->id;
	journal_events_resized(daemon, arbiter_commit(daemon->arbiter, TAKE_PTR(proposal)));
	return true;
}

/* What one lease gave back may be what another is told to have: all is saved first. */
static void save_touched(struct daemon *daemon)
{
	for (const struct lease *l = daemon->arbiter->touched; l; l = l->touched_next)
		if ((l->touched & (TOUCH_CHANGED | TOUCH_ENDING | TOUCH_SAVE)) &&
		    !(l->touched & TOUCH_REMOVED))
			save(daemon, l);
}

static void carry_out_touched(struct daemon *daemon)
{
	struct lease *lease;
	unsigned touched;

	if (must_look(daemon->arbiter))
		daemon_look(daemon, 0);
	save_touched(daemon);
	while ((lease = ledger_take_touched(daemon->arbiter, &touched)))
		carry_out_lease(daemon, lease, touched);
	daemon->saved = 0;
}

static void plan_deadline(struct daemon *daemon)
{
	uint64_t next = arbiter_next_deadline(daemon->arbiter);

	sd_event_source_set_time(daemon->deadline, next);
	sd_event_source_set_enabled(daemon->deadline,
				    next == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/* A service manager that has gone for good keeps nothing any more. */
static void check_store(struct daemon *daemon)
{
	if (!daemon->stored || store_works(daemon->store))
		return;
	daemon->stored = false;
	log_warning("the service manager does not answer any more: leases end with this process");
}

void daemon_carry_out(struct daemon *daemon)
{
	check_store(daemon);
	do {
		daemon_enforce(daemon);
		arbiter_lend(daemon->arbiter, daemon_now_usec());
		carry_out_touched(daemon);
	} while (grant_next(daemon) || grow_next(daemon) || daemon->arbiter->touched);

	for (unsigned i = 0; i < daemon->arbiter->n_gpus; i++)
		if (daemon->arbiter->gpus[i].changed)
			carry_out_gpu(daemon, i);
	sd_event_source_set_enabled(daemon->carry, SD_EVENT_OFF);
	daemon_verify(daemon);
	plan_deadline(daemon);
	daemon_plan_look(daemon);
}

void daemon_carry_out_soon(struct daemon *daemon)
{
	sd_event_source_set_enabled(daemon->carry, SD_EVENT_ONESHOT);
}

void daemon_leave_leases(struct daemon *daemon)
{
	daemon->stale = true;
	daemon_save_again(daemon);
	if (daemon->arbiter->n_leases > 0)
		log_notice("leases left with the service manager: %zu", daemon->arbiter->n_leases);
}

void daemon_end_leases(struct daemon *daemon)
{
	struct arbiter *arbiter = daemon->arbiter;
	struct lease *lease;
	unsigned touched;

	for (size_t i = arbiter->n_leases; i-- > 0;)
		arbiter_end(arbiter, arbiter->leases[i]->id, RESULT_SHUTDOWN, "gpuarbd stopped");
	while ((lease = ledger_take_touched(arbiter, &touched))) {
		daemon_tell_holders(daemon, lease);
		if (touched & TOUCH_ENDING)
			journal_events_ended(daemon, lease);
		state_forget(daemon->state, lease->id);
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
	}
}
