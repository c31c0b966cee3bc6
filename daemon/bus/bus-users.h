/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Users and their connections: what each costs the daemon, and what its calls wait for. */

#include <sys/queue.h>

#include "bus/bus-private.h"
#include "core/policy/caller.h"

/* Of answers: on their way to a client. */
struct bus_amount {
	uint64_t bytes;
	unsigned fds;
};

TAILQ_HEAD(bus_call_list, bus_call);

/* A user with connections that have called a method. */
struct bus_user {
	uid_t uid;
	bool exempt;                  /* an administrator: its calls do not wait */
	TAILQ_HEAD(, bus_peer) peers; /* bus-sender.c */
	TAILQ_ENTRY(bus_user) link;

	/* bus-users.c: budgets, in millionths of a call and of a microsecond */
	int64_t calls, time;
	uint64_t filled_usec;
	uint64_t served, used_usec; /* in all */

	/* bus-calls.c */
	struct bus_call_list queue;
	size_t n_queued, n_refusals, queued_bytes; /* n_queued: with the refusals */
	uint64_t delayed, refused;                 /* in all */

	/* bus-unread.c */
	struct bus_amount unread;
	unsigned n_questions;
	uint64_t ask_usec, delay_usec; /* of the next questions */
};

/* A connection that has called a method. It lives until it has closed and its calls were served. */
struct bus_peer {
	struct bus *bus;
	char name[256];      /* unique name: names on a bus are at most 255 bytes long */
	sd_bus_slot *lookup; /* NULL: the caller is known */
	struct caller caller;
	struct bus_user *user; /* NULL: the caller is not known yet */
	bool closed;
	size_t n_queued;
	struct bus_call_list calls; /* until the caller is known */
	TAILQ_ENTRY(bus_peer) link; /* of user */

	/* bus-unread.c */
	sd_bus_slot *question;          /* to the bus */
	struct bus_amount unread, sent; /* sent: since the question */
};

uint64_t bus_now_usec(void); /* CLOCK_MONOTONIC */
uint64_t bus_cpu_usec(void); /* of this thread */

/* The user of a caller; NULL: no memory. */
struct bus_user *bus_user_get(struct bus *bus, const struct caller *caller);

/* When the next call of the user may be served: now or in the past, or later. */
uint64_t bus_user_ready_usec(struct bus *bus, struct bus_user *user, uint64_t now);

void bus_user_charge(struct bus_user *user, unsigned calls, uint64_t usec);

/* Whether a user who has `own` of `all` may have more: one has at most `most`, and at most half of
 * what the others leave of `total`. */
bool bus_user_has_share(uint64_t own, uint64_t all, uint64_t most, uint64_t total);

/* Whether more than half of the file descriptors that gpuarbd may have are open: then no further call waits. */
bool bus_fds_are_scarce(const struct bus *bus);

void bus_drop_users(struct bus *bus);
