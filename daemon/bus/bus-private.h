/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this folder share. Arrows go from bus-server.c down; no file calls it. */

#include <sys/queue.h>

#include "bus/bus.h"
#include "core/decide/advice.h"

struct bus {
	sd_bus *sd;
	sd_event *event;
	const struct arbiter *arbiter;
	const struct bus_host *host;
	const struct bus_events *events;
	void *userdata; /* of host and events */
	void *peers;    /* bus-sender.c: tsearch(3) tree by unique name */

	/* bus-polkit.c: questions that polkit has not answered yet. */
	LIST_HEAD(, question) questions;
	size_t n_questions;
	uint64_t last_question;

	/* bus-clients.c */
	TAILQ_HEAD(, client_call) client_calls;
	size_t n_client_calls;

	LIST_HEAD(, deferred) deferred; /* bus-reply.c: Reserves whose borrowers shrink first */

	/* bus-slots.c: calls of ReadSlots that wait for the reading. */
	STAILQ_HEAD(, slots_call) slots_calls;
	size_t n_slots_calls;
};

/* ---- bus-arbiter.c, bus-gpu.c, bus-lease.c: each adds its interface to the bus ----------- */

int bus_export_arbiter(struct bus *bus);
int bus_export_gpus(struct bus *bus);
int bus_export_leases(struct bus *bus);

/* ---- bus-objects.c ---------------------------------------------------------------- */

/* The number in PREFIX/NUMBER; -ENOENT: the path has another form. */
int bus_path_number(const char *path, const char *prefix, uint64_t *ret);

/* The child paths PREFIX/number(bus, i) for each i < n, as sd_bus_node_enumerator_t returns them.
 * BUS_NO_NODE: i has no object. */
#define BUS_NO_NODE UINT64_MAX
int bus_list_nodes(const struct bus *bus, const char *prefix, size_t n,
		   uint64_t (*number)(const struct bus *bus, size_t i), char ***ret);

/* Signals that an object with this interface is gone. */
void bus_emit_removed(struct bus *bus, const char *path, const char *interface);

int bus_append_text(sd_bus_message *m, const char *text); /* text_clean() first */

/* Defines the getter of a property: its body appends to `reply`. */
#define BUS_GETTER(name)                                                                  \
	static int name(sd_bus *, const char *path __attribute__((unused)), const char *, \
			const char *, sd_bus_message *reply, void *userdata, sd_bus_error *)

/* For the table PROPERTIES of an interface: ROW(name, type, flags, append). The getter returns what
 * append returns: VALUE(), or a function that appends to `reply`. */
#define BUS_PROPERTY_ROW(name, type, flags, append) \
	SD_BUS_PROPERTY(#name, type, get_##name, 0, flags),
#define VALUE(type, value) sd_bus_message_append(reply, type, value)
#define CONST SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

/* ---- bus-read.c ------------------------------------------------------------------- */

/* Reads the arguments of Reserve and Plan: aa{sv} a{sv}. *ret_process_fd belongs to the message; -1:
 * none. ret_process_fd is NULL for Resize, which has no options yet. -EINVAL, with the result set. */
int bus_read_request(sd_bus_message *m, struct request *ret, int *ret_process_fd,
		     struct result *result);

/* ---- bus-write.c: dictionaries of the bus contract ---------------------------------- */

/* aa{sv}: a dictionary for each partition of the lease; none for NULL. */
int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease, const struct result *planned,
			  const struct effects *effects);

/* aa{sv}: a dictionary for each GPU that refused. */
int bus_append_refusals(sd_bus_message *m, const struct refusal *refusals, size_t n,
			const struct advice *advice, const struct effects *effects);

/* aa{sv}: a dictionary for each process without a lease that uses the GPU. */
int bus_append_unmanaged(sd_bus_message *m, const struct gpu *gpu);

/* aa{sv}: a dictionary for each process that uses the GPU through DRM. */
int bus_append_clients(sd_bus_message *m, const struct gpu *gpu);

/* aa{sv}: a dictionary for each process of which queues on the GPU were observed. */
int bus_append_covers(sd_bus_message *m, const struct arbiter *arbiter, const struct gpu *gpu);

