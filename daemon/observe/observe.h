/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel shows of GPUs, processes, queues and drivers, and when it is read. */

#include "daemon.h"

/* ---- descriptors.c ------------------------------------------------------------------ */

/* Finds out whether hardware queue descriptors can be read here. Where they can,
 * acknowledgements are verified from now on. */
int descriptors_start(struct daemon *daemon);

void descriptors_stop(struct daemon *daemon);

/* Starts to read them if a lease needs it. */
void descriptors_refresh(struct daemon *daemon);

/* Whether the first read has not ended yet: bus_observed() follows within 5 s of the start. */
bool descriptors_awaited(const struct daemon *daemon);

/* Whether waiting leases have to wait for it, too. */
bool descriptors_bar_grants(const struct daemon *daemon);

/* ---- intrusions.c ------------------------------------------------------------------- */

/* Compares the covers of unmanaged processes with the leases, when the covers have changed. */
void intrusions_review(struct daemon *daemon);

/* Is there one that has not lasted for drift-grace yet? */
bool intrusions_pending(const struct daemon *daemon);

/* ---- driver-events.c ---------------------------------------------------------------- */

int driver_events_start(struct daemon *daemon);
void driver_events_stop(struct daemon *daemon);

/* Asks gpuarb-probe for event descriptors if a GPU is in use and there are none yet. */
void driver_events_refresh(struct daemon *daemon);

/* ---- slots.c ------------------------------------------------------------------------ */

int slots_start(struct daemon *daemon);
void slots_stop(struct daemon *daemon);

/* The member read_slots of struct bus_host. */
int slots_read(struct daemon *daemon, const char *name, struct slots_reading *ret,
	       struct result *result);

/* ---- graphics.c --------------------------------------------------------------------- */

int graphics_start(struct daemon *daemon);

/* Starts an observation if one is due while a lease or a process uses a GPU. */
void graphics_refresh(struct daemon *daemon);

/* Starts an observation if the last one is older than the interval; all: of all processes. Returns
 * whether one is under way: bus_observed() follows. */
bool graphics_observe(struct daemon *daemon, bool all);

/* ---- scan.c ------------------------------------------------------------------------- */

/* Lists GPUs of the backend that options and settings ask for: for --check too. */
int scan_find_gpus(const struct daemon_options *options, const struct settings *settings,
		   const struct hw_ops **ret_ops, struct hw **ret_hw, struct gpu_info *gpus,
		   size_t max, struct diagnostics *diagnostics);

/* Reads the calibrations of all GPUs again, and tells the bus. */
void scan_calibrations(struct daemon *daemon, struct diagnostics *diagnostics);

/* While the driver builds its tree again, which it does for all GPUs when one goes, GPUs are
 * missing from it: a list counts when it has been the same for this time. */
#define SCAN_SETTLE_USEC UINT64_C(200000)

/* Begins a scan if the last one began so long ago, and does a part of it at once, which is all where
 * few processes use GPUs. Where the last scan of all took long, only new processes and those of ending
 * leases are read more often than at each audit-interval. Returns whether the facts have changed: then
 * update_now() is due. */
bool scan_hardware(struct daemon *daemon, uint64_t max_age_usec);
bool scan_finish(struct daemon *daemon,
		 bool all); /* to its end, or until it knows new processes; the same */

/* ---- process-scan.c ------------------------------------------------------------------- */

int process_scan_start(struct daemon *daemon);
void process_scan_stop(struct daemon *daemon);

/* Begins to read all processes, or only those that are new or belong to ending leases. */
void process_scan_begin(struct daemon *daemon, bool all);

/* Reads on for a fraction of a millisecond, and for about so many steps if that may be enough for facts to
 * take effect; timed turns go on with the rest. Returns whether they have taken effect. */
bool process_scan_turn(struct daemon *daemon, unsigned steps);

/* The member late_user of struct bus_host. */
bool process_scan_late_user(void *daemon, size_t i, struct late_user *ret);

/* Does it not know all processes yet, or not the new ones? */
bool process_scan_is_busy(const struct daemon *daemon, bool all);

/* When the last scan of all processes began that has ended; 0: none has. */
uint64_t process_scan_complete_usec(const struct daemon *daemon);
bool process_scan_is_slow(const struct daemon *daemon); /* does a scan of all take several turns? */
