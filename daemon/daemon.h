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
 *   unit.c             whether the processes of a unit belong to a lease
 *   liveness.c         holders and bound processes
 *   descriptors.c      reads the hardware queue descriptors
 *   slots.c            reads the queue slots on demand
 *   graphics.c         observes which processes draw
 *   driver-events.c    takes the events of the driver
 *   unmanaged.c        ends processes without a lease
 *   intrusions.c       observes queues of unmanaged processes on CUs of leases
 *   scan.c             reads which GPUs there are, and begins scans
 *   process-scan.c     reads which processes use the GPUs, in parts
 *   accounting.c       what users held, waited for and were refused
 *   journal-events.c   the journal entry of each change of a lease
 *   schedule.c         timers and the clock
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "bus/bus.h"
#include "core/change/arbiter.h"
#include "core/ledger/usage.h"
#include "helpers/budget-client.h"
#include "helpers/debugfs-reader.h"
#include "helpers/enforce-client.h"
#include "helpers/fdinfo-client.h"
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
	const char *budget;   /* the socket of gpuarb-budget */
	const char *enforce;  /* the socket of gpuarb-enforce */
	const char *fdinfo;   /* the socket of gpuarb-fdinfo */
	const char *probe;    /* the socket of gpuarb-probe */
	const char *runtime_directory;
	const char *state_directory; /* NULL: none */
	const char *bus_address;     /* NULL: the system bus */
};

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
	bool present, was_present;
};

/* A process that uses a GPU without a lease, until policy ends it. */
struct unleased {
	pid_t pid;
	uint64_t start_time;
	uid_t uid;
	unsigned gpu; /* index */
	char command[16];
	uint64_t due_usec; /* when it is ended, or was to be last */
	bool due;          /* it was to be ended */
	bool present;
};

struct daemon {
	const struct daemon_options *options;
	sd_event *event;
	struct arbiter *arbiter;
	struct state *state;
	struct bus *bus; /* NULL while there is no connection */
	struct enforce *enforce;

	/* reload.c: the keys that are used only at the start */
	struct {
		enum backend backend;
		char *simulate;
	} started;

	/* resolve.c */
	struct {
		sd_event_source *io; /* of a child; NULL: no look-up is under way */
		sd_event_source *timer;
		char *text; /* from it, so far */
		size_t size;
		bool retry;          /* of those alone that did not exist */
		bool hangup;         /* SIGHUP waits for it */
		uint64_t again_usec; /* the time until the next one */
		enum { RESOLVE_NONE, RESOLVE_DONE, RESOLVE_FAILED } state; /* for one reload */
		struct names names;                                        /* RESOLVE_DONE */
	} resolve;

	/* bus-connection.c */
	struct {
		sd_event_source *retry;
		uint64_t pause_usec; /* before the next attempt; 0: connected */
		bool name_taken;     /* another process had the name, which was logged */
	} connection;

	/* schedule.c, update.c */
	struct {
		sd_event_source *update;   /* update_now() before the next request */
		sd_event_source *answers;  /* to calls that wait for an observation */
		sd_event_source *deadline; /* of any lease */
		sd_event_source *scan;     /* of the hardware */
		sd_event_source *round;    /* the next part of a round through the waiting leases */
		sd_event_source *idle;     /* the same, sooner */
	} timer;

	/* commit.c */
	struct {
		int unsaved;          /* why the last changes could not be saved; 0: they are */
		bool refused;         /* the last proposal could not be saved */
		uint64_t failed_usec; /* when a save failed that is tried again */
		bool grant_fails; /* a waiting lease fits but cannot be saved, which was logged */
	} commit;

	/* publish.c: changes of GPUs and new leases that are signalled later, with others */
	struct {
		uint64_t gpu_usec[REQUEST_WANTS]; /* when each GPU was signalled last */
		uint64_t gpus;                    /* to be signalled, as bits */
		uint64_t second_usec;             /* the start of a second */
		unsigned n_leases;                /* new ones since then */
		bool leases;                      /* some are unsignalled */
		sd_event_source *timer;
	} signals;

