/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which call is served next. A call of a user whose budgets (bus-users.c) are not used up is served
 * when it arrives. Other calls wait in the queue of their user, and the users with such calls take
 * turns. Calls also wait while the user's connections do not read their answers (bus-unread.c).
 * Administrators are served at once.
 *
 * A refusal waits for its turn as a call does: a client that is refused at once calls again at once, and
 * keeps dbus-daemon busy, which is all users' bus.
 */

#include <errno.h>
#include <linux/sockios.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "bus/bus-calls.h"
#include "bus/bus-clients.h"
#include "bus/bus-managed.h"
#include "bus/bus-read.h"
#include "bus/bus-reply.h"
#include "bus/bus-sender.h"
#include "bus/bus-unread.h"
#include "core/change/arbiter.h"
#include "core/policy/request.h"
#include "dbus/names.h"

#define CALL_OVERHEAD 1024U    /* of sd-bus for each message */
#define CALL_MAX (64U * 1024U) /* a larger one is refused: errors of sd-bus repeat its texts */
#define UNKNOWN_CALLS 1024U    /* of one connection, whose caller is being looked up */
#define UNKNOWN_MAX (8U << 20) /* bytes of such calls */
#define TOTAL_OF_USERS 4U      /* what all users may have waiting, in maxima of one */
/* Refusals of one user that wait, in maxima of its calls: by default as many as dbus-daemon lets a user
 * have calls under way, 128 of each of 256 connections. */
#define REFUSALS_OF_USER 32U
#define BYTES_OF_CALL 1024U   /* what waits is bounded in calls and in their average size */
#define WRITE_QUEUE_MAX 1024U /* answers that wait for the bus: none is made beyond */
/* What has arrived is read before calls that wait are served, because it may be of a user whose calls
 * need not wait; but one of those is served after every few calls that were read. */
#define TURN_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 1)
#define READS_OF_TURN 16U

/* After so much has waited or was answered, the heap is given back, but not all the time. */
#define TRIM_CALLS 1000U
#define TRIM_USEC UINT64_C(10000000)

/* A bus that is only slow has read something by then. In ticks, because gpuarbd may stand still itself. */
#define STALL_TICKS 10U
#define TICK_USEC UINT64_C(1000000)

/* A call that waits, or the answer that refuses one. */
struct bus_call {
	sd_bus_message *m;
	bool refused;
	struct bus_peer *peer;
	size_t bytes;
	TAILQ_ENTRY(bus_call) link;
};

struct bus_calls {
	size_t n_queued, n_refusals, queued_bytes, unknown_bytes;
	sd_bus_message *serving; /* put back to sd-bus */
	struct bus_peer *serving_peer;
	struct bus_user *running; /* the time since started_usec is charged to it */
	uint64_t started_usec;
	size_t n_kept;
	bool full; /* answers wait for the bus */
	sd_event_source *turn, *again, *watch;
	uint64_t unwritten;
	unsigned ticks;        /* of watch since the bus has read something */
	sd_bus_slot *question; /* to the bus, which has not answered: whether it reads on */
	bool stalled;          /* the bus reads nothing */
	uint64_t trimmed_usec;
};

/* ---- the size of a call ------------------------------------------------------------------- */

static int walk(sd_bus_message *m, size_t *left);

static int take(size_t *left, size_t size)
{
	if (size > *left)
		return -E2BIG;
	*left -= size;
	return 0;
}

