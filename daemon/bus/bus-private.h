/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of this folder share. Arrows go from bus-server.c down; no file calls it. */

#include <sys/queue.h>

#include "bus/bus.h"
#include "core/policy/caller.h"
#include "dbus/names.h"
#include "util/each.h"

struct advice;
struct gpu;

/* ---- users and their connections ---- */

/* Of answers: on their way to a client. */
struct bus_amount {
	uint64_t bytes;
	unsigned fds;
};

/* A call that waits, or the answer that refuses one. */
struct bus_call {
	sd_bus_message *m;
	bool refused;
	struct bus_peer *peer;
	size_t bytes;
	TAILQ_ENTRY(bus_call) link;
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

struct bus {
	sd_bus *sd;
	sd_event *event;
	const struct arbiter *arbiter;
	const struct bus_host *host;
	const struct bus_events *events;
	void *userdata; /* of host and events */
	void *peers;    /* bus-sender.c: tsearch(3) tree by unique name */

	/* Set by bus-calls.c for bus-sender.c: the caller of a connection is known, or never will be.
	 * Then its calls are refused, or dropped for a sentence of NULL. */
	void (*known)(struct bus_peer *peer);
	void (*unknown)(struct bus_peer *peer, enum result_kind kind, const char *sentence);

	/* bus-users.c, bus-calls.c */
	TAILQ_HEAD(, bus_user) users; /* in the order of their turns */
	size_t n_queued, n_refusals, queued_bytes, unknown_bytes;
	sd_bus_message *serving; /* put back to sd-bus */
	struct bus_peer *serving_peer;
	struct bus_user *running; /* the time since started_usec is charged to it */
	uint64_t started_usec;
	size_t n_kept;
	bool changed, full; /* calls may be served that could not; answers wait for the bus */
	sd_event_source *turn, *again, *watch;
	uint64_t unwritten;
	unsigned ticks;        /* of bus->watch since the bus has read something */
	bool unproved;         /* messages were sent after the question */
	sd_bus_slot *question; /* to the bus, which has not answered: whether it reads on */
	bool stalled;          /* the bus reads nothing */
	bool bloated;          /* the heap was large */
	uint64_t trimmed_usec;

	/* bus-unread.c */
	struct bus_amount unread;
	bool tells_nothing; /* the bus does not know what is unread */
	sd_event_source *poll;
	bool polling;
	uint64_t poll_usec;

	/* bus-polkit.c: questions that polkit has not answered yet. */
	LIST_HEAD(, question) questions;
	size_t n_questions;
	uint64_t last_question;

	/* bus-objects.c */
	struct bus_exported {
		struct bus *bus;
		const struct bus_kind *kind;
	} gpus, leases;

	/* bus-signals.c: of which another answer is not to be built before they are sent */
	void *held; /* tsearch(3) tree by object */
	TAILQ_HEAD(, held_signal) held_signals;

	/* bus-managed.c: the call of GetManagedObjects that is being answered */
	struct {
		sd_bus_message *call, *reply; /* NULL: none is */
		struct bus_peer *peer;
		struct arbiter *snapshot; /* when the call was served */
		size_t next;              /* object: GPUs, then leases */
		sd_event_source *turn;    /* the next part, or the next signals that were held */
	} managed;

	/* bus-clients.c */
	TAILQ_HEAD(, client_call) client_calls;
	size_t n_client_calls;

