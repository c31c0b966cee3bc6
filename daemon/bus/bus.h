/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arbiter on D-Bus. The adapter identifies the caller, reads the arguments, calls the daemon
 * (struct bus_host) and sends the answer; it decides nothing. The interface is described in
 * dbus/org.gpuarb.Arbiter1.xml.
 *
 * A call goes through bus-server.c (connection), bus-sender.c (caller), bus-polkit.c
 * (administrators), bus-read.c (arguments), the object (bus-arbiter.c, bus-gpu.c, bus-lease.c),
 * and back through bus-write.c and bus-reply.c.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "core/mask/queue-slot.h"
#include "core/policy/result.h"

struct arbiter;
struct bus;
struct caller;
struct counters;
struct effects;
struct lease;
struct request;
struct usage_row;

/* The queue slots of a GPU at one moment, for ReadSlots. */
struct slots_reading {
	uint64_t usec;                  /* when they were read */
	const struct queue_slot *slots; /* of all GPUs */
	size_t n;
	uint32_t kfd_gpu_id;           /* of the GPU that was asked for */
	unsigned queues, without_slot; /* compute queues on it; those that are in no slot */
};

/* A user some of whose processes the last scan left for a later one. */
struct late_user {
	uid_t uid; /* (uid_t) -1: unknown */
	unsigned processes;
};

/* The daemon's side of the methods. The functions that return int return 0, or a negative errno
 * with the result set. */
struct bus_host {
	const char *version; /* the property Version; never NULL */

	/* The property QueueBudgets; never NULL. */
	const char *(*queue_budgets)(void *userdata);

	/* The property LateProcesses: one user after another; at 0 the first. false: there is none. */
	bool (*late_user)(void *userdata, size_t i, struct late_user *ret);

	/* Scans the hardware if the last scan is old. Called before each method and each read of
	 * a property. decides: it is a method of this interface, which may depend on what processes
	 * use now. */
	void (*refresh)(void *userdata, bool decides);

	/* Starts to observe which processes draw, if the last observation (all: of all processes, also
	 * of those that seem to be the same as before) is old. Returns whether it
	 * is under way: then bus_observed() follows. */
	bool (*observe_clients)(void *userdata, bool all);

	/* Whether hardware queue descriptors are read for the first time since the start: bus_observed()
	 * follows. */
	bool (*awaits_masks)(void *userdata);

	/* Looks up the names in the configuration, unless that was done for this reload. Whether a
	 * look-up is under way: bus_observed() follows. */
	bool (*resolve)(void *userdata);

	/* Fills in where a process comes from: unit, slice, executable. */
	void (*describe)(void *userdata, pid_t pid, struct caller *caller);

	/* Calls settled() when the service manager keeps all holders that were made so far; maybe
	 * at once. r: 0; -ECANCELED: the daemon is ending; another error: the service manager keeps
	 * nothing any more. -errno: settled() will not be called. */
	int (*settle)(void *userdata, void (*settled)(void *call, int r), void *call);

	/* Plans a Reserve and changes nothing. *ret is the caller's, and effects, all zero before,
	 * are for effects_done(). Here and in reserve() an
	 * index of a GPU in the request is replaced by the name of that GPU. */
	int (*plan)(void *userdata, const struct caller *caller, struct request *request,
		    struct lease **ret, struct effects *effects, struct result *result);

	/* process_fd: a pidfd to bind the lease to, or -1. On 0 the lease is saved and in force,
	 * or waiting, and *ret_holder is an fd for the caller to close. settle() tells when a
	 * restart keeps the holder, too. */
	int (*reserve)(void *userdata, const struct caller *caller, struct request *request,
		       int process_fd, const struct lease **ret, int *ret_holder,
		       struct result *result);
	/* The caller has not learned of its lease. The lease ends in the next turn of the loop, because a bound
	 * process would keep it alive without knowing of it. A lease with a token stays: the caller repeats the
	 * request. */
	void (*abandon)(void *userdata, uint64_t id);
	int (*resize)(void *userdata, const struct caller *caller, uint64_t id,
		      const struct request *request, struct result *result);
	int (*release)(void *userdata, const struct caller *caller, uint64_t id,
		       struct result *result);
	int (*bind)(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
		    struct result *result);
	/* listener: of a filter that reports calls which create queues. It stays the caller's. */
	int (*cap)(void *userdata, const struct caller *caller, uint64_t id, int listener,
		   struct result *result);
	int (*acknowledge)(void *userdata, const struct caller *caller, uint64_t id,
			   uint64_t generation, struct result *result);

