/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The daemon: holds the parts together and carries out what core decides, always in one
 * order: save, apply, tell.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "bus/bus.h"
#include "core/change/arbiter.h"
#include "util/ratelimit.h"
#include "hw/hw.h"
#include "sys/config/config.h"
#include "helpers/enforce-client.h"
#include "sys/liveness/holder.h"
#include "helpers/debugfs-reader.h"
#include "sys/state/state.h"
#include "sys/liveness/store.h"

/* What ends is seen first, then carried out together, and only then is anything decided. */
#define PRIORITY_CARRY_OUT ((SD_EVENT_PRIORITY_IMPORTANT + SD_EVENT_PRIORITY_NORMAL) / 2)

struct daemon_options {
	struct config_files files;
	const char *profiles; /* directory */
	const char *simulate; /* profiles, comma-separated; NULL: as configured */
	const char *sysfs;    /* what stands for /sys; NULL: /sys */
	const char *debugfs;  /* for /sys/kernel/debug; NULL: a service reads it */
	const char *enforce;  /* the socket of gpuarb-enforce */
	const char *runtime_directory;
	const char *bus_address; /* NULL: the system bus */
};

struct daemon {
	const struct daemon_options *options;
	sd_event *event;
	const struct hw_ops *ops;
	struct hw *hw;
	struct arbiter *arbiter;
	struct state *state;
	struct store *store;
	struct holders *holders;

	struct bus *bus; /* NULL while there is none */
	sd_event_source *reconnect;
	uint64_t pause_usec; /* before the next attempt */
	bool unnamed;        /* somebody else had the name at the last one, which was logged */

	unsigned nofile;      /* fds that the service manager can give to a process of ours */
	unsigned store_max;   /* fds that it keeps for us; UINT_MAX: it does not say */
	bool stored;          /* leases outlive this process, as far as anybody was told */
	unsigned max_holders; /* as configured, or what the two allow */

	sd_event_source *carry;    /* something has ended: daemon_carry_out() */
	sd_event_source *deadline; /* of a lease that waits */
	uint64_t saved;            /* the lease that was saved as it is, before its commit; or 0 */
	bool stale;                /* what was saved of some lease is not what it is */
	bool unsaved;              /* a waiting lease fits, and could not be saved */

	struct enforce *enforce; /* who kills and freezes for us */
	struct probe *probe;     /* who reads what hardware queues have */
	sd_event_source *probing;
	uint64_t probed_usec; /* when it was asked last */
	bool asked;           /* it has not answered yet */
	bool readable;        /* it has answered once, so that it may again */
	bool outdated;        /* what it is about to answer is older than what was said */

	sd_event_source *audit;                /* when to look at the hardware next */
	uint64_t generation;                   /* of the list of GPUs */
	struct gpu_info listed[REQUEST_WANTS]; /* the last list, which may be of half a tree */
	size_t n_listed;
	uint64_t listed_usec; /* since when it is this one */
	bool unsettled;       /* it is to be read once more */
	bool unlisted;        /* the last attempt to list them again failed, which was logged */
	uint64_t looked_usec; /* CLOCK_BOOTTIME of the last look */
	bool in_use;          /* somebody was seen on a GPU */
	bool blind;           /* the last look failed, which was logged */
	struct hw_use *uses;  /* room for ops->use() */
	size_t uses_room;
	uint64_t warned;          /* GPUs whose oversubscription was logged, as bits */
	struct ratelimit refused; /* refusals that were logged */
};

/* Reads the configuration and the hardware, connects, takes the name, goes on with the
 * leases of the daemon before. What is wrong is logged. -EINVAL: the configuration. */
int daemon_new(const struct daemon_options *options, sd_event *event, struct daemon **ret);

/* Leaves the leases to the next daemon, if the service manager keeps what they live by; else
 * ends them, telling their holders why. Takes NULL. */
struct daemon *daemon_free(struct daemon *daemon);
DEFINE_CLEANUP(struct daemon *, daemon_free)

/* Reads the configuration anew; on failure what was in force stays, notes say why. */
int daemon_reload(struct daemon *daemon, struct diagnostics *diagnostics);

uint64_t daemon_now_usec(void); /* CLOCK_BOOTTIME */

/* ---- commit.c ------------------------------------------------------------------- */

/* Grants what fits to those who wait, saves, and tells the world what has changed in core.
 * The last step of everything. */
void daemon_carry_out(struct daemon *daemon);

/* The same, before the next request is looked at. */
void daemon_carry_out_soon(struct daemon *daemon);

/* Saves all leases once more, if one could not be saved when it changed: one that has ended
 * would go on after a restart. -errno where one still cannot be. */
int daemon_save_again(struct daemon *daemon);

/* Saves what is about to be granted; nothing is while the file of another says more than is
 * true, since that may be what is granted here. */
int daemon_save(struct daemon *daemon, const struct lease *proposal);

/* All that there is to say of a lease, as a record. */
void daemon_tell_holders(struct daemon *daemon, const struct lease *lease);
void daemon_tell(struct daemon *daemon, const struct lease *lease, int holder);

/* Leaves all leases to the next daemon, with what is known of them now. */
void daemon_leave_leases(struct daemon *daemon);

/* Ends all leases, for nobody will keep them: tells their holders, and no more. */
void daemon_end_leases(struct daemon *daemon);

/* ---- journal-events.c: what becomes of leases, told to the journal ------------------------------ */

