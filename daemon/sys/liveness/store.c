/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/number.h"

#define PROBE "probe" /* the name of a descriptor that is kept for a moment */

/* Newer managers close a descriptor that they do not keep in a thread, perhaps after the
 * barrier. */
#define LATE_CLOSE_MSEC 5

#define SO_LEASES_END "when gpuarbd stops or restarts, leases end"

enum kind { KEEP, FORGET, BARRIER };

/* A message that waits for room in the manager's queue. */
struct message {
	STAILQ_ENTRY(message) next;
	enum kind kind;
	int fd; /* a copy; -1: none */
	char text[];
};

/* Waiters are in the order of the calls: first those that are DONE, last those in NEXT. */
enum stage {
	NEXT,     /* waits for the barrier after the present one */
	SETTLING, /* waits for the present barrier */
	DONE,     /* to be called back */
};

struct waiter {
	STAILQ_ENTRY(waiter) next;
	enum stage stage;
	int r;
	store_settled_t settled;
	void *userdata;
};

struct store {
	sd_event *event;
	unsigned max;
	char *address;
	int socket; /* -1: no store */

	int next_fd, end_fd; /* from an earlier process */
	char *names, *next_name;

	STAILQ_HEAD(, message) queue;
	unsigned n_kept_back; /* messages of kind KEEP in the queue */
	sd_event_source *room;

	STAILQ_HEAD(, waiter) waiters;
	int barrier; /* hangs up when the manager has read all messages before it; -1: none */
	sd_event_source *passed;
	sd_event_source *deliver; /* runs callbacks that became due outside of the loop */
	int failed;               /* the first error since the last barrier was sent */
	int barrier_failed;       /* the first error before that barrier */
};

/* ---- the socket ---------------------------------------------------------------------- */

/* address: as in NOTIFY_SOCKET, a path, or "@" and an abstract name. An error on a socket that was
 * connected means that the manager has ended. */
static int connect_to(int socket, const char *address)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t length = strlen(address);

	if (address[0] != '/' && address[0] != '@')
		return -EAFNOSUPPORT;
	if (length >= sizeof(un.sun_path))
		return -ENAMETOOLONG;
	memcpy(un.sun_path, address, length);
	if (address[0] == '@')
		un.sun_path[0] = '\0'; /* an abstract name has no final NUL */
	else
		length++;
	length += offsetof(struct sockaddr_un, sun_path);
	return connect(socket, (const struct sockaddr *)&un, (socklen_t)length) < 0 ? -errno : 0;
}

/* Sends a text, with a copy of fd unless that is -1. -EAGAIN: there is no room; wait for
 * POLLOUT. */
static int send_text(int socket, const char *text, int fd)
{
	return send_with_fd(socket, text, strlen(text), fd);
}

/* ---- waiters ------------------------------------------------------------------------- */

static bool advance(struct store *store, enum stage from, enum stage to, int r)
{
	struct waiter *waiter;
	bool any = false;

	for (waiter = STAILQ_FIRST(&store->waiters); waiter; waiter = STAILQ_NEXT(waiter, next)) {
		if (waiter->stage != from)
			continue;
		waiter->stage = to;
		waiter->r = r;
		any = true;
	}
	return any;
}

/* A callback may add waiters. */
static void deliver(struct store *store)
{
	struct waiter *waiter;

	while ((waiter = STAILQ_FIRST(&store->waiters)) && waiter->stage == DONE) {
		STAILQ_REMOVE_HEAD(&store->waiters, next);
		waiter->settled(waiter->userdata, waiter->r);
		free(waiter);
	}
}

static int on_deliver(sd_event_source *, void *userdata)
{
	deliver(userdata);
	return 0;
}

/* ---- messages ------------------------------------------------------------------------ */