static int walk_container(sd_bus_message *m, char type, const char *contents, size_t *left)
{
	int r = take(left, sizeof(uint64_t));

	if (r >= 0)
		r = sd_bus_message_enter_container(m, type, contents);
	if (r >= 0)
		r = walk(m, left);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int walk_item(sd_bus_message *m, char type, size_t *left)
{
	size_t size = sizeof(uint64_t);
	union {
		const char *text;
		uint64_t number;
	} item = { 0 };
	int r;

	r = sd_bus_message_read_basic(m, type, &item);
	if (r >= 0 && strchr("sog", type))
		size += strlen(item.text);
	return r < 0 ? r : take(left, size);
}

static int walk(sd_bus_message *m, size_t *left)
{
	const char *contents;
	char type;
	int r = 1;

	while (r >= 0 && (r = sd_bus_message_peek_type(m, &type, &contents)) > 0)
		r = strchr("avre", type) ? walk_container(m, type, contents, left)
					 : walk_item(m, type, left);
	return r;
}

static size_t length(const char *text)
{
	return text ? strlen(text) : 0;
}

/* sd-bus does not tell the size of a message. 0: it is larger than CALL_MAX. One that cannot be read counts as
 * much: its handler refuses it. */
static size_t size_of(sd_bus_message *m)
{
	size_t left = CALL_MAX;
	int r = take(&left, 1 + length(sd_bus_message_get_path(m)) +
				    length(sd_bus_message_get_interface(m)) +
				    length(sd_bus_message_get_member(m)) +
				    length(sd_bus_message_get_signature(m, true)));

	if (r >= 0)
		r = walk(m, &left);
	if (r == -E2BIG)
		return 0;
	return sd_bus_message_rewind(m, true) < 0 || r < 0 ? CALL_MAX : CALL_MAX - left;
}

/* ---- calls that wait ---------------------------------------------------------------------- */

static void call_free(struct bus_call *call)
{
	sd_bus_message_unref(call->m);
	free(call);
}

static void count(struct bus *bus, struct bus_peer *peer, const struct bus_call *call, int n)
{
	size_t bytes = n < 0 ? -call->bytes : call->bytes, refusals = call->refused ? (size_t)n : 0;

	peer->n_queued += (size_t)n;
	if (!peer->user) {
		bus->calls->unknown_bytes += bytes;
		return;
	}
	peer->user->n_queued += (size_t)n;
	peer->user->n_refusals += refusals;
	peer->user->queued_bytes += bytes;
	bus->calls->n_queued += (size_t)n;
	bus->calls->n_refusals += refusals;
	bus->calls->queued_bytes += bytes;
}

static int enqueue(struct bus *bus, struct bus_peer *peer, sd_bus_message *m, size_t bytes,
		   bool refused)
{
	struct bus_call *call = calloc(1, sizeof(*call));

	if (!call)
		return -ENOMEM;
	call->m = sd_bus_message_ref(m);
	call->peer = peer;
	call->bytes = refused ? 0 : CALL_OVERHEAD + bytes;
	call->refused = refused;
	TAILQ_INSERT_TAIL(peer->user ? &peer->user->queue : &peer->calls, call, link);
	count(bus, peer, call, 1);
	bus->changed = true;
	return 0;
}

/* An answer that the user's connections would not read either is not sent. */
static int send_refusal(struct bus *bus, struct bus_peer *peer, sd_bus_message *answer)
{
	if (peer->user && !bus_unread_has_room(bus, peer))
		return 0;
	return sd_bus_send(bus->sd, answer, NULL);
}

static int refuse(struct bus *bus, struct bus_peer *peer, sd_bus_message *m, const char *why)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *answer = NULL;
	uint64_t most = REFUSALS_OF_USER * bus->arbiter->settings->max_pending_per_user;
	struct bus_user *user = peer->user;
	int r;

	if (user)
		user->refused++;
	if (sd_bus_message_get_expect_reply(m) <= 0)
		return 1;
	r = sd_bus_message_new_method_errorf(m, &answer, SD_BUS_ERROR_LIMITS_EXCEEDED, "%s", why);
	if (r < 0)
		return r;
	if (user && bus_user_has_share(user->n_refusals, bus->calls->n_refusals, most,
				       TOTAL_OF_USERS * most))
		r = enqueue(bus, peer, answer, 0, true);
	else
		r = send_refusal(bus, peer, answer);
	return r < 0 ? r : 1;
}