void journal_events_waits(const struct daemon *daemon, const struct lease *lease);
void journal_events_granted(const struct daemon *daemon, const struct lease *lease,
			    const char *when);
void journal_events_resized(const struct daemon *daemon, const struct lease *lease);
void journal_events_adopted(const struct daemon *daemon, const struct lease *lease);
void journal_events_lost(uint64_t lease); /* its file is set aside */
void journal_events_ended(const struct daemon *daemon, const struct lease *lease);
void journal_events_active(const struct daemon *daemon, const struct lease *lease);
void journal_events_inactive(const struct daemon *daemon, const struct lease *lease);
void journal_events_revoking(const struct daemon *daemon, const struct lease *lease,
			     uint64_t grace_usec);
void journal_events_forced(const struct daemon *daemon, const struct lease *lease,
			   const char *what);
void journal_events_drift(const struct daemon *daemon, const struct lease *lease);
void journal_events_refused(struct daemon *daemon, const struct caller *caller,
			    const struct request *request, const struct result *result);
void journal_events_resize_refused(struct daemon *daemon, const struct caller *caller, uint64_t id,
				   const struct result *result);
void journal_events_gpu(const struct daemon *daemon, const struct gpu *gpu,
			bool was_oversubscribed);

/* ---- descriptors.c: what the hardware has of what was acknowledged ----------------------------- */

/* Whether it can be read here at all; if so, acknowledgements have to be true from now on. */
int daemon_start_probe(struct daemon *daemon);

/* Reads it if there is need to. */
void daemon_verify(struct daemon *daemon);

/* ---- enforce.c: what is done to who does not give back --------------------------------------- */

int daemon_start_enforce(struct daemon *daemon);

/* Does what is due; whether anything was. */
bool daemon_enforce(struct daemon *daemon);

/* The lease is no more: what was frozen for it is thawed. */
void daemon_thaw(struct daemon *daemon, const struct lease *lease);

/* ---- recover.c ------------------------------------------------------------------------ */

/* Goes on with the leases that were saved, and with what the service manager kept of them. */
int daemon_adopt(struct daemon *daemon);

/* ---- bus-connection.c ---------------------------------------------------------------------- */

/* Connects and takes the name; waits for that. What is wrong is logged. */
int daemon_connect(struct daemon *daemon);

/* ---- gpus.c ------------------------------------------------------------------------- */

/* Lists GPUs of the backend that options and settings ask for: for --check too. */
int daemon_find_gpus(const struct daemon_options *options, const struct settings *settings,
		     const struct hw_ops **ret_ops, struct hw **ret_hw, struct gpu_info *gpus,
		     size_t max, struct diagnostics *diagnostics);

/* Lists them again if there may be others by now. While the driver builds its tree anew, as it
 * does for all GPUs when one goes, there seem to be fewer: a list counts when it is the same
 * after this time. */
#define GPUS_SETTLE_USEC UINT64_C(200000)
void daemon_check_gpus(struct daemon *daemon);

/* ---- scan.c ------------------------------------------------------------------------- */

/* Looks at the hardware if the last look is older than this, and says whether it did. What
 * follows from it is for daemon_carry_out(). */
bool daemon_look(struct daemon *daemon, uint64_t max_age_usec);

/* Sets the time of the next look. */
void daemon_plan_look(struct daemon *daemon);

/* ---- liveness.c: what keeps leases alive -------------------------------------------------- */

/* How many holders and bound processes there can be, by these settings and by what the
 * service manager can keep and give back; says so where that is less than configured. */
unsigned daemon_limit_holders(const struct daemon *daemon, const struct settings *settings);

/* A pidfd is worth what the kernel says of it: alive, and of the sender's user. */
int keep_check_process(const struct caller *caller, int fd, pid_t *ret, struct result *result);

/* Watches a process for a lease, and makes a holder for it: an fd of the caller's. Both or
 * none. process_fd: -1 if there is no process. Counted by keep_count() once the lease is in
 * force. */
struct kept {
	uint64_t lease;
	int holder; /* the client's end; -1: none */
	pid_t pid;  /* newly bound; 0: none, or bound before */
};
int keep_process(struct daemon *daemon, uint64_t lease, uid_t owner, int process_fd, pid_t pid,
		 struct kept *ret, struct result *result);
int keep_holder(struct daemon *daemon, uint64_t lease, uid_t owner, int process_fd, pid_t pid,
		struct kept *ret, struct result *result);
void keep_count(struct daemon *daemon, const struct kept *kept);

/* ---- requests.c and its parts: what the bus may ask ------------------------------------- */

extern const struct bus_host daemon_host;
void host_disconnected(void *userdata); /* tries until there is a bus: leases need none */
void host_named(void *userdata, int r);
int host_reserve(void *userdata, const struct caller *caller, const struct request *asked,
		 int process_fd, const struct lease **ret, int *ret_holder, struct result *result);
int host_activate(void *userdata, const struct caller *caller, uint64_t id, bool active,
		  struct result *result);
int host_acknowledge(void *userdata, const struct caller *caller, uint64_t id, uint64_t generation,
		     struct result *result);
int host_revoke(void *userdata, uint64_t id, uint64_t grace_usec, const char *reason,
		struct result *result);
int host_bind(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
	      struct result *result);
int host_resize(void *userdata, const struct caller *caller, uint64_t id,
		const struct request *request, struct result *result);