/* aa{sv}: a dictionary for each kind of drift of each partition. */
int bus_append_drift(sd_bus_message *m, const struct arbiter *arbiter, const struct lease *lease);

/* aau and, with arrays, aaau: CUs by XCC and shader engine (and shader array). */
int bus_append_engine_cus(sd_bus_message *m, const struct geometry *geometry);
int bus_append_array_cus(sd_bus_message *m, const struct geometry *geometry);

/* ---- bus-reply.c ------------------------------------------------------------------ */

/* The error's name; NULL for RESULT_OK. */
const char *bus_error_name(enum result_kind kind);

/* Answers a call with the error of the result, its sentence and its refusals; with the errno r
 * where the result has no kind. Returns what a method handler returns. */
int bus_refuse(sd_bus_message *call, int r, const struct result *result);

#define BUS_STOPPING "gpuarbd is stopping" /* the sentence of RESULT_SHUTDOWN */

/* Answers a call with an error that has no refusals. Returns what a method handler returns. */
int bus_refuse_as(sd_bus_message *call, enum result_kind kind, const char *sentence);

/* Sends the reply when a restart of the daemon would keep the holders that were made so far:
 * host->settle(). Returns what a method handler returns. */
int bus_send_settled(struct bus *bus, sd_bus_message *call, sd_bus_message *reply);

/* Answers a Reserve with the lease and its holder. Takes the holder. */
int bus_reply_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder,
		      const char *state);

/* Answers a Reserve without wait-usec whose lease is activating: later, by bus_answer_deferred(),
 * when the lease is granted or has ended. Takes the holder. */
int bus_defer_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder);
void bus_answer_deferred(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_forget_deferred(struct bus *bus, const char *sender); /* its connection has closed */
void bus_drop_deferred(struct bus *bus);                       /* the daemon is ending */

/* ---- bus-slots.c ------------------------------------------------------------------ */

int bus_method_read_slots(sd_bus_message *m, void *userdata, sd_bus_error *error);
void bus_drop_slots_calls(struct bus *bus); /* the daemon is ending */

/* ---- bus-clients.c ---------------------------------------------------------------- */

/* Whether an observation of the processes that draw is under way: then the handler returns 1 and is
 * called again when the observation has ended. */
bool bus_wait_for_clients(struct bus *bus, bool all, sd_bus_message *call,
			  sd_bus_message_handler_t handler);

/* The same for a request to grant or to activate a lease: where policy refuses GPUs on which a process
 * draws, it is decided after that was observed. */
bool bus_decides_later(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Forgets the calls of a connection that has closed; answers all of them with Shutdown. */
void bus_forget_client_calls(struct bus *bus, const char *sender);
void bus_drop_client_calls(struct bus *bus);

/* ---- bus-sender.c ----------------------------------------------------------------- */

/*
 * The caller of a method. NULL: the handler returns 1. Then the caller is being looked up, and
 * `handler` is called again, in the order of the calls of this connection; or the call was
 * answered with an error.
 */
const struct caller *bus_sender(struct bus *bus, sd_bus_message *call,
				sd_bus_message_handler_t handler);

/* From now on forgets a caller when its connection closes. */
int bus_watch_senders(struct bus *bus);

/* Answers the calls that wait for a look-up with Shutdown, and forgets all callers. */
void bus_drop_senders(struct bus *bus);

/* ---- bus-polkit.c ----------------------------------------------------------------- */

/*
 * The caller of a method that only administrators may call. what: the method in words, such as
 * "drain a GPU". NULL: the handler returns 1. Then the caller is being looked up, or polkit was
 * asked, and `handler` is called again; or the call was answered with an error.
 */
const struct caller *bus_administrator(struct bus *bus, sd_bus_message *call,
				       sd_bus_message_handler_t handler, const char *what);

/* The same for a method that the owner of the lease may call as well. A caller that is neither is
 * returned with administrator = false: the daemon refuses the call. */
const struct caller *bus_owner(struct bus *bus, sd_bus_message *call,
			       sd_bus_message_handler_t handler, uint64_t lease);

/* Cancels the questions about a connection that has closed. */
void bus_forget_questions(struct bus *bus, const char *sender);

/* Answers the calls that wait for polkit with Shutdown. */
void bus_drop_questions(struct bus *bus);