	LIST_HEAD(, deferred) deferred; /* bus-reply.c: Reserves whose borrowers shrink first */
};

/* ---- bus-arbiter.c, bus-gpu.c, bus-lease.c: each adds its interface to the bus ----------- */

int bus_export_arbiter(struct bus *bus);
extern const struct bus_kind bus_gpus, bus_leases; /* for bus_export() */

/* ---- bus-objects.c ---------------------------------------------------------------- */

/* The number in PREFIX/NUMBER; -ENOENT: the path has another form. */
int bus_path_number(const char *path, const char *prefix, uint64_t *ret);

struct bus_path {
	char text[sizeof(GPUARB_PATH_LEASE) + 24];
};

/* PREFIX/NUMBER */
struct bus_path bus_path(const char *prefix, uint64_t number);

/* The child paths PREFIX/number(bus, i) for each i < n, as sd_bus_node_enumerator_t returns them.
 * BUS_NO_NODE: i has no object. */
#define BUS_NO_NODE UINT64_MAX
int bus_list_nodes(const struct bus *bus, const char *prefix, size_t n,
		   uint64_t (*number)(const struct bus *bus, size_t i), char ***ret);

#define BUS_PROPERTIES_MAX 64U /* of an interface */

struct bus_property {
	char *name;
	const char *type;
	uint64_t flags;
	int (*append)(sd_bus_message *m, const struct arbiter *arbiter, const void *object);
};

/* Objects of one interface. */
struct bus_kind {
	const char *prefix, *interface;
	const struct bus_property *properties;
	size_t n_properties;
	const sd_bus_vtable *vtable;
	size_t (*count)(const struct arbiter *arbiter);
	uint64_t (*number)(const struct bus *bus, size_t i); /* as bus_list_nodes() takes it */
	const void *(*at)(const struct arbiter *arbiter,
			  const char *path); /* NULL: there is none */
};

int bus_export(struct bus *bus, const struct bus_kind *kind, struct bus_exported *exported);

/* Whether the path is below the prefix, and there is no such object. */
bool bus_lacks(const struct bus *bus, const struct bus_kind *kind, const char *path);

/* {oa{sa{sv}}}: the entry of the object in an answer to GetManagedObjects, with all properties of its interface, and
 * the interfaces of sd-bus. */
int bus_append_object(sd_bus_message *m, const struct bus_kind *kind, uint64_t number,
		      const struct arbiter *arbiter, const void *object);

#define BUS_STANDARD_INTERFACES                                             \
	"org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", \
		"org.freedesktop.DBus.Properties"

/* Sends the signals of these changes of an object as it is now: bits of enum bus_change. */
void bus_emit(struct bus *bus, const struct bus_kind *kind, uint64_t number, unsigned changes);

/* Defines the getter of a property: its body appends to `reply`. */
#define BUS_GETTER(name)                                                                  \
	static int name(sd_bus *, const char *path __attribute__((unused)), const char *, \
			const char *, sd_bus_message *reply, void *userdata, sd_bus_error *)

/* For the table PROPERTIES of an interface: ROW(name, type, flags, append). The getter returns what
 * append returns: VALUE(), or a function that appends to `reply`. */
#define BUS_PROPERTY_ROW(name, type, flags, append) \
	SD_BUS_PROPERTY(#name, type, get_##name, 0, flags),
#define BUS_PROPERTY(name, type, flags, append) { #name, type, flags, append_##name },
#define VALUE(type, value) sd_bus_message_append(reply, type, value)
#define CONST SD_BUS_VTABLE_PROPERTY_CONST
#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE

/* Defines append_NAME() and get_NAME() of a property of a `struct KIND`, which KIND_at() finds by its
 * path; `append` may use `reply`, `arbiter` and the object, by the name KIND. */
#define BUS_APPENDER(kind, name, append)                                                 \
	static int append_##name(sd_bus_message *reply,                                  \
				 const struct arbiter *arbiter __attribute__((unused)),  \
				 const void *object)                                     \
	{                                                                                \
		const struct kind *kind = object;                                        \
                                                                                         \
		return append;                                                           \
	}                                                                                \
	BUS_GETTER(get_##name)                                                           \
	{                                                                                \
		const struct arbiter *arbiter = ((const struct bus *)userdata)->arbiter; \
                                                                                         \
		return append_##name(reply, arbiter, kind##_at(arbiter, path));          \
	}

/* ---- bus-read.c ------------------------------------------------------------------- */

/* Calls read() for each entry of a{sv} in an answer of the bus, which reads or skips the variant. */
int bus_read_entries(sd_bus_message *m,
		     int (*read)(sd_bus_message *m, const char *key, void *userdata),
		     void *userdata);

/* Reads the arguments of Reserve and Plan: aa{sv} a{sv}. *ret_process_fd belongs to the message; -1:
 * none. ret_process_fd is NULL for Resize, which has no options yet. -EINVAL, with the result set. */
int bus_read_request(sd_bus_message *m, struct request *ret, int *ret_process_fd,
		     struct result *result);

/* ---- bus-write.c: dictionaries of the bus contract ---------------------------------- */

/* sd-bus keeps a failure: what is appended after it fails, too. So the end of a container tells whether all that
 * was appended before it is in the message. -ENOMEM: it is not. */

int bus_append_text(sd_bus_message *m, const char *text); /* text_clean() first */

void bus_open(sd_bus_message *m, const char *type); /* begins an array */
int bus_close(sd_bus_message *m);

/* An entry of a{sv} whose value has this type. '-' replaces '_' in the key. */
void bus_open_entry(sd_bus_message *m, const char *key, const char *type);
int bus_close_entry(sd_bus_message *m);

/* An entry with a value of this basic type; text_clean() first. */
void bus_append_value(sd_bus_message *m, const char *key, const char *type, ...);

/* The same for a value that is a bool, a double, a text, 64 or at most 32 bits: then the type follows from it. */
#define BUS_VALUE(m, key, value) bus_append_value(m, key, BUS_TYPE(value), value)
/* clang-format off */
#define BUS_TYPE(value)                                                                        \
	_Generic((value), bool: "b", double: "d", uint64_t: "t", char *: "s", const char *: "s", \
		 default: "u")
/* clang-format on */

/* An entry for each of these members of an object. */
#define BUS_MEMBERS(m, object, ...) ((void)(EACH(BUS_MEMBER, m, object, __VA_ARGS__)))
#define BUS_MEMBER(m, object, member) BUS_VALUE(m, #member, (object)->member)

/* A dictionary of them. */
#define BUS_ROW(m, object, ...) \
	((void)(bus_open(m, "{sv}"), BUS_MEMBERS(m, object, __VA_ARGS__), bus_close(m)))

/* An entry with numbers of this type ("u", "t"), as many bytes of them. */
void bus_append_numbers(sd_bus_message *m, const char *key, const char *type, const void *numbers,
			size_t size);

/* Whether the policy of the tenant asks launchers to cap the queues of the lease. */
bool bus_asks_for_cap(const struct arbiter *arbiter, const struct lease *lease);

/* aa{sv}: a dictionary for each partition of the lease; none for NULL. request: only the partitions that it asked for, if it
 * has fewer wants than the lease has partitions; NULL: all. */
int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease, const struct request *request,
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

/* aa{sv}: a dictionary for each process that disturbs a partition, INTRUDERS of each at most. */
int bus_append_intruders(sd_bus_message *m, const struct arbiter *arbiter,
			 const struct lease *lease);

/* aa{sv}: a dictionary for each kind of drift of each partition. */
int bus_append_drift(sd_bus_message *m, const struct arbiter *arbiter, const struct lease *lease);

/* aau and, with arrays, aaau: CUs by XCC and shader engine (and shader array). */
int bus_append_engine_cus(sd_bus_message *m, const struct geometry *geometry);
int bus_append_array_cus(sd_bus_message *m, const struct geometry *geometry);

/* ---- bus-reply.c ------------------------------------------------------------------ */

/* Sends a reply that was built with the result r. Returns what a method handler returns. */
int bus_send(sd_bus_message *reply, int r);

/* The error's name; NULL for RESULT_OK. */
const char *bus_error_name(enum result_kind kind);

/* Answers a call with the error of the result, its sentence and its refusals; with the errno r
 * where the result has no kind. Returns what a method handler returns. */
int bus_refuse(sd_bus_message *call, int r, const struct result *result);

#define BUS_STOPPING "gpuarbd is stopping" /* the sentence of RESULT_SHUTDOWN */

/* Answers a call with an error that has no refusals. Returns what a method handler returns. */
int bus_refuse_as(sd_bus_message *call, enum result_kind kind, const char *sentence);

/* Handles a call that has waited, and answers what the handler does not answer. */
void bus_handle_again(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Sends the reply when a restart of the daemon would keep the holders that were made so far:
 * host->settle(). If it cannot be sent, the lease ends; 0: the call made none. Returns what a method
 * handler returns. */
int bus_send_settled(struct bus *bus, sd_bus_message *call, sd_bus_message *reply, uint64_t lease);

/* Answers a Reserve with the lease and its holder. Takes the holder. */
int bus_reply_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease,
		      const struct request *request, int holder, const char *state);

/* Answers a Reserve without wait-usec whose lease is activating: later, by bus_answer_deferred(),
 * when the lease is granted or has ended. Takes the holder. */
int bus_defer_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder);
void bus_answer_deferred(struct bus *bus, const struct lease *lease, unsigned touched);
void bus_forget_deferred(struct bus *bus, const char *sender); /* its connection has closed */

/* ---- bus-limits.c ----------------------------------------------------------------- */

int bus_method_read_limits(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* ---- bus-usage.c ------------------------------------------------------------------ */

int bus_method_read_usage(sd_bus_message *m, void *userdata, sd_bus_error *error);
int bus_method_read_counters(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* ---- bus-slots.c ------------------------------------------------------------------ */

int bus_method_read_slots(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* ---- bus-signals.c ---------------------------------------------------------------- */

/* bus_emit() now; or after the answer to GetManagedObjects that is being built, together with other changes of the
 * object. */
void bus_signal(struct bus *bus, const struct bus_kind *kind, uint64_t number,
		enum bus_change change);

/* Sends some of the signals that were held. Returns whether there are more. */
bool bus_signals_release(struct bus *bus);

void bus_signals_drop(struct bus *bus);

/* ---- bus-managed.c ---------------------------------------------------------------- */

int bus_managed_start(struct bus *bus);

bool bus_is_managed_call(sd_bus_message *m);

/* Whether an answer is being built, or signals wait that were held for it. */
bool bus_managed_is_busy(const struct bus *bus);

/* For the filter: answers GetManagedObjects, now or in parts. 0: the call is another one. */
int bus_managed_arrived(struct bus *bus, sd_bus_message *m);

void bus_managed_stop(struct bus *bus); /* answers with Shutdown; drops signals that were held */

/* ---- bus-clients.c ---------------------------------------------------------------- */

/* Lets the call wait: the handler returns 1 and is called again after what the daemon observes next. False: too
 * many calls of the user wait, or there is no memory, or no room for the file descriptors of the call. */
bool bus_waits(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Whether an observation of the processes that draw is under way: then the handler returns 1 and is
 * called again when the observation has ended. */
bool bus_wait_for_clients(struct bus *bus, bool all, sd_bus_message *call,
			  sd_bus_message_handler_t handler);

/* Whether the names in the configuration are looked up: the same. A call that cannot wait is refused. */
bool bus_waits_for_names(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* The same for a request to grant or to activate a lease: where policy refuses GPUs on which a process
 * draws, it is decided after that was observed. */
bool bus_decides_later(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler);

/* Whether a request for a lease of this class waits for the first read of hardware queue descriptors: until
 * then the queues over CUs are unknown. The handler returns 1 and may be called again; a call that cannot
 * wait is refused. */
bool bus_waits_for_masks(struct bus *bus, enum lease_class lease_class, sd_bus_message *call,
			 sd_bus_message_handler_t handler);

/* The class that is asked for, or that of the tenant. */
enum lease_class bus_asked_class(const struct bus *bus, const struct caller *caller,
				 const struct request *request);

/* Forgets the calls of a connection that has closed; answers all of them with Shutdown. */
void bus_forget_client_calls(struct bus *bus, const char *sender);
void bus_drop_client_calls(struct bus *bus);

/* ---- bus-users.c ------------------------------------------------------------------ */

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

void bus_drop_users(struct bus *bus);

/* ---- bus-unread.c ----------------------------------------------------------------- */

int bus_unread_start(struct bus *bus);

/* Counts the answer to a call of this size, with what is in the arbiter, just before it is sent. */
void bus_unread_answer(struct bus_peer *peer, const struct arbiter *arbiter, sd_bus_message *m,
		       size_t size);

/* Counts a refusal, if there is still room for one. */
bool bus_unread_has_room(struct bus *bus, struct bus_peer *peer);

/* Whether calls of the user wait until its connections have read their answers. */
bool bus_unread_holds(struct bus *bus, struct bus_user *user);

void bus_unread_forget(struct bus_peer *peer); /* its connection has closed */

/* ---- bus-calls.c ------------------------------------------------------------------ */

int bus_calls_start(struct bus *bus);
void bus_calls_stop(struct bus *bus);

/* Whether more than half of the file descriptors that gpuarbd may have are open: then no further call waits. */
bool bus_fds_are_scarce(const struct bus *bus);

/* For the filter: 0: the call is served now; 1: it waits, or was answered. */
int bus_calls_arrived(struct bus *bus, sd_bus_message *m);

/* Serves the next call that waits, if there is one. */
void bus_calls_serve(struct bus *bus);

/* ---- bus-sender.c ----------------------------------------------------------------- */

/* The connection of a call, whose caller may be unknown yet. NULL: the call was answered. */
struct bus_peer *bus_peer_of(struct bus *bus, sd_bus_message *call);

/* A call of the connection was taken from a queue. */
void bus_peer_unqueue(struct bus_peer *peer);

/* The caller of a method, which is known since the call passed the filter. NULL: the handler returns
 * 1, because the connection has closed since. */
const struct caller *bus_sender(struct bus *bus, sd_bus_message *call);

/* Its connection has closed: the caller is forgotten, and its calls are dropped. */
void bus_forget_sender(struct bus *bus, const char *name);

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