	/* publish.c, journal-events.c */
	uint64_t oversubscribed; /* GPUs whose oversubscription was logged, as bits */
	uint64_t drawn;          /* GPUs on which it was logged that a process draws, as bits */
	struct ratelimit refused, covered; /* refusals and intrusions that were logged */
	struct ratelimit waiting, granted, changed, ended; /* the same of leases */

	/* liveness.c */
	struct {
		struct store *store;
		struct holders *holders;
		unsigned nofile;    /* fds that this process, or the next one, can have */
		unsigned store_max; /* fds that the service manager keeps; UINT_MAX: unknown */
		unsigned max;       /* holders and bound processes at most */
		bool stored;        /* leases outlive this process; false was logged */
	} liveness;

	struct caps *caps; /* caps.c */

	/* accounting.c */
	struct {
		struct usage *usage;
		sd_event_source *timer; /* to save it */
		bool scheduled, fails;
	} accounting;

	/* frozen.c */
	struct {
		LIST_HEAD(, frozen_unit) units;
		sd_event_source *retry; /* of a thaw that failed */
	} frozen;

	/* unit-caps.c */
	struct {
		struct budget_client *client;   /* NULL: the GPUs are simulated */
		struct budget_request *request; /* the last one */
		bool pending;                   /* it has no answer yet */
		bool outdated;                  /* the next one differs, or may */
		bool fails;                     /* the last one failed */
		bool loaded;   /* the kernel enforces budgets, or may, of an earlier request */
		bool repeated; /* the request is sent again at one of the next scans */
		uint64_t usec; /* of the last one */
		char state[BUDGET_SENTENCE_MAX]; /* the property QueueBudgets */
	} unit_caps;

	/* unmanaged.c */
	struct {
		struct unleased *list;
		size_t n;
	} unmanaged;

	/* intrusions.c */
	struct {
		struct intrusion *list;
		size_t n;
		uint64_t masks_usec; /* the readings that were reviewed last … */
		size_t n_covers;     /* … and the covers of processes that were left then */
	} intrusions;

	/* scan.c */
	const struct hw_ops *ops;
	struct hw *hw;
	struct {
		uint64_t generation;                 /* of the hardware's list that is in force */
		struct gpu_info last[REQUEST_WANTS]; /* the last list, maybe of half a tree */
		size_t n_last;
		uint64_t last_usec; /* since when the list is the same */
		bool unsettled;     /* the list has to be read again */
		bool fails;         /* the last attempt failed, which was logged */
	} list;

	struct {
		uint64_t usec;      /* when the last scan began … */
		uint64_t all_usec;  /* … and the last one of all processes */
		uint64_t used_usec; /* when the last scan ended that saw a GPU in use; 0: none */
		bool in_use;        /* the last one did */
		bool fails;         /* the last one failed, which was logged */
	} scan;
	struct process_scan *processes; /* process-scan.c */

	/* descriptors.c */
	struct {
		struct probe *probe;
		struct mqd_parser *parser; /* of the text that is being read; NULL: none */
		struct gpu_info *gpus;     /* for the parser */
		size_t n_gpus;
		sd_event_source *source;
		uint64_t usec;       /* when the last read was started */
		uint64_t heard_usec; /* when it was started, or its last piece came */
		uint64_t until_usec; /* requests wait for the first read; 0: it has ended */
		bool pending;        /* that read has not ended yet */
		bool readable;       /* a read has succeeded once: later ones may, too */
		bool outdated;       /* a lease was acknowledged since the read was started */
		uint64_t due_usec;   /* of the next read; UINT64_MAX: none */
		uint64_t took_usec;  /* by the last read */
	} descriptors;

	/* driver-events.c */
	struct {
		sd_event_source *request; /* the connection to gpuarb-probe; NULL: none */
		sd_event_source *timeout; /* of that */
		bool answered;            /* it has sent a GPU */
		uint64_t usec;            /* of the last request; 0: none */
		uint64_t generation;      /* of the list of GPUs at that time */
		bool fails;               /* the last request failed, which was logged */
		bool lost;                /* it failed, or a descriptor has ended since */
		LIST_HEAD(, driver_stream) streams;
		struct driver_eviction *evictions; /* at present */
		size_t n_evictions;
		uint64_t reset_usec;     /* of the last reset of a GPU */
		uint64_t throttled_usec; /* of the last log line about heat */
		pid_t faulted;           /* of the last log line about a VM fault */
	} driver;

