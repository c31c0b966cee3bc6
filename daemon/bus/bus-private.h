/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the bus adapter share. */

#include "bus/bus.h"

struct bus {
	sd_bus *sd;
	sd_event *event;
	const struct arbiter *arbiter;
	const struct bus_host *host;
	const struct bus_events *events;
	void *userdata; /* of host and events */
	void *peers;    /* bus-sender.c: tsearch(3) tree by unique name */

	/* bus-polkit.c: what polkit was asked and has not answered. */
	struct question *questions;
	size_t n_questions;
	uint64_t last_question;

	struct deferred *deferred; /* bus-reply.c: grants that borrowers have to give way for */
};

/* ---- bus-arbiter.c, bus-gpu.c, bus-lease.c: each adds its interface to the bus ----------- */

int bus_export_arbiter(struct bus *bus);
int bus_export_gpus(struct bus *bus);
int bus_export_leases(struct bus *bus);

/* ---- bus-objects.c ---------------------------------------------------------------- */

/* The number that follows prefix and a slash; -ENOENT if path is not of that form. */
int bus_path_number(const char *path, const char *prefix, uint64_t *ret);

/* The objects below prefix, for sd-bus to own: PREFIX/number(bus, i) for each i < n. */
int bus_list_nodes(const struct bus *bus, const char *prefix, size_t n,
		   uint64_t (*number)(const struct bus *bus, size_t i), char ***ret);

/* An object is gone that had this interface of ours. */
void bus_emit_removed(struct bus *bus, const char *path, const char *interface);

int bus_append_text(sd_bus_message *m, const char *text); /* cleaned */

/* A property's getter: the body appends to `reply`. */
#define BUS_GETTER(name)                                                                     \
	static int name(sd_bus *sd __attribute__((unused)),                                  \
			const char *path __attribute__((unused)),                            \
			const char *interface __attribute__((unused)),                       \
			const char *property __attribute__((unused)), sd_bus_message *reply, \
			void *userdata, sd_bus_error *error __attribute__((unused)))

/* ---- bus-reply.c ------------------------------------------------------------------ */

/* The error's name; NULL for RESULT_OK. */
const char *bus_error_name(enum result_kind kind);

/* Answers the call: the sentence and, where GPUs refused, a row for each. r is the
 * negative errno that came with the result, sent alone where the result has no kind.
 * Returns what a method handler returns. */
int bus_refuse(sd_bus_message *call, int r, const struct result *result);

/* Sends the reply to the call once what was done so far outlives the daemon; until then the
 * host has it. Returns what a handler returns. */
int bus_send_settled(struct bus *bus, sd_bus_message *call, sd_bus_message *reply);

/* Answers a Reserve with the lease and its holder, which it takes */
int bus_reply_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder,
		      const char *state);

/* The same once the lease is granted, for who would rather be refused than wait.
 * Takes the holder. */
int bus_defer_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder);
void bus_answer_deferred(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_forget_deferred(struct bus *bus, const char *sender); /* who has gone */
void bus_drop_deferred(struct bus *bus);

/* ---- bus-sender.c ----------------------------------------------------------------- */

/*
 * Who sent the call. NULL: the handler is done and returns 1. Then the sender is being
 * looked up and `handler` will be called again, in the order of the sender's calls; or the
 * call was answered with an error.
 */
const struct caller *bus_sender(struct bus *bus, sd_bus_message *call,
				sd_bus_message_handler_t handler);

/* Forgets senders whose connection has closed, from now on. */
int bus_watch_senders(struct bus *bus);

/* Forgets all of them; calls that still wait are answered: shutdown. */
void bus_drop_senders(struct bus *bus);

/* ---- bus-polkit.c ----------------------------------------------------------------- */

/*
 * The sender as one who may administer; `what` follows "may". NULL: the handler is done and
 * returns 1; the sender is being looked up or polkit asked, and `handler` will be called
 * again, or the call was answered with an error.
 */
const struct caller *bus_administrator(struct bus *bus, sd_bus_message *call,
				       sd_bus_message_handler_t handler, const char *what);

/* The same for what a lease's owner may do too. Whom neither is true of is returned as he is:
 * the host refuses it in its own words. */
const struct caller *bus_owner(struct bus *bus, sd_bus_message *call,
			       sd_bus_message_handler_t handler, uint64_t lease);

/* Forgets all that polkit was asked; the calls are answered: shutdown. */
void bus_drop_questions(struct bus *bus);
