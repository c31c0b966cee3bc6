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

#include "core/arbiter.h"
#include "core/base.h"

struct bus;

/* What the bus asks of the daemon. All answer 0 or a negative errno with the verdict set. */
struct bus_host {
	const char *version; /* told as the property Version; never NULL */

	/* Brings what is known of the hardware up to date, if it is old. Called before
	 * anything is read or decided for a client. */
	void (*refresh)(void *userdata);

	/* Hints about a process: unit, slice, executable. */
	void (*describe)(void *userdata, pid_t pid, struct caller *caller);

	/* process_fd: a pidfd to bind to, or -1. On 0, *ret_holder is an fd that the bus
	 * owns. The lease is in force and saved. */
	int (*reserve)(void *userdata, const struct caller *caller,
		       const struct request *request, int process_fd,
		       const struct lease **ret, int *ret_holder, struct verdict *verdict);
	int (*resize)(void *userdata, const struct caller *caller, uint64_t id,
		      const struct request *request, struct verdict *verdict);
	int (*release)(void *userdata, const struct caller *caller, uint64_t id,
		       struct verdict *verdict);
	int (*bind)(void *userdata, const struct caller *caller, uint64_t id, int process_fd,
		    struct verdict *verdict);
	int (*acknowledge)(void *userdata, const struct caller *caller, uint64_t id,
			   uint64_t generation, struct verdict *verdict);

	/* For administrators: the adapter has made sure of that. */
	int (*drain)(void *userdata, const char *gpu, bool drain, struct verdict *verdict);
	int (*reload)(void *userdata, struct verdict *verdict);
};

/* address: a bus address, or NULL for the system bus. Connects, exports the objects; does
 * not take the name yet. arbiter is read, never changed. */
int bus_new(sd_event *event, const char *address, const struct arbiter *arbiter,
	    const struct bus_host *host, void *userdata, struct bus **ret);
struct bus *bus_free(struct bus *bus); /* flushes what is queued */
DEFINE_CLEANUP(struct bus *, bus_free)

/* Takes the name. -EEXIST if another daemon has it. */
int bus_own_name(struct bus *bus);

/* Signals for what changed. touched: enum touch as bits; a removed lease is announced
 * before it is freed. */
void bus_tell_lease(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_tell_gpu(struct bus *bus, unsigned gpu);
void bus_tell_tenants(struct bus *bus);