	/* slots.c */
	struct {
		struct probe *probe;
		sd_event_source *source, *timeout;
		struct hqd_parser *slot_parser; /* of the text that is being read; NULL: none */
		struct mqd_parser *queue_parser;
		struct gpu_info *gpus; /* for the parsers */
		bool slots_ended;      /* the queues follow */
		bool pending;          /* a reading has been started and has not ended */
		uint64_t usec;         /* of the last reading; 0: none */
		int error;             /* of the last reading, with the sentence */
		char why[256];
		struct queue_slot *list;
		size_t n;
		struct observed_mask *queues; /* that were read with the slots */
		size_t n_queues;
	} slots;

	/* graphics.c */
	struct {
		struct fdinfo *fdinfo; /* NULL: simulated GPUs have no clients */
		struct drm_scan *last; /* the last observation; n is 0 where it failed */
		uint64_t usec;         /* when the last attempt ended; 0: there was none */
		uint64_t all_usec;     /* … to read all processes */
		uint64_t cost_usec, all_cost_usec; /* CPU time of the last ones that succeeded */
		uint64_t observed_usec; /* when the last observation ended; 0: there is none */
		bool pending;           /* an attempt has not ended yet */
		bool all;               /* it is for all processes */
		bool fails;             /* the last attempt failed, which was logged */
		bool late;              /* it left out processes, which was logged */
	} graphics;
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

/* Warns of floors that the GPUs do not have, and of those on GPUs that are not there. */
/* Keeps the keys that have an effect at the start only. */
int reload_remember_start(struct daemon *daemon, const struct settings *settings);
void reload_check_floors(const struct daemon *daemon, struct diagnostics *diagnostics);

/* ---- resolve.c ---------------------------------------------------------------------- */

int resolve_start(struct daemon *daemon);
void resolve_stop(struct daemon *daemon);

/* Looks up the names in the files of the configuration. Whether a look-up is under way: when it has ended,
 * bus_observed() follows, and the next reload takes what it has found. */
bool resolve_names(struct daemon *daemon);

/* Reloads with the names that were found, and on SIGHUP. */
int resolve_reload(struct daemon *daemon, struct diagnostics *diagnostics);
void resolve_hangup(struct daemon *daemon);

/* The settings have changed: names that do not exist are looked up again later. */
void resolve_review(struct daemon *daemon);

/* ---- update.c ----------------------------------------------------------------------- */

/* Makes the timers. */
int update_start(struct daemon *daemon);

/* Brings everything in line with the ledger: the last step of whatever changes the ledger. */
void update_now(struct daemon *daemon);

/* ---- commit.c ----------------------------------------------------------------------- */

/* Saves the proposal, then puts it into force. Takes it. *ret_lease may be NULL. On -errno
 * nothing has changed. */
int commit_proposal(struct daemon *daemon, struct lease *proposal, struct lease **ret_lease);

/* The same for leases that move; frees the rest after a failure. Returns whether all are in force. */
bool commit_moves(struct daemon *daemon, struct move_set *set);

/* Makes the next change that became possible: a preempted lease waits again, a waiting lease is
 * granted, leases move to make room for one, or an adaptable lease grows. false: there is none, or
 * it cannot be saved. */
bool commit_next(struct daemon *daemon);

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

void publish_leases(struct daemon *daemon); /* all that have changed */

/* All that have changed; on the bus, not more often than every 20 ms for each GPU. */
void publish_gpus(struct daemon *daemon);

/* Sends the state of the lease to all of its holders, or to this one. */
void publish_to_holders(struct daemon *daemon, const struct lease *lease);
void publish_to_holder(struct daemon *daemon, const struct lease *lease, int holder);

/* ---- overdue.c ---------------------------------------------------------------------- */

int overdue_start(struct daemon *daemon);

/* Carries out every enforcement step that is due. */
void overdue_enforce(struct daemon *daemon);

/* Kills a process without a lease that has queues on CUs of this one. */
void overdue_kill_intruder(struct daemon *daemon, const struct lease *lease,
			   const struct intrusion *intrusion);

/* Freezes again what an earlier daemon had frozen: gpuarb-enforce thawed it when that daemon ended. */
void overdue_resume(struct daemon *daemon);

/* ---- frozen.c ----------------------------------------------------------------------- */

int frozen_start(struct daemon *daemon);

/* Reads which units an earlier daemon froze; frozen_review() thaws them. */
int frozen_recover(struct daemon *daemon);

/* Asks gpuarb-enforce to freeze the unit of the bound processes of the lease, if the unit has no other
 * process. pidfd and start_time name a process in it that uses a GPU. The name is saved first. -errno
 * with a sentence. */
int frozen_freeze(struct daemon *daemon, const struct lease *lease, int pidfd, uint64_t start_time,
		  uid_t user, char *why, size_t size);

/* The answers of gpuarb-enforce, and its end: another one thaws what it had frozen. */
void frozen_answer_freeze(struct daemon *daemon, uint64_t lease, const char *unit, int r,
			  const char *sentence);
void frozen_answer_thaw(struct daemon *daemon, const char *unit, int r, const char *sentence);
void frozen_helper_lost(struct daemon *daemon);

/* Thaws each unit whose lease was removed or need not be frozen any more, or which has a process that
 * does not belong to the lease. */
void frozen_review(struct daemon *daemon);

void frozen_free(struct daemon *daemon);

/* ---- unit.c ------------------------------------------------------------------------- */

/* 0: every process in the cgroup belongs to the lease; 1: process *ret does not; a negative errno: they
 * cannot be read. */
int unit_find_other(const struct daemon *daemon, const struct lease *lease, const char *cgroup,
		    pid_t *ret);

/* ---- liveness.c --------------------------------------------------------------------- */

int liveness_start(struct daemon *daemon);

/* Sets how many holders and bound processes there can be: max-holders, or less where the
 * service manager cannot keep as many, which is logged. */
void liveness_limit(struct daemon *daemon);

/* Asks systemd how many fds it keeps for this unit, where it did not say so at the start. */
void liveness_ask_store(struct daemon *daemon);

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
int liveness_open_asker(const struct caller *caller, const struct request *request);

/* The process was chosen to be bound to the lease: the process that asked is not bound by default any
 * more. */
void liveness_chosen(struct daemon *daemon, struct lease *lease, pid_t pid);

/* Counts it in the ledger, once the lease is in force. */
void liveness_count(struct daemon *daemon, const struct liveness *liveness);

/* ---- caps.c -------------------------------------------------------------------------- */

int caps_start(struct daemon *daemon);

/* Watches a copy of the listener. The lease is not capped before a bound process has made a call
 * under the filter. */
int caps_add(struct daemon *daemon, const struct lease *lease, int listener);

/* The lease-ID-cap-PID that an earlier daemon kept in the store, and its listener, which it takes
 * also on failure. -EBADF: it is none. */
bool caps_parse_name(const char *name, uint64_t *ret_lease, pid_t *ret_pid);
int caps_adopt(struct daemon *daemon, uint64_t lease, pid_t pid, int fd);

/* The lease or its bound processes have changed: finds out whether it is still capped, and whether
 * its unit is to be. */
void caps_review(struct daemon *daemon, uint64_t lease);

/* A bound process has ended: its cap is not that of a later process with its pid. */
void caps_process_ended(struct daemon *daemon, uint64_t lease, pid_t pid);

/* The listeners of a lease, and of all: an fd and an entry in the store each. */
size_t caps_of(const struct daemon *daemon, uint64_t lease);
size_t caps_count(const struct daemon *daemon);

/* Closes the listeners of a lease that is removed. */
void caps_drop(struct daemon *daemon, uint64_t lease);

/* Closes the listeners of all leases; the service manager keeps its copies. A daemon without listeners
 * is valid. */
void caps_free(struct daemon *daemon);

/* ---- unit-caps.c --------------------------------------------------------------------- */

/* The property QueueBudgets; otherwise it is the reason why budgets are not enforced. */
#define UNIT_CAPS_UNUSED "unused"
#define UNIT_CAPS_ENFORCED "enforced"

int unit_caps_start(struct daemon *daemon);
void unit_caps_stop(struct daemon *daemon);

/* The member queue_budgets of struct bus_host. */
const char *unit_caps_state(void *daemon);

/* Asks for the removal of all budgets, and does not wait for it. */
void unit_caps_remove(struct daemon *daemon);

/* Finds out whether the kernel is to cap the unit of the lease. filtered: the lease has listeners. */
void unit_caps_review(struct daemon *daemon, struct lease *lease, bool filtered);
void unit_caps_reload(struct daemon *daemon); /* tenants may have changed */
void unit_caps_drop(struct daemon *daemon, const struct lease *lease); /* it is removed */

/* Sends the budgets to gpuarb-budget if they have changed, or are to be sent again. */
void unit_caps_refresh(struct daemon *daemon);

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

/* ---- unmanaged.c -------------------------------------------------------------------- */

/* After a scan, and before a request is read that might give one of its processes a lease: with unmanaged =
 * refuse, warns the processes without a lease, and ends those whose grace has passed. */
void unmanaged_review(struct daemon *daemon);

/* gpuarb-enforce was asked to end the process. */
void unmanaged_answer(struct daemon *daemon, pid_t pid, int r, const char *sentence);

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
bool scan_finish(struct daemon *daemon); /* to its end, at once; the same */

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

bool process_scan_is_busy(const struct daemon *daemon);

/* When the last scan of all processes began that has ended; 0: none has. */
uint64_t process_scan_complete_usec(const struct daemon *daemon);
bool process_scan_is_slow(const struct daemon *daemon); /* does a scan of all take several turns? */

/* ---- journal-events.c --------------------------------------------------------------- */

/* These four log a hundred entries of a user in half a minute. */
void journal_events_waits(struct daemon *daemon, const struct lease *lease);
void journal_events_granted(struct daemon *daemon, const struct lease *lease, const char *when);

/* EVENT_RESIZED, EVENT_ACTIVATED or EVENT_DEACTIVATED, with what the lease has now. */
void journal_events_changed(struct daemon *daemon, enum log_event event, const struct lease *lease);

void journal_events_adopted(const struct daemon *daemon, const struct lease *lease);
void journal_events_lost(uint64_t lease); /* its file is set aside */
void journal_events_ended(struct daemon *daemon, const struct lease *lease);
void journal_events_revoking(const struct daemon *daemon, const struct lease *lease,
			     uint64_t grace_usec);
void journal_events_preempt(struct daemon *daemon, const struct lease *lease);
void journal_events_overdue(const struct daemon *daemon, const struct lease *lease,
			    const char *what);
void journal_events_paused(const struct daemon *daemon, const struct lease *lease);
void journal_events_false_ack(const struct daemon *daemon, const struct lease *lease);
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
void journal_events_gpu(const struct daemon *daemon, const struct gpu *gpu,
			bool was_oversubscribed);
void journal_events_graphics(const struct gpu *gpu); /* a process draws beside leases */

/* ---- accounting.c ------------------------------------------------------------------- */

int accounting_start(struct daemon *daemon);
void accounting_end(struct daemon *daemon); /* saves it */

/* After each change of the lease, or before it is freed. touched: bits of enum touch. */
void accounting_lease(struct daemon *daemon, const struct lease *lease, unsigned touched);
void accounting_moved(struct daemon *daemon, const struct lease *lease); /* for another lease */
void accounting_decided(struct daemon *daemon, uint64_t usec); /* a Reserve took so long */
void accounting_refused(struct daemon *daemon, const struct caller *caller,
			const struct request *request, const struct result *result);

/* As usage_sum(), up to now. */
int accounting_read(struct daemon *daemon, uint64_t since, struct usage_row **ret, size_t *ret_n,
		    uint64_t *ret_from);
const struct counters *accounting_counters(struct daemon *daemon);

/* ---- schedule.c --------------------------------------------------------------------- */

uint64_t daemon_now_usec(void); /* CLOCK_BOOTTIME */

/* Runs update_now() before the next request is read: however many holders close at once, there
 * is one update. */
void schedule_update(struct daemon *daemon);

/* Answers the calls that wait for an observation, after the update. */
void schedule_answers(struct daemon *daemon);

/* Sets the timers to the next deadline and to the next scan. */
void schedule_timers(struct daemon *daemon);

/* Are scans made without a request? */
bool schedule_scans(const struct daemon *daemon);
