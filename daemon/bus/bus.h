/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The arbiter on D-Bus: reads arguments, knows who sent them, asks the host, answers.
 * It decides nothing. dbus/org.gpuarb.Arbiter1.xml is the text of what it speaks.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "core/change/arbiter.h"
#include "util/base.h"

struct bus;

/* What the bus asks of the daemon. All answer 0 or a negative errno with the result set. */
struct bus_host {
	const char *version; /* told as the property Version; never NULL */

	/* Brings what is known of the hardware up to date, if it is old. Called before
	 * anything is read or decided for a client. */
	void (*refresh)(void *userdata);

	/* Hints about a process: unit, slice, executable. */
	void (*describe)(void *userdata, pid_t pid, struct caller *caller);

	/* Calls back once all that was done so far outlives the daemon; maybe at once. For
	 * answers that must not be sent before. r: -ECANCELED where the daemon goes down;
	 * another error where nothing outlives it any more. -errno: it does not call back. */
	int (*settle)(void *userdata, void (*settled)(void *call, int r), void *call);

	/* Plans a Reserve and changes nothing. *ret is the bus's. An index of a GPU in the
	 * request becomes the name of that GPU, here and in reserve. */
	int (*plan)(void *userdata, const struct caller *caller, struct request *request,
		    struct lease **ret, struct result *result);

	/* process_fd: a pidfd to bind to, or -1. On 0, *ret_holder is an fd that the bus
	 * owns. The lease is in force, or waiting, and saved; settle() tells when its holder
	 * outlives the daemon, too. */
	int (*reserve)(void *userdata, const struct caller *caller, struct request *request,
		       int process_fd, const struct lease **ret, int *ret_holder,
		       struct result *result);
	int (*resize)(void *userdata, const struct caller *caller, uint64_t id,
		      const struct request *request, struct result *result);
	int (*release)(void *userdata, const struct caller *caller, uint64_t id,
		       struct result *result);
	int (*bind)(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
		    struct result *result);
	int (*acknowledge)(void *userdata, const struct caller *caller, uint64_t id,
			   uint64_t generation, struct result *result);

	int (*activate)(void *userdata, const struct caller *caller, uint64_t id, bool active,
			struct result *result);

	/* For administrators: the adapter has made sure of that. */
	int (*drain)(void *userdata, const char *gpu, bool drain, struct result *result);
	int (*reload)(void *userdata, struct result *result);
	int (*revoke)(void *userdata, uint64_t id, uint64_t grace_usec, const char *reason,
		      struct result *result);
};

/* What becomes of the connection. */
struct bus_events {
	/* It is lost, and this bus is of no use any more: to be freed, but not from here. */
	void (*disconnected)(void *userdata);

	/* The answer of bus_own_name_async(): 0, or -EEXIST. */
	void (*named)(void *userdata, int r);
};

/* address: a bus address, or NULL for the system bus. Connects, exports the objects; does
 * not take the name yet. arbiter is read, never changed. */
int bus_new(sd_event *event, const char *address, const struct arbiter *arbiter,
	    const struct bus_host *host, const struct bus_events *events, void *userdata,
	    struct bus **ret);
struct bus *bus_free(struct bus *bus); /* flushes what is queued */
DEFINE_CLEANUP(struct bus *, bus_free)

/* Takes the name. -EEXIST if another daemon has it. */
int bus_own_name(struct bus *bus);

/* The same without waiting: host->named() is called. */
int bus_own_name_async(struct bus *bus);

/* How many fds systemd keeps for our unit (FileDescriptorStoreMax=). Waits for its answer,
 * two seconds at most. -errno where it does not run on this bus, or did not start us. */
int bus_store_max(struct bus *bus, unsigned *ret);

/* Signals for what changed. touched: enum touch as bits; a removed lease is announced
 * before it is freed. */
void bus_tell_lease(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_tell_gpu(struct bus *bus, unsigned gpu);
void bus_tell_gpu_added(struct bus *bus, unsigned gpu);
void bus_tell_gpu_removed(struct bus *bus, unsigned gpu);
void bus_tell_tenants(struct bus *bus);
