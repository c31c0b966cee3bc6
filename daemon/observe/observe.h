/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the kernel shows of GPUs, processes, queues and drivers, and when it is read. */

#include "daemon.h"

/* Queues of an unmanaged process that cover CUs of leases on a GPU. */
struct intrusion {
	pid_t pid;
	uid_t uid; /* (uid_t) -1: unknown */
	char command[16];
	unsigned gpu;        /* index */
	uint64_t seen_usec;  /* the last reading of the descriptors */
	uint64_t spent_usec; /* for how long it has lasted; less what has passed since */
	uint64_t lease;      /* that the journal was told of; 0: it was not */
	bool logged;         /* … and its limit allowed that */
	bool realtime;       /* on CUs of a realtime lease */
	bool present, was_present;
};

/* ---- descriptors.c ------------------------------------------------------------------ */

/* Finds out whether hardware queue descriptors can be read here. Where they can,
 * acknowledgements are verified from now on. */
int descriptors_start(struct daemon *daemon);

void descriptors_stop(struct daemon *daemon);

/* Starts to read them if a lease needs it. */
void descriptors_refresh(struct daemon *daemon);

/* A lease was acknowledged: a read that was started before does not count. */
void descriptors_outdate(struct daemon *daemon);
uint64_t descriptors_due_usec(const struct daemon *daemon); /* the next read; UINT64_MAX: none */

/* Whether the first read has not ended yet: bus_observed() follows within 5 s of the start. */
bool descriptors_awaited(const struct daemon *daemon);

/* Whether waiting leases have to wait for it, too. */
bool descriptors_bar_grants(const struct daemon *daemon);

/* ---- intrusions.c ------------------------------------------------------------------- */

int intrusions_start(struct daemon *daemon);
void intrusions_stop(struct daemon *daemon);

/* Compares the covers of unmanaged processes with the leases, when the covers have changed. */
void intrusions_review(struct daemon *daemon);

/* Is there one that has not lasted for drift-grace yet? */
bool intrusions_pending(const struct daemon *daemon);

/* ---- driver-events.c ---------------------------------------------------------------- */

int driver_events_start(struct daemon *daemon);
void driver_events_stop(struct daemon *daemon);

/* Asks gpuarb-probe for event descriptors if a GPU is in use and there are none yet. */
void driver_events_refresh(struct daemon *daemon);

/* ---- slots-reading.c ---------------------------------------------------------------- */

int slots_start(struct daemon *daemon);
void slots_stop(struct daemon *daemon);

/* The member read_slots of struct bus_host. */
int slots_read(void *daemon, const char *name, struct slots_reading *ret, struct result *result);

/* ---- graphics-scan.c ---------------------------------------------------------------- */

int graphics_start(struct daemon *daemon);
void graphics_stop(struct daemon *daemon);

/* Starts an observation if one is due while a lease or a process uses a GPU. */
void graphics_refresh(struct daemon *daemon);

/* The member observe_clients of struct bus_host. */
bool graphics_observe(void *daemon, bool all);

/* ---- scan.c ------------------------------------------------------------------------- */

int scan_start(struct daemon *daemon);
uint64_t scan_begun_usec(const struct daemon *daemon); /* the last one */
bool scan_is_unsettled(const struct daemon *daemon);   /* the list of GPUs has to be read again */
uint64_t scan_generation(const struct daemon *daemon); /* of the list that is in force */

/* Lists GPUs of the backend that options and settings ask for: for --check too. */
int scan_find_gpus(const struct daemon_options *options, const struct settings *settings,
		   struct hw **ret_hw, struct gpu_info *gpus, size_t max,
		   struct diagnostics *diagnostics);

/* The GPUs that are not absent, for a parser. For free(); NULL: no memory. */
struct gpu_info *scan_present_gpus(const struct daemon *daemon, size_t *ret_n);

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

/* Memory of DRM clients is counted with the processes, as this observation tells, which is not copied. */
void process_scan_watch(struct daemon *daemon, const struct drm_scan *clients);

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
bool process_scan_in_use(const struct daemon *daemon); /* did the last scan see a GPU in use? */
uint64_t
process_scan_used_usec(const struct daemon *daemon); /* the end of the last one that did; 0: none */
bool process_scan_is_slow(const struct daemon *daemon); /* does a scan of all take several turns? */