static const char *why_not(const struct bus *bus, const struct bus_peer *peer)
{
	const struct bus_user *user = peer->user;
	uint64_t most = bus->arbiter->settings->max_pending_per_user, total = TOTAL_OF_USERS * most;

	if (user &&
	    (!bus_user_has_share(user->n_queued - user->n_refusals,
				 bus->calls->n_queued - bus->calls->n_refusals, most, total) ||
	     !bus_user_has_share(user->queued_bytes, bus->calls->queued_bytes,
				 most * BYTES_OF_CALL * 2, total * BYTES_OF_CALL * 2)))
		return "too many calls of this user are waiting (max-pending-per-user): wait for their "
		       "answers first";
	/* The first call of a connection waits in any case: the others may be of another user. */
	if (!user && peer->n_queued > 0 &&
	    (peer->n_queued >= UNKNOWN_CALLS || bus->calls->unknown_bytes > UNKNOWN_MAX))
		return "too many calls of new connections are waiting: try again later";
	if (bus_fds_are_scarce(bus))
		return "more than half of the file descriptors of gpuarbd are open: try again later";
	return NULL;
}

/* Lets the call wait: for its turn, or until its caller is known. Returns what a filter returns. */
static int keep(struct bus *bus, struct bus_peer *peer, sd_bus_message *m, size_t size)
{
	const char *why = why_not(bus, peer);
	int r;

	if (why)
		return refuse(bus, peer, m, why);
	r = enqueue(bus, peer, m, size, false);
	if (r < 0)
		return r;
	if (peer->user)
		peer->user->delayed++;
	if (++bus->calls->n_kept % READS_OF_TURN == 0 || (peer->user && peer->user->exempt))
		bus_calls_serve(bus);
	return 1;
}

static void known(struct bus_peer *peer)
{
	struct bus_user *user = peer->user;
	struct bus_call *call;

	TAILQ_FOREACH(call, &peer->calls, link)
	{
		peer->bus->calls->unknown_bytes -= call->bytes;
		user->n_queued++;
		user->queued_bytes += call->bytes;
		peer->bus->calls->n_queued++;
		peer->bus->calls->queued_bytes += call->bytes;
	}
	TAILQ_CONCAT(&user->queue, &peer->calls, link);
	bus_calls_serve(peer->bus);
}

static void unknown(struct bus_peer *peer, enum result_kind kind, const char *sentence)
{
	for (struct bus_call *call; (call = TAILQ_FIRST(&peer->calls));) {
		TAILQ_REMOVE(&peer->calls, call, link);
		count(peer->bus, peer, call, -1);
		if (sentence)
			bus_refuse_as(call->m, kind, sentence);
		call_free(call);
	}
}

/* ---- service ------------------------------------------------------------------------------ */

static bool reads(const char *interface)
{
	return strncmp(interface, "org.freedesktop.DBus.", strlen("org.freedesktop.DBus.")) == 0;
}

/* Whether the time of the event loop is charged to the caller, from now to the next turn. */
static void begin(struct bus *bus, struct bus_peer *peer, sd_bus_message *m, size_t size)
{
	const char *path = sd_bus_message_get_path(m), *interface = sd_bus_message_get_interface(m);

	bus->calls->running = peer->user;
	bus->changed = true;
	bus->calls->started_usec = bus_cpu_usec();
	if (!bus_is_managed_call(m)) /* its answer is not sent yet */
		bus_unread_answer(peer, bus->arbiter, m, size);
	if (path && strncmp(path, GPUARB_PATH, strlen(GPUARB_PATH)) == 0)
		bus->host->refresh(bus->userdata, !interface || !reads(interface));
}

static bool bus_is_full(const struct bus *bus)
{
	uint64_t n;

	return sd_bus_get_n_queued_write(bus->sd, &n) >= 0 && n > WRITE_QUEUE_MAX;
}