	/* gpu: a name or an index. *ret is valid until the next event. -EINPROGRESS: the slots are being
	 * read, and bus_observed() follows. */
	int (*read_slots)(void *userdata, const char *gpu, struct slots_reading *ret,
			  struct result *result);

	/* The accounting since that time, in seconds of CLOCK_REALTIME: usage_sum(). */
	int (*read_usage)(void *userdata, uint64_t since, struct usage_row **ret, size_t *ret_n,
			  uint64_t *ret_from);

	/* Valid until the next event. */
	const struct counters *(*counters)(void *userdata);

	int (*activate)(void *userdata, const struct caller *caller, uint64_t id, bool active,
			struct result *result);

	/* The adapter has checked that the caller is an administrator. */
	int (*drain)(void *userdata, const char *gpu, bool drain, struct result *result);
	int (*reload)(void *userdata, struct result *result);
	int (*revoke)(void *userdata, uint64_t id, uint64_t grace_usec, const char *reason,
		      bool kill, struct result *result);
};

/* The daemon's side of the connection. */
struct bus_events {
	/* The connection is lost for good: the daemon frees this bus, but not from here. */
	void (*disconnected)(void *userdata);

	/* The bus has read nothing for ten seconds: the same. What was not sent is dropped. */
	void (*stalled)(void *userdata);

	/* The answer to bus_own_name_async(): 0, or -EEXIST. */
	void (*named)(void *userdata, int r);
};

/* Connects and exports the objects, and does not take the name yet. address: a bus address, or
 * NULL for the system bus. The adapter reads the arbiter and never changes it. */
int bus_new(sd_event *event, const char *address, const struct arbiter *arbiter,
	    const struct bus_host *host, const struct bus_events *events, void *userdata,
	    struct bus **ret);
struct bus *bus_free(struct bus *bus); /* sends what is queued, unless it is stalled */
DEFINE_CLEANUP(struct bus *, bus_free)

/* Takes the name. -EEXIST if another daemon has it. */
int bus_own_name(struct bus *bus);

/* Asks for the name without waiting: events->named() is called with the answer. */
int bus_own_name_async(struct bus *bus);

/* Asks systemd how many fds it keeps for the unit of this process (FileDescriptorStoreMax=), and
 * waits two seconds at most. -errno where systemd is not on this bus, or did not start this
 * process. */
int bus_store_max(struct bus *bus, unsigned *ret);

/* Answers the Reserves whose leases wait for others to shrink with an error: the leases end. */
void bus_refuse_deferred(struct bus *bus, enum result_kind kind, const char *sentence);

/* An observation that host->observe_clients() or host->awaits_masks() announced has ended, or failed. */
void bus_observed(struct bus *bus);

/* Waiting leases of this user were examined for so long, because something became free: charges the user, and
 * serves calls that waited for that. */
void bus_examined(struct bus *bus, uid_t uid, uint64_t usec);

/* What a signal tells about an object. */
enum bus_change {
	CHANGE_REMOVED = 1 << 0,
	CHANGE_ADDED = 1 << 1,      /* after it was removed: another one of this number */
	CHANGE_PROPERTIES = 1 << 2, /* those that can change */
};

/* Send the signals for a change. touched: bits of enum touch; call it for a removed lease before
 * the lease is freed. */
void bus_tell_lease(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_tell_gpu(struct bus *bus, unsigned gpu, enum bus_change change);
void bus_tell_tenants(struct bus *bus);
void bus_tell_queue_budgets(struct bus *bus);
