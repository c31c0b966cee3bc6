/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How a request or an event changes the ledger: plan, save, commit, publish; and what follows,
 * when. */

#include "daemon.h"

/* ---- requests.c --------------------------------------------------------------------- */

extern const struct bus_host requests_host;

/* ---- recover.c ---------------------------------------------------------------------- */

/* Takes over the saved leases, and the holders that the service manager kept of them. */
int recover_leases(struct daemon *daemon);

/* ---- reload.c ----------------------------------------------------------------------- */

/* Reads the configuration; *ret is the caller's. */
int reload_read(const struct daemon *daemon, struct names *names, struct settings **ret,
		struct diagnostics *diagnostics);

/* Reads the configuration and puts it into force. On failure the one in force stays, and
 * diagnostics have the errors. */
int reload_settings(struct daemon *daemon, struct names *names, struct diagnostics *diagnostics);

/* Keeps the keys that have an effect at the start only. */
int reload_remember_start(struct daemon *daemon, const struct settings *settings);
void reload_stop(struct daemon *daemon);

/* Warns of floors that the GPUs do not have, of those on GPUs that are not there, and of shares that are less
 * than one. */
void reload_check_floors(const struct daemon *daemon, struct diagnostics *diagnostics);

/* ---- resolve.c ---------------------------------------------------------------------- */

int resolve_start(struct daemon *daemon);
void resolve_stop(struct daemon *daemon);

/* Looks up the names in the files of the configuration. Whether a look-up is under way: when it has ended,
 * bus_observed() follows, and the next reload takes what it has found. */
bool resolve_names(void *daemon);

/* Reloads with the names that were found, and on SIGHUP. */
int resolve_reload(struct daemon *daemon, struct diagnostics *diagnostics);
void resolve_hangup(struct daemon *daemon);

/* The settings have changed: names that do not exist are looked up again later. */
void resolve_review(struct daemon *daemon);

/* ---- update.c ----------------------------------------------------------------------- */

/* Makes the timers. */
int update_start(struct daemon *daemon);
void update_stop(struct daemon *daemon);

/* Brings everything in line with the ledger: the last step of whatever changes the ledger. */
void update_now(struct daemon *daemon);

/* Are scans made without a request? */
bool update_scans(const struct daemon *daemon);

/* ---- commit.c ----------------------------------------------------------------------- */

int commit_start(struct daemon *daemon);

/* Why the last changes could not be saved: a negative errno; 0: they are. */
int commit_error(const struct daemon *daemon);
uint64_t
commit_failed_usec(const struct daemon *daemon); /* when a save failed that is tried again */

/* Saves the proposal, then puts it into force. Takes it. *ret_lease may be NULL. On -errno
 * nothing has changed. */
int commit_proposal(struct daemon *daemon, struct lease *proposal, struct lease **ret_lease);

/* The same for all leases of a step (arbiter_next_step()); frees the rest after a failure. Returns whether all
 * are in force. */
bool commit_step(struct daemon *daemon, enum step_kind kind, struct move_set *set);

/* Takes the next step. false: there is none, or it cannot be saved. */
bool commit_next(struct daemon *daemon, unsigned *room_steps);

/* Saves every lease that has changed and was not published yet: all of them or none, because the CUs that
 * one lease gave back may be the CUs that another one gets. On -errno none of them may be published, and
 * nothing granted. */
int commit_save_touched(struct daemon *daemon);

/* Deletes the file of a removed lease. One that stays names no holder: the lease ends with the next start. */
void commit_forget(struct daemon *daemon, const struct lease *lease);

/* Saves all leases for the next daemon. */
void commit_save_all(struct daemon *daemon);

/* ---- publish.c ---------------------------------------------------------------------- */

int publish_start(struct daemon *daemon);
void publish_stop(struct daemon *daemon);

void publish_leases(struct daemon *daemon); /* all that have changed */

/* All that have changed; on the bus, not more often than every 20 ms for each GPU. */
void publish_gpus(struct daemon *daemon);

/* Sends the state of the lease to all of its holders, or to this one. */
void publish_to_holders(struct daemon *daemon, const struct lease *lease);
void publish_to_holder(struct daemon *daemon, const struct lease *lease, int holder);

/* ---- schedule.c --------------------------------------------------------------------- */

uint64_t daemon_now_usec(void); /* CLOCK_BOOTTIME */

/* Runs update_now() before the next request is read: however many holders close at once, there
 * is one update. */
void schedule_update(struct daemon *daemon);

/* Answers the calls that wait for an observation, after the update. */
void schedule_answers(struct daemon *daemon);

/* Makes a timer that is off, on the clock of daemon_now_usec(); its userdata is the daemon. accuracy_usec 0: that of
 * sd-event. */
int schedule_add(struct daemon *daemon, uint64_t accuracy_usec, sd_event_time_handler_t handler,
		 sd_event_source **ret);