/* The class that a Reserve asks for. One that cannot be read is refused whatever waits. */
static enum lease_class class_of(const struct bus *bus, const struct bus_peer *peer,
				 sd_bus_message *m)
{
	_cleanup_(result_done) struct result result = { 0 };
	struct request request;
	int unused, r = bus_read_request(m, &request, &unused, &result);

	if (sd_bus_message_rewind(m, true) < 0 || r < 0)
		return CLASS_REALTIME;
	return bus_asked_class(bus, &peer->caller, &request);
}

/* What it asks for may be free for a waiting lease that is examined next; or such an answer is being
 * built. */
static bool waits_for_others(const struct bus *bus, const struct bus_peer *peer, sd_bus_message *m)
{
	if (bus_managed_is_busy(bus) && bus_is_managed_call(m))
		return true;
	if (!arbiter_in_round(bus->arbiter))
		return false;
	if (sd_bus_message_is_method_call(m, GPUARB_INTERFACE, "Reserve") > 0)
		return wait_precedes(bus->arbiter, class_of(bus, peer, m), peer->caller.uid);
	return sd_bus_message_is_method_call(m, GPUARB_INTERFACE_LEASE, "Resize") > 0;
}

int bus_calls_arrived(struct bus *bus, sd_bus_message *m)
{
	size_t size = size_of(m);
	struct bus_peer *peer;
	uint64_t now;

	if (m == bus->calls->serving) { /* bus_calls_serve() put it back */
		bus->calls->serving = NULL;
		if (waits_for_others(bus, bus->calls->serving_peer,
				     m)) /* which has begun meanwhile */
			return keep(bus, bus->calls->serving_peer, m, size);
		begin(bus, bus->calls->serving_peer, m, size);
		return 0;
	}
	peer = bus_peer_of(bus, m);
	if (!peer)
		return 1;
	if (size == 0)
		return refuse(bus, peer, m,
			      "a call of more than 64 KiB is refused: no method takes so much");
	if (!peer->user)
		return keep(bus, peer, m, size);
	now = bus_now_usec();
	if (peer->n_queued > 0 || waits_for_others(bus, peer, m)) /* calls keep their order */
		return keep(bus, peer, m, size);
	if (!peer->user->exempt &&
	    (!TAILQ_EMPTY(&peer->user->queue) || bus_is_full(bus) ||
	     bus_unread_holds(bus, peer->user) || bus_user_ready_usec(bus, peer->user, now) > now))
		return keep(bus, peer, m, size);
	begin(bus, peer, m, size);
	return 0;
}

/* The next user in turn with a call that may be served; else NULL, and when the first may be. */
static struct bus_user *next_user(struct bus *bus, uint64_t *ret_usec)
{
	uint64_t now = bus_now_usec();
	struct bus_user *user;

	*ret_usec = UINT64_MAX;
	TAILQ_FOREACH(user, &bus->users, link)
	{
		const struct bus_call *first = TAILQ_FIRST(&user->queue);
		uint64_t ready = first ? bus_user_ready_usec(bus, user, now) : UINT64_MAX;

		if (first &&
		    (bus_unread_holds(bus, user) || waits_for_others(bus, first->peer, first->m)))
			continue;
		if (ready <= now)
			return user;
		if (ready < *ret_usec)
			*ret_usec = ready;
	}
	return NULL;
}

/* Nobody waits for what it reads. */
static bool is_pointless(const struct bus_call *call)
{
	const char *interface = sd_bus_message_get_interface(call->m);

	return call->peer->closed && interface && reads(interface);
}

/* Whether the call needs no service: its answer is sent, or nobody waits for one. */
static bool is_done(struct bus *bus, struct bus_user *user, const struct bus_call *call)
{
	if (!call->refused || call->peer->closed)
		return call->refused || is_pointless(call);
	(void)send_refusal(bus, call->peer, call->m);
	bus_user_charge(user, 1, 0);
	return true;
}

