/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the files of this folder share. Arrows go from bus-server.c down; no file calls it. A member that
 * names a file belongs to it: no other one uses it.
 */

#include <sys/queue.h>

#include "bus/bus.h"

struct bus_peer;
struct bus_user;

struct bus {
	sd_bus *sd;
	sd_event *event;
	const struct arbiter *arbiter;
	const struct bus_host *host;
	const struct bus_events *events;
	void *userdata; /* of host and events */

	/* Set by bus-calls.c for bus-sender.c: the caller of a connection is known, or never will be.
	 * Then its calls are refused, or dropped for a sentence of NULL. */
	void (*known)(struct bus_peer *peer);
	void (*unknown)(struct bus_peer *peer, enum result_kind kind, const char *sentence);

	/* Set by any file for bus-calls.c. */
	bool changed;  /* calls may be served that could not */
	bool unproved; /* messages were sent after the last question to the bus */
	bool bloated;  /* the heap was large */

	TAILQ_HEAD(, bus_user) users; /* bus-users.h: in the order of their turns */

	struct bus_exported {
		struct bus *bus;
		const struct bus_kind *kind;
	} gpus, leases;

	void *peers;                 /* bus-sender.c: tsearch(3) tree by unique name */
	struct bus_calls *calls;     /* bus-calls.c */
	struct bus_unread *unread;   /* bus-unread.c */
	struct bus_managed *managed; /* bus-managed.c */

	/* bus-signals.c: of which another answer is not to be built before they are sent */
	void *held; /* tsearch(3) tree by object */
	TAILQ_HEAD(, held_signal) held_signals;
	bool holds_signals; /* an answer is being built */

	TAILQ_HEAD(client_call_list, client_call) client_calls; /* bus-clients.c */

	/* bus-polkit.c: questions that polkit has not answered yet. polkit knows each by its number, for a moment
	 * after it was cancelled, too: none is used twice. */
	LIST_HEAD(, question) questions;
	size_t n_questions;
	uint64_t last_question;

	LIST_HEAD(, deferred) deferred; /* bus-reply.c: Reserves whose borrowers shrink first */
};
