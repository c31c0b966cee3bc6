/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The daemon's private header: what the files of this folder share.
 *
 * Each file is one part of the daemon, and arrows go from top to bottom only:
 *
 *   main.c             options, --check, signals, the event loop
 *   start.c            makes the daemon and ends it
 *   bus-connection.c   connects to the bus, and again after it was lost
 *   requests.c         what clients ask on the bus
 *   recover.c          the leases that an earlier daemon left
 *   resolve.c          finds users and groups by name
 *   reload.c           the configuration, at the start and again
 *   update.c           brings everything in line after a change
 *   commit.c           saves what is to be granted and puts it into force
 *   publish.c          tells holders, the journal and the bus what has changed
 *   overdue.c          enforcement against leases that do not give back in time
 *   frozen.c           units that are frozen, until they are thawed
 *   caps.c             queues beyond the grant that the kernel refuses, under a filter
 *   unit-caps.c        the same for all processes of a unit
 *   unit-processes.c   whether the processes of a unit belong to a lease
 *   liveness.c         holders and bound processes
 *   descriptors.c      reads the hardware queue descriptors
 *   slots-reading.c    reads the queue slots on demand
 *   graphics-scan.c    observes which processes draw
 *   driver-events.c    takes the events of the driver
 *   unmanaged.c        ends processes without a lease
 *   intrusions.c       observes queues of unmanaged processes on CUs of leases
 *   scan.c             reads which GPUs there are, and begins scans
 *   process-scan.c     reads which processes use the GPUs, in parts
 *   accounting.c       what users held, waited for and were refused
 *   journal-events.c   the journal entry of each change of a lease
 *   schedule.c         the clock, and updates that are asked for
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "bus/bus.h"
#include "core/change/arbiter.h"
#include "helpers/clients.h"
#include "helpers/debugfs-reader.h"
#include "hw/hw.h"
#include "sys/config/config.h"
#include "sys/liveness/holder.h"
#include "sys/liveness/store.h"
#include "util/names.h"
#include "sys/state/state.h"
#include "util/log.h"
#include "util/ratelimit.h"

struct daemon_options {
	struct config_files files;
	const char *profiles; /* directory */
	const char *simulate; /* profiles, comma-separated; NULL: as configured */
	const char *sysfs;    /* a directory read instead of /sys; NULL: /sys */
	const char *debugfs;  /* read instead of /sys/kernel/debug; NULL: ask gpuarb-mqds */
	const char *harvest;  /* where gpuarb-harvest writes */
	const char *budget;   /* the socket of gpuarb-budget */
	const char *enforce;  /* the socket of gpuarb-enforce */
	const char *fdinfo;   /* the socket of gpuarb-fdinfo */
	const char *probe;    /* the socket of gpuarb-probe */
	const char *runtime_directory;
	const char *state_directory; /* NULL: none */
	const char *bus_address;     /* NULL: the system bus */
};

/* Handles only: what is behind each is known to the file that is named like it, or to its library. */
struct daemon {
	const struct daemon_options *options;
	sd_event *event;
	struct arbiter *arbiter;
	struct state *state;
	struct bus *bus;       /* NULL while there is no connection */
	struct asker *enforce; /* gpuarb-enforce */
	struct hw *hw;
	struct store *store;     /* what the service manager keeps */
	struct holders *holders; /* and bound processes */

	struct started *started; /* reload.c: the keys that are used only at the start */
	struct resolve *resolve;
	struct bus_connection *connection;
	struct timers *timer; /* protocol/timers.h */
	struct commit *commit;
	struct publish *publish;
	struct journal_events *journal;
	struct liveness_room *liveness;
	struct accounting *accounting;
	struct caps *caps;
	struct unit_caps *unit_caps;
	struct frozen *frozen;
	struct unleased_list *unmanaged;
	struct intrusions *intrusions;
	struct scan *scan;
	struct process_scan *processes;
	struct descriptors *descriptors;
	struct driver *driver; /* driver-events.c */
	struct slots *slots;
	struct graphics_scan *graphics;
};

/* ---- start.c ------------------------------------------------------------------------ */

/* Reads the configuration and the hardware, connects, takes the name, and recovers the leases
 * of an earlier daemon. Failures are logged. -EINVAL: the configuration. */
int daemon_new(const struct daemon_options *options, sd_event *event, struct daemon **ret);

/* Leaves the leases to the next daemon where the service manager keeps their holders; else
 * ends them and tells their holders why. Takes NULL. */
struct daemon *daemon_free(struct daemon *daemon);
DEFINE_CLEANUP(struct daemon *, daemon_free)

/* ---- bus-connection.c --------------------------------------------------------------- */

/* Connects and takes the name, and waits for both. Failures are logged. */
int bus_connection_open(struct daemon *daemon);
void bus_connection_close(struct daemon *daemon);

/* ---- unit-processes.c --------------------------------------------------------------- */

/* 0: every process in the cgroup belongs to the lease; 1: process *ret does not; a negative errno: they
 * cannot be read. */
int unit_find_other(const struct daemon *daemon, const struct lease *lease, const char *cgroup,
		    pid_t *ret);

/* ---- liveness.c --------------------------------------------------------------------- */

int liveness_start(struct daemon *daemon);

/* Sets how many holders and bound processes there can be: max-holders, or less where the
 * service manager cannot keep as many, which is logged. */