static void pop(struct store *store)
{
	struct message *message = STAILQ_FIRST(&store->queue);

	STAILQ_REMOVE_HEAD(&store->queue, next);
	if (message->kind == KEEP)
		store->n_kept_back--;
	close_fd(&message->fd);
	free(message);
}

static void stop_barrier(struct store *store)
{
	store->passed = sd_event_source_disable_unref(store->passed);
	close_fd(&store->barrier);
}

/* Gives up the store. */
static void lose(struct store *store, int r)
{
	store->room = sd_event_source_disable_unref(store->room);
	close_fd(&store->socket);
	while (!STAILQ_EMPTY(&store->queue))
		pop(store);
	stop_barrier(store);
	advance(store, SETTLING, DONE, r);
	advance(store, NEXT, DONE, r);
	if (!STAILQ_EMPTY(&store->waiters))
		sd_event_source_set_enabled(store->deliver, SD_EVENT_ONESHOT);
}

/* Those who wait for a barrier are told the first error before it. */
static void account(struct store *store, enum kind kind, int r)
{
	if (r < 0 && store->failed == 0)
		store->failed = r;
	if (kind != BARRIER)
		return;
	store->barrier_failed = store->failed;
	store->failed = 0;
}

static bool is_gone(int r)
{
	return r == -ECONNREFUSED || r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE;
}

static int on_room(sd_event_source *, int, uint32_t, void *userdata)
{
	struct store *store = userdata;
	struct message *message;
	int r;

	while ((message = STAILQ_FIRST(&store->queue))) {
		r = send_text(store->socket, message->text, message->fd);
		if (r == -EAGAIN)
			return 0;
		if (is_gone(r)) {
			lose(store, r);
			return 0;
		}
		account(store, message->kind, r);
		pop(store);
	}
	sd_event_source_set_enabled(store->room, SD_EVENT_OFF);
	return 0;
}

static int enqueue(struct store *store, enum kind kind, const char *text, int fd)
{
	size_t size = strlen(text) + 1;
	struct message *message;

	if (kind == KEEP && store->n_kept_back >= STORE_QUEUE_MAX)
		return -EAGAIN;
	message = malloc(sizeof(*message) + size);
	if (!message)
		return -ENOMEM;
	*message = (struct message){ .kind = kind, .fd = -1 };
	memcpy(message->text, text, size);
	if (fd >= 0) {
		message->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (message->fd < 0) {
			free(message);
			return -errno;
		}
	}
	STAILQ_INSERT_TAIL(&store->queue, message, next);
	if (kind == KEEP)
		store->n_kept_back++;
	sd_event_source_set_enabled(store->room, SD_EVENT_ON);
	return 0;
}

static int hand_over(struct store *store, enum kind kind, const char *text, int fd)
{
	int r = -EAGAIN;

	if (STAILQ_EMPTY(&store->queue))
		r = send_text(store->socket, text, fd);
	if (r == -EAGAIN)
		return enqueue(store, kind, text, fd);
	if (is_gone(r))
		lose(store, r);
	else if (r == 0)
		account(store, kind, 0);
	return r;
}

static bool name_is_good(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return length > 0 && length < STORE_NAME_MAX && name[length] == '\0';
}

int store_keep(struct store *store, const char *name, int fd)
{
	char text[STORE_NAME_MAX + 32];

	if (!store_works(store))
		return 0;
	if (!name_is_good(name))
		return -EINVAL;
	if (fd < 0)
		return -EBADF;
	/* FDPOLL=0: without it the manager would drop an end that hangs up while no daemon runs,
	 * and the next daemon could not see that it has ended. */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	return hand_over(store, KEEP, text, fd);
}

void store_forget(struct store *store, const char *name)
{
	char text[STORE_NAME_MAX + 32];
	int r;

	if (!store_works(store))
		return;
	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	r = hand_over(store, FORGET, text, -1);
	if (r < 0)
		account(store, FORGET, r);
}

/* ---- barriers ------------------------------------------------------------------------ */