/* Puts the next call back in front of sd-bus, which passes it to the filter again. */
void bus_calls_serve(struct bus *bus)
{
	struct bus_user *user;
	struct bus_call *call;
	uint64_t next;

	bus->calls->full = bus_is_full(bus);
	if (bus->calls->serving_peer || bus->calls->full)
		return;
	user = next_user(bus, &next);
	if (!user) {
		if (next != UINT64_MAX)
			sd_event_source_set_time(bus->calls->turn, next);
		sd_event_source_set_enabled(bus->calls->turn,
					    next == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
		return;
	}
	TAILQ_REMOVE(&bus->users, user, link);
	TAILQ_INSERT_TAIL(&bus->users, user, link);
	call = TAILQ_FIRST(&user->queue);
	TAILQ_REMOVE(&user->queue, call, link);
	count(bus, call->peer, call, -1);
	call->peer->n_queued++; /* until it is served */
	if (is_done(bus, user, call)) {
		bus_peer_unqueue(call->peer);
		call_free(call);
		bus->changed = true;
		return;
	}
	bus->calls->serving_peer = call->peer;
	if (sd_bus_enqueue_for_read(bus->sd, call->m) >= 0)
		bus->calls->serving = call->m;
	call_free(call);
}

/* ---- after each turn of the event loop ---------------------------------------------------- */

/* What the bus has not read: messages that wait, below them the bytes in the socket, and 1 for the question. */
static uint64_t unwritten(const struct bus *bus)
{
	uint64_t n = 0;
	int bytes = 0;

	sd_bus_get_n_queued_write(bus->sd, &n);
	if (ioctl(sd_bus_get_fd(bus->sd), SIOCOUTQ, &bytes) < 0)
		bytes = 0;
	return n << 32 | ((uint32_t)bytes + (bus->calls->question != NULL));
}

/* dbus-daemon reads nothing from a connection while others have not read too much of it. It keeps what it has read by
 * then, perhaps an answer of gpuarbd, while the socket is empty. So gpuarbd asks the bus for its id after it has sent
 * messages, and the bus stalls if it does not answer. */
static void watch_writing(struct bus *bus)
{
	uint64_t left = unwritten(bus), tick;

	if (left == 0 || left < bus->calls->unwritten || bus->calls->unwritten == 0)
		bus->calls->ticks = 0;
	bus->calls->unwritten = left;
	bus->unproved |= bus->changed;
	bus->changed |= bus->calls->full && !bus_is_full(bus);
	if ((left == 0 && !bus->unproved) || bus->calls->stalled)
		return;
	if (bus->calls->ticks < STALL_TICKS) {
		if (sd_event_source_get_time(bus->calls->watch, &tick) >= 0 && tick == UINT64_MAX)
			sd_event_source_set_time(bus->calls->watch, bus_now_usec() + TICK_USEC);
		return;
	}
	bus->calls->stalled = true;
	bus->events->stalled(bus->userdata);
}

static int on_proof(sd_bus_message *, void *userdata, sd_bus_error *)
{
	struct bus *bus = userdata;

	bus->calls->question = sd_bus_slot_unref(bus->calls->question);
	return 1;
}

/* The time of on_prepare() has come again. */
static int on_watch(sd_event_source *source, uint64_t, void *userdata)
{
	struct bus *bus = userdata;

	bus->calls->ticks++;
	if (bus->unproved && !bus->calls->question &&
	    sd_bus_call_method_async(bus->sd, &bus->calls->question, "org.freedesktop.DBus",
				     "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId",
				     on_proof, bus, "") >= 0)
		bus->unproved = false;
	return sd_event_source_set_time(source, UINT64_MAX);
}

/* The heap of a flood, or of a large answer that was sent, is not needed again soon. */
static void give_back(struct bus *bus)
{
	bus->bloated |= bus->calls->n_queued > TRIM_CALLS;
	if (!bus->bloated || bus->calls->n_queued > 0 || bus->calls->unwritten > 0 ||
	    bus_now_usec() - bus->calls->trimmed_usec < TRIM_USEC)
		return;
	malloc_trim(0);
	bus->bloated = false;
	bus->calls->trimmed_usec = bus_now_usec();
}

/* Before each wait of the event loop: the call that was served is complete. */
static int on_prepare(sd_event_source *, void *userdata)
{
	struct bus *bus = userdata;

	if (bus->calls->running)
		bus_user_charge(bus->calls->running, 1, bus_cpu_usec() - bus->calls->started_usec);
	bus->calls->running = NULL;
	if (bus->calls->serving_peer && !bus->calls->serving) {
		bus_peer_unqueue(bus->calls->serving_peer);
		bus->calls->serving_peer = NULL;
	}
	watch_writing(bus);
	give_back(bus);
	if (bus->changed && bus->calls->n_queued > 0 && !bus->calls->serving_peer)
		sd_event_source_set_enabled(bus->calls->again, SD_EVENT_ONESHOT);
	bus->changed = false;
	return 0;
}

static int on_again(sd_event_source *, void *userdata)
{
	bus_calls_serve(userdata);
	return 0;
}

static int on_turn(sd_event_source *, uint64_t, void *userdata)
{
	bus_calls_serve(userdata);
	return 0;
}

static int add_timer(struct bus *bus, sd_event_time_handler_t handler, sd_event_source **ret)
{
	return sd_event_add_time(bus->event, ret, CLOCK_MONOTONIC, UINT64_MAX, 1, handler, bus);
}

int bus_calls_start(struct bus *bus)
{
	int r;

	bus->calls = calloc(1, sizeof(*bus->calls));
	if (!bus->calls)
		return -ENOMEM;
	bus->known = known;
	bus->unknown = unknown;
	r = add_timer(bus, on_turn, &bus->calls->turn);
	if (r >= 0)
		r = sd_event_source_set_enabled(bus->calls->turn, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_priority(bus->calls->turn, TURN_PRIORITY);
	if (r >= 0)
		r = add_timer(bus, on_watch, &bus->calls->watch);
	if (r >= 0)
		r = sd_event_source_set_enabled(bus->calls->watch, SD_EVENT_ON);
	if (r >= 0)
		r = sd_event_source_set_prepare(bus->calls->watch, on_prepare);
	if (r >= 0)
		r = sd_event_add_defer(bus->event, &bus->calls->again, on_again, bus);
	if (r >= 0)
		r = sd_event_source_set_priority(bus->calls->again, TURN_PRIORITY);
	return r < 0 ? r : sd_event_source_set_enabled(bus->calls->again, SD_EVENT_OFF);
}

/* Also answers the calls of callers that are known. */
void bus_calls_stop(struct bus *bus)
{
	struct bus_user *user;

	TAILQ_FOREACH(user, &bus->users, link)
	{
		for (struct bus_call *call; (call = TAILQ_FIRST(&user->queue));) {
			TAILQ_REMOVE(&user->queue, call, link);
			count(bus, call->peer, call, -1);
			if (call->refused)
				(void)sd_bus_send(bus->sd, call->m, NULL);
			else
				bus_refuse_as(call->m, RESULT_SHUTDOWN, BUS_STOPPING);
			call_free(call);
		}
	}
}

bool bus_calls_are_stalled(const struct bus *bus)
{
	return bus->calls && bus->calls->stalled;
}

void bus_calls_free(struct bus *bus)
{
	if (!bus->calls)
		return;
	sd_bus_slot_unref(bus->calls->question);
	sd_event_source_disable_unref(bus->calls->turn);
	sd_event_source_disable_unref(bus->calls->watch);
	sd_event_source_disable_unref(bus->calls->again);
	free(bus->calls);
}