void liveness_limit(struct daemon *daemon);

/* Has the service manager ceased to keep fds? It is told once. */
bool liveness_lost_store(struct daemon *daemon);

/* Asks systemd how many fds it keeps for this unit, where it did not say so at the start. */
void liveness_ask_store(struct daemon *daemon);

/* As process_describe(). The last ancestor is the bound process with which the container of the process begins: a program
 * that `podman exec` starts counts as its child. */
void liveness_describe(const struct daemon *daemon, struct observed *row);

/* Checks that a pidfd is of a living process of the caller's user. */
int liveness_check_process(const struct daemon *daemon, const struct caller *caller, int fd,
			   pid_t *ret, struct result *result);

/* What keeps a lease alive and is not counted in the ledger yet. */
struct liveness {
	uint64_t lease;
	int holder;     /* the client's end; -1: none */
	pid_t pid;      /* newly bound; 0: none, or bound before */
	bool delegated; /* root binds it */
};

/* Watches a process for the lease, and with holder also makes a holder, whose client end is the
 * caller's to close. Both or none. process_fd: -1 if there is no process. */
int liveness_add(struct daemon *daemon, const struct caller *caller, struct lease *lease,
		 bool holder, int process_fd, pid_t pid, struct liveness *ret,
		 struct result *result);

/* Whether there is room for this many more fds that keep or cap a lease of the user; else a negative
 * errno with the result. */
int liveness_check_room(const struct daemon *daemon, uid_t owner, unsigned more,
			struct result *result);

/* The process that asked for an adaptable lease, where the request names none: its pidfd, or -1 where
 * it has ended or changed its user since its connection was first used. */
int liveness_open_asker(const struct daemon *daemon, const struct caller *caller,
			const struct request *request);

/* The process was chosen to be bound to the lease: the process that asked is not bound by default any
 * more. */
void liveness_chosen(struct daemon *daemon, struct lease *lease, pid_t pid);

/* Counts it in the ledger, once the lease is in force. */
void liveness_count(struct daemon *daemon, const struct liveness *liveness);

/* ---- journal-events.c --------------------------------------------------------------- */

struct intrusion; /* observe/observe.h */
struct unleased;  /* enforce/enforce.h */

int journal_events_start(struct daemon *daemon);

/* "lease 7 of uid 1000", and the format, which begins with a space or a colon. */
void journal_events_lease(const struct daemon *daemon, enum log_event event,
			  const struct lease *lease, const char *format, ...) PRINTF_LIKE(4, 5);

/* These four log a hundred entries of a user in half a minute. */
void journal_events_waits(struct daemon *daemon, const struct lease *lease);
void journal_events_granted(struct daemon *daemon, const struct lease *lease, const char *when);

/* EVENT_RESIZED, EVENT_ACTIVATED or EVENT_DEACTIVATED, with what the lease has now. */
void journal_events_changed(struct daemon *daemon, enum log_event event, const struct lease *lease);

void journal_events_lost(uint64_t lease); /* its file is set aside */
void journal_events_ended(struct daemon *daemon, const struct lease *lease);
void journal_events_revoking(const struct daemon *daemon, const struct lease *lease,
			     uint64_t grace_usec);
void journal_events_preempt(struct daemon *daemon, const struct lease *lease);
/* Its reason: of a long pause, or of a false acknowledgement. */
void journal_events_reason(const struct daemon *daemon, const struct lease *lease, bool paused);
void journal_events_drift(const struct daemon *daemon, const struct lease *lease);

/* The queues of an unmanaged process cover CUs of this lease, and do not any more. false: its user has
 * caused too many entries. */
bool journal_events_covered(struct daemon *daemon, const struct lease *lease,
			    const struct intrusion *intrusion);
void journal_events_uncovered(const struct daemon *daemon, const struct intrusion *intrusion);

/* gpuarb-enforce was asked to end it. why: "", or why it does not. */
void journal_events_expelled(struct daemon *daemon, const struct unleased *process,
			     const char *why);
void journal_events_refused(struct daemon *daemon, const struct caller *caller,
			    const struct request *request, const struct result *result);
void journal_events_resize_refused(struct daemon *daemon, const struct caller *caller, uint64_t id,
				   const struct result *result);
void journal_events_reset(const struct daemon *daemon, const struct gpu *gpu, const char *cause);
void journal_events_gpu(struct daemon *daemon, const struct gpu *gpu, bool was_oversubscribed);
void journal_events_graphics(struct daemon *daemon,
			     const struct gpu *gpu); /* a process draws beside leases */

/* ---- accounting.c ------------------------------------------------------------------- */

int accounting_start(struct daemon *daemon);
void accounting_end(struct daemon *daemon); /* saves it */

/* After each change of the lease, or before it is freed. touched: bits of enum touch. */
void accounting_lease(struct daemon *daemon, struct lease *lease, unsigned touched);
void accounting_moved(struct daemon *daemon, const struct lease *lease); /* for another lease */
void accounting_decided(struct daemon *daemon, uint64_t usec); /* a Reserve took so long */
void accounting_refused(struct daemon *daemon, const struct caller *caller,
			const struct request *request, const struct result *result);

/* The members read_usage and counters of struct bus_host. */
int accounting_read(void *daemon, uint64_t since, struct usage_row **ret, size_t *ret_n,
		    uint64_t *ret_from);
const struct counters *accounting_counters(void *daemon);