static int on_passed(sd_event_source *, int, uint32_t, void *userdata);

static int start_barrier(struct store *store)
{
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	store->barrier = ends[0];
	/* EPOLLHUP needs no flag. */
	r = sd_event_add_io(store->event, &store->passed, store->barrier, 0, on_passed, store);
	if (r >= 0)
		r = hand_over(store, BARRIER, "BARRIER=1", ends[1]);
	close(ends[1]);
	if (r < 0)
		stop_barrier(store);
	return r;
}

static int on_passed(sd_event_source *, int, uint32_t, void *userdata)
{
	struct store *store = userdata;
	int r;

	stop_barrier(store);

	/* If the manager ends before it reads the messages, the barrier hangs up as well: reconnect
	 * to find out. */
	r = connect_to(store->socket, store->address);
	if (r < 0) {
		lose(store, r);
	} else {
		advance(store, SETTLING, DONE, store->barrier_failed);
		if (advance(store, NEXT, SETTLING, 0)) {
			r = start_barrier(store);
			if (r < 0)
				advance(store, SETTLING, DONE, r);
		}
	}
	deliver(store);
	return 0;
}

int store_settle(struct store *store, store_settled_t settled, void *userdata)
{
	struct waiter *waiter;
	int r;

	if (!store_works(store)) {
		settled(userdata, 0);
		return 0;
	}
	waiter = malloc(sizeof(*waiter));
	if (!waiter)
		return -ENOMEM;
	*waiter = (struct waiter){ .settled = settled, .userdata = userdata };
	if (store->barrier < 0) {
		r = start_barrier(store);
		if (r < 0) {
			free(waiter);
			if (store_works(store))
				return r;
			settled(userdata, r); /* the manager has ended: no store */
			return 0;
		}
		waiter->stage = SETTLING;
	}
	STAILQ_INSERT_TAIL(&store->waiters, waiter, next);
	return 0;
}

/* ---- the probe: only it waits -------------------------------------------------------- */

/* Waits for the events or a hang-up. */
static int await(int fd, short events, int msec)
{
	struct pollfd end = { .fd = fd, .events = events };
	int n = poll(&end, 1, msec);

	return n < 0 ? -errno : n > 0 ? 0 : -ETIMEDOUT;
}

/* Asks the manager to keep one end of a pair for a moment. -ENOSPC: it was not kept; -ETIMEDOUT: no
 * answer. sd_notify_barrier() would wait for room in the manager's queue without a limit. */
static int probe_socket(int socket, int patience_msec)
{
	_cleanup_fd_ int other = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	other = pair[0];
	r = await(socket, POLLOUT, patience_msec);
	if (r == 0)
		r = send_text(socket, "FDSTORE=1\nFDNAME=" PROBE, pair[1]);
	close(pair[1]);
	if (r == 0)
		r = await(socket, POLLOUT, patience_msec);
	if (r == 0)
		r = sd_notify_barrier(false, (uint64_t)patience_msec * 1000);
	if (r < 0)
		return r;
	if (await(other, 0, LATE_CLOSE_MSEC) == 0)
		return -ENOSPC;
	return send_text(socket, "FDSTOREREMOVE=1\nFDNAME=" PROBE, -1);
}

/* ---- the environment ----------------------------------------------------------------- */

static int take_over(struct store *store, struct diagnostics *diagnostics)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int n;

	store->names = store->next_name = strdup(names ? names : "");
	if (!store->names)
		return -ENOMEM;
	n = sd_listen_fds(true);
	if (n < 0)
		diagnostics_add(diagnostics, false,
				"LISTEN_FDS, LISTEN_PID: %s: leases of an earlier gpuarbd "
				"end",
				strerror(-n));
	store->next_fd = SD_LISTEN_FDS_START;
	store->end_fd = SD_LISTEN_FDS_START + (n > 0 ? n : 0);
	return 0;
}

