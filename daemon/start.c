/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the daemon and ends it. */

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "daemon.h"
#include "cap/cap.h"
#include "enforce/enforce.h"
#include "observe/observe.h"
#include "protocol/protocol.h"

static int make_arbiter(struct daemon *daemon, struct diagnostics *diagnostics)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	int n, r;

	if (!gpus)
		return -ENOMEM;
	r = reload_read(daemon, NULL, &settings, diagnostics);
	if (r >= 0)
		r = reload_remember_start(daemon, settings);
	n = r < 0 ? r
		  : scan_find_gpus(daemon->options, settings, &daemon->hw, gpus, REQUEST_WANTS,
				   diagnostics);
	r = n < 0 ? n
		  : state_open(daemon->options->runtime_directory, daemon->options->state_directory,
			       &daemon->state, diagnostics);
	if (r >= 0)
		r = arbiter_new(settings, gpus, (size_t)n, state_first_id(daemon->state),
				&daemon->arbiter);
	if (r < 0)
		return r;
	TAKE_PTR(settings);
	reload_check_floors(daemon, diagnostics);
	for (size_t i = 0; i < daemon->arbiter->n_gpus; i++)
		daemon->arbiter->gpus[i].shown = true; /* no signal tells that they were added */
	return n;
}

/* Whoever owns the bus name and the lock on the state directory is the only daemon: the saved
 * leases are its own. All of them are in force again before the first request is read. */
static int start(struct daemon *daemon)
{
	static int (*const parts[])(struct daemon *) = {
		commit_start,    journal_events_start, scan_start,          process_scan_start,
		liveness_start,  caps_start,           unit_caps_start,     update_start,
		publish_start,   accounting_start,     frozen_start,        overdue_start,
		unmanaged_start, intrusions_start,     resolve_start,       descriptors_start,
		slots_start,     graphics_start,       driver_events_start, bus_connection_open,
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(parts); i++)
		r = parts[i](daemon);
	if (r >= 0) {
		liveness_ask_store(daemon);
		liveness_limit(daemon);
		r = recover_leases(daemon);
	}
	if (r < 0)
		return r;
	overdue_wake(daemon);
	scan_hardware(daemon, 0);
	scan_finish(daemon, true);
	overdue_resume(daemon);
	update_now(daemon);
	return 0;
}

int daemon_new(const struct daemon_options *options, sd_event *event, struct daemon **ret)
{
	_cleanup_(daemon_freep) struct daemon *daemon = calloc(1, sizeof(*daemon));
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	int n, r;

	if (!daemon)
		return -ENOMEM;
	/* Tables for the most GPUs and rows are mapped, so that only what is used of them is resident.
	 * glibc would raise its threshold with the first that is freed. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	daemon->options = options;
	daemon->event = sd_event_ref(event);
	n = make_arbiter(daemon, &diagnostics);
	log_diagnostics(&diagnostics);
	if (n < 0)
		return n;
	log_info("%s: %d GPU%s", hw_name(daemon->hw), n, n == 1 ? "" : "s");
	r = start(daemon);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(daemon);
	return 0;
}

/* The holders close with this process, and no other keeps them. */
static void end_leases(struct daemon *daemon)
{
	struct arbiter *arbiter = daemon->arbiter;
	struct lease *lease;
	unsigned touched;

	unit_caps_remove(daemon);
	for (size_t i = arbiter->n_leases; i-- > 0;)
		arbiter_end(arbiter, arbiter->leases[i], RESULT_SHUTDOWN, "gpuarbd stopped");
	while ((lease = ledger_take_touched(arbiter, &touched))) {
		publish_to_holders(daemon, lease);
		if (touched & TOUCH_ENDING)
			journal_events_ended(daemon, lease);
		state_forget(daemon->state, lease->id);
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
	}
}

static void leave_leases(struct daemon *daemon)
{
	commit_save_all(daemon);
	if (daemon->arbiter->n_leases > 0)
		log_notice("leases left with the service manager: %zu", daemon->arbiter->n_leases);
}

struct daemon *daemon_free(struct daemon *daemon)
{
	accounting_end(daemon);
	if (daemon->holders && store_works(daemon->store))
		leave_leases(daemon);
	else if (daemon->holders)
		end_leases(daemon);
	holders_free(daemon->holders);
	store_free(daemon->store); /* sends the answers that wait for it: before the bus */
	caps_free(daemon);
	unit_caps_stop(daemon);
	bus_connection_close(daemon);
	publish_stop(daemon);
	update_stop(daemon);
	descriptors_stop(daemon);
	slots_stop(daemon);
	graphics_stop(daemon);
	driver_events_stop(daemon);
	asker_free(daemon->enforce); /* gpuarb-enforce thaws then what it froze */
	frozen_free(daemon);
	if (daemon->arbiter)
		state_ids_end(daemon->state, daemon->arbiter->next_id);
	process_scan_stop(daemon);
	arbiter_free(daemon->arbiter);
	state_close(daemon->state);
	hw_close(daemon->hw);
	sd_event_unref(daemon->event);
	unmanaged_stop(daemon);
	resolve_stop(daemon);
	intrusions_stop(daemon);
	reload_stop(daemon);
	free(daemon->scan);
	free(daemon->commit);
	free(daemon->journal);
	free(daemon->liveness);
	free(daemon);
	return NULL;
}