static unsigned read_max(void)
{
	const char *text = getenv("FDSTORE");
	uint64_t max;

	return text && number_parse(text, 0, UINT_MAX, &max) >= 0 ? (unsigned)max : UINT_MAX;
}

static void explain(struct diagnostics *diagnostics, const char *address, int r)
{
	const char *why = strerror(-r);

	if (r == -ENOSPC)
		why = "the service manager keeps none for this service (FileDescriptorStoreMax=), or "
		      "has no room for more";
	else if (r == -ETIMEDOUT)
		why = "the service manager does not answer";
	diagnostics_add(diagnostics, false,
			"no file descriptors can be kept (NOTIFY_SOCKET=%s: %s): " SO_LEASES_END,
			address, why);
}

static int probe(const struct store *store, int patience_msec)
{
	int r = probe_socket(store->socket, patience_msec);

	/* A manager that gave descriptors back has a store, even if it is full of them. */
	return r == -ENOSPC && store->next_fd < store->end_fd ? 0 : r;
}

static int find_manager(struct store *store, int patience_msec, struct diagnostics *diagnostics)
{
	const char *address = getenv("NOTIFY_SOCKET");
	int r;

	if (!address) {
		diagnostics_add(
			diagnostics, false,
			"there is no service manager that keeps file descriptors: " SO_LEASES_END);
		return 0;
	}
	store->address = strdup(address);
	if (!store->address)
		return -ENOMEM;
	store->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = store->socket < 0 ? -errno : connect_to(store->socket, address);
	if (r == 0)
		r = probe(store, patience_msec);
	if (r < 0) {
		explain(diagnostics, address, r);
		close_fd(&store->socket);
		return 0;
	}
	store->max = read_max();
	return 0;
}

int store_take(struct store *store, char name[static STORE_NAME_MAX], int *ret)
{
	const char *next;
	int fd;

	while (store->next_fd < store->end_fd) {
		fd = store->next_fd++;
		next = strsep(&store->next_name, ":");
		snprintf(name, STORE_NAME_MAX, "%s", next ? next : "");
		if (strcmp(name, PROBE) != 0) {
			*ret = fd;
			return 1;
		}
		close(fd); /* left by a process that died during its probe */
	}
	return 0;
}

/* ---- creation and end ---------------------------------------------------------------- */

static int watch_room(struct store *store)
{
	int r;

	r = sd_event_add_io(store->event, &store->room, store->socket, EPOLLOUT, on_room, store);
	return r < 0 ? r : sd_event_source_set_enabled(store->room, SD_EVENT_OFF);
}

int store_new(sd_event *event, int patience_msec, struct store **ret,
	      struct diagnostics *diagnostics)
{
	_cleanup_(store_freep) struct store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return -ENOMEM;
	store->event = sd_event_ref(event);
	store->max = UINT_MAX;
	store->socket = store->barrier = -1;
	STAILQ_INIT(&store->queue);
	STAILQ_INIT(&store->waiters);

	r = take_over(store, diagnostics);
	if (r >= 0)
		r = sd_event_add_defer(event, &store->deliver, on_deliver, store);
	if (r >= 0)
		r = sd_event_source_set_enabled(store->deliver, SD_EVENT_OFF);
	if (r >= 0)
		r = find_manager(store, patience_msec, diagnostics);
	if (r >= 0 && store_works(store))
		r = watch_room(store);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(store);
	return 0;
}

struct store *store_free(struct store *store)
{
	if (!store)
		return NULL;
	lose(store, -ECANCELED);
	deliver(store);
	while (store->next_fd < store->end_fd)
		close(store->next_fd++);
	sd_event_source_disable_unref(store->deliver);
	sd_event_unref(store->event);
	free(store->names);
	free(store->address);
	free(store);
	return NULL;
}

bool store_works(const struct store *store)
{
	return store->socket >= 0;
}

unsigned store_max(const struct store *store)
{
	return store->max;
}
