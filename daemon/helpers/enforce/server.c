/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "helpers/enforce-protocol.h"
#include "helpers/enforce/target.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/text.h"

#define SLOTS_MAX \
	64U /* requests without an answer: no further one is read until the client reads some */
#define TURN 16U                   /* packets that are read in one round of the event loop */
#define BUSY_USEC UINT64_C(100000) /* until a thaw is repeated of a unit that is busy */

/* A request, until its answer is sent. */
struct slot {
	struct server *server;
	struct enforce_request request;
	sd_bus_slot *call; /* NULL: systemd was not asked, or has answered */
	sd_event_source *timer, *again;
	bool answered;
	struct enforce_answer answer;
	STAILQ_ENTRY(slot) link;
};

/* A unit that was frozen for a client, or may be: it is thawed when the client is gone. Its file in
 * server->records outlives this program, so that the next one thaws it on request, and no other. */
struct held_unit {
	char name[ENFORCE_UNIT_MAX];
	LIST_ENTRY(held_unit) link;
};

struct server {
	sd_event *event;
	sd_bus *bus; /* NULL: not connected */
	const char *sysfs;
	int records; /* the directory with a file for each held unit; -1: none */
	uint64_t timeout_usec, idle_usec;
	sd_event_source *accept, *io, *timer;

	int client; /* -1: none */
	pid_t client_pid;
	bool ended;   /* the client sends nothing more */
	bool leaving; /* this program exits after this client */
	STAILQ_HEAD(, slot) slots;
	unsigned n_slots;
	LIST_HEAD(, held_unit) held;
};

static void touch(struct server *server)
{
	sd_event_source_set_time_relative(server->timer, server->idle_usec);
	sd_event_source_set_enabled(server->timer, SD_EVENT_ONESHOT);
}

/* ---- packets ---------------------------------------------------------------------------- */

/* Room for one file descriptor and for one too many; the kernel closes the others. */
#define PACKET_FDS 2U

struct packet {
	struct enforce_request request;
	size_t length; /* as it was sent: the struct may have only the first bytes */
	int fd;        /* the first; -1: none */
	size_t n_fds;  /* 0, 1, or PACKET_FDS for several */
};

static void packet_done(struct packet *packet)
{
	close_fd(&packet->fd);
}

/* Returns 1 with a packet for packet_done(); 0 at the end of the connection, which an empty packet is,
 * too; -EAGAIN where there is none yet; else what recvmsg(2) says. */
static int packet_receive(int socket, struct packet *ret)
{
	int fds[PACKET_FDS], flags = MSG_TRUNC;
	ssize_t n = receive_with_fds(socket, &ret->request, sizeof(ret->request), &flags, fds,
				     PACKET_FDS, &ret->n_fds);

	if (n < 0)
		return n == -EINTR ? -EAGAIN : (int)n;
	ret->fd = ret->n_fds > 0 ? fds[0] : -1;
	for (size_t i = 1; i < ret->n_fds; i++)
		close(fds[i]);
	ret->length = (size_t)n;
	if (n == 0)
		packet_done(ret);
	return n > 0;
}

/* ---- slots ----------------------------------------------------------------------------- */

static struct slot *slot_add(struct server *server)
{
	struct slot *slot = calloc(1, sizeof(*slot));

	if (!slot)
		return NULL;
	slot->server = server;
	STAILQ_INSERT_TAIL(&server->slots, slot, link);
	server->n_slots++;
	return slot;
}

/* Cancels the wait for an answer of systemd, which carries out the call all the same. */
static void slot_cancel(struct slot *slot)
{
	slot->call = sd_bus_slot_unref(slot->call);
	slot->timer = sd_event_source_disable_unref(slot->timer);
	slot->again = sd_event_source_disable_unref(slot->again);
}

static void slot_settle(struct slot *slot, int r, const char *sentence)
{
	slot_cancel(slot);
	slot->answer = enforce_answer_new(r, sentence);
	slot->answered = true;
}

static void slot_drop_first(struct server *server)
{
	struct slot *first = STAILQ_FIRST(&server->slots);

	STAILQ_REMOVE_HEAD(&server->slots, link);
	server->n_slots--;
	slot_cancel(first);
	free(first);
}

static void drop_client(struct server *server)
{
	while (server->n_slots > 0)
		slot_drop_first(server);
	server->io = sd_event_source_disable_unref(server->io);
	close_fd(&server->client);
	server->ended = false;
}

/* The client is gone, and its units are thawed as far as systemd does that. */
static void let_next_in(struct server *server)
{
	if (server->leaving)
		sd_event_exit(server->event, 0);
	else
		sd_event_source_set_enabled(server->accept, SD_EVENT_ON);
}

static void close_client(struct server *server);

/* Sends the answers that are ready, in the order of the requests. */
static void flush(struct server *server)
{
	uint32_t events = 0;

	if (server->client < 0) {
		while (server->n_slots > 0 && STAILQ_FIRST(&server->slots)->answered)
			slot_drop_first(server);
		if (server->n_slots == 0)
			let_next_in(server);
		return;
	}
	for (struct slot *first;
	     (first = STAILQ_FIRST(&server->slots)) && first->answered && events == 0;) {
		if (send(server->client, &first->answer, sizeof(first->answer),
			 MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
			slot_drop_first(server);
		} else if (errno == EAGAIN) {
			events = EPOLLOUT;
		} else {
			close_client(server);
			return;
		}
	}
	if (server->ended && server->n_slots == 0) {
		close_client(server);
		return;
	}
	if (!server->ended && server->n_slots < SLOTS_MAX)
		events |= EPOLLIN;
	sd_event_source_set_io_events(server->io, events);
}

/* ---- units that are frozen for the client ------------------------------------------------ */

static struct held_unit *held_find(const struct server *server, const char *unit)
{
	struct held_unit *held;

	LIST_FOREACH(held, &server->held, link)
	if (strcmp(held->name, unit) == 0)
		return held;
	return NULL;
}

/* Before systemd is asked: a freeze without an answer may be carried out. */
static int held_add(struct server *server, const char *unit)
{
	struct held_unit *held;
	int fd = -1;

	if (held_find(server, unit))
		return 0;
	held = calloc(1, sizeof(*held));
	if (!held)
		return -ENOMEM;
	strcpy(held->name, unit);
	if (server->records >= 0)
		fd = openat(server->records, unit, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			    0600);
	if (server->records >= 0 && fd < 0) {
		free(held);
		return -errno;
	}
	close_fd(&fd);
	LIST_INSERT_HEAD(&server->held, held, link);
	return 0;
}

static void held_remove(struct server *server, const char *unit)
{
	struct held_unit *held = held_find(server, unit);

	if (!held)
		return;
	if (server->records >= 0)
		unlinkat(server->records, unit, 0);
	LIST_REMOVE(held, link);
	free(held);
}

/* What a program before this one froze, and did not thaw because it was killed. */
static int held_load(struct server *server)
{
	_cleanup_(closedirp) DIR *directory = NULL;
	const struct dirent *entry;
	char why[256];
	int r = 0;

	if (server->records < 0)
		return 0;
	directory = open_directory(fcntl(server->records, F_DUPFD_CLOEXEC, 3));
	while (directory && r >= 0 && (entry = readdir(directory)))
		if (enforce_unit_check(entry->d_name, why, sizeof(why)) >= 0)
			r = held_add(server, entry->d_name);
	return directory ? r : -errno;
}

/* Nothing is left to thaw after a thaw, also of a unit that has ended, and after a freeze that systemd
 * has refused. */
static void held_settle(struct server *server, const struct enforce_request *request, int r)
{
	bool done = r == 0 || r == -ESRCH || r == -ENOENT;

	if (request->verb == ENFORCE_THAW ? done : r < 0 && r != -ETIMEDOUT && r != -EBUSY)
		held_remove(server, request->text);
}

/* ---- units: FreezeUnit and ThawUnit of org.freedesktop.systemd1 -------------------------- */

/* Errors of FreezeUnit and ThawUnit, and of the bus. */
static const struct {
	const char *name;
	int r;
} errors[] = {
	{ "org.freedesktop.systemd1.NoSuchUnit", -ENOENT },
	{ "org.freedesktop.systemd1.UnitInactive", -ESRCH },
	{ "org.freedesktop.systemd1.UnitBusy", -EBUSY },
	{ SD_BUS_ERROR_NOT_SUPPORTED, -EOPNOTSUPP },
	{ SD_BUS_ERROR_UNKNOWN_METHOD, -EOPNOTSUPP }, /* before systemd 246 */
	{ SD_BUS_ERROR_SERVICE_UNKNOWN, -EOPNOTSUPP },
	{ SD_BUS_ERROR_ACCESS_DENIED, -EACCES },
	{ SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, -EACCES },
};

static int errno_of(const sd_bus_error *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (sd_bus_error_has_name(error, errors[i].name))
			return errors[i].r;
	return -EIO;
}

static void on_done(struct slot *slot, int r, const char *sentence)
{
	struct server *server = slot->server;

	if (r == 0)
		log_notice("%s: %s", slot->request.text,
			   slot->request.verb == ENFORCE_FREEZE ? "frozen" : "thawed");
	held_settle(server, &slot->request, r);
	if (r < 0 && server->client < 0)
		log_warning("%s: cannot be thawed: %s", slot->request.text, sentence);
	slot_settle(slot, r, sentence);
	touch(server);
	flush(server);
}

static int ask_again(struct slot *slot);

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	char sentence[400];

	if (!e) {
		on_done(userdata, 0, "");
		return 0;
	}
	/* The freeze that the client did not wait for is under way. */
	if (errno_of(e) == -EBUSY && ((struct slot *)userdata)->server->client < 0 &&
	    ask_again(userdata) >= 0)
		return 0;
	snprintf(sentence, sizeof(sentence), "%s (%s)", e->message ? e->message : "no reason given",
		 e->name);
	on_done(userdata, errno_of(e), sentence);
	return 0;
}

/* A timer of its own: the time-out of sd-bus starts only when the bus has answered Hello. */
static int on_timeout(sd_event_source *, uint64_t, void *userdata)
{
	on_done(userdata, -ETIMEDOUT, "the service manager does not answer");
	return 0;
}

static int connect_bus(struct server *server)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	int r;

	if (server->bus && sd_bus_is_open(server->bus) > 0)
		return 0;
	server->bus = sd_bus_close_unref(server->bus);
	r = sd_bus_open_system(&bus);
	if (r >= 0)
		r = sd_bus_attach_event(bus, server->event, SD_EVENT_PRIORITY_NORMAL);
	if (r >= 0)
		server->bus = TAKE_PTR(bus);
	return r;
}

static int send_call(struct slot *slot)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	struct server *server = slot->server;
	int r;

	r = connect_bus(server);
	if (r >= 0)
		r = sd_bus_message_new_method_call(
			server->bus, &m, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
			"org.freedesktop.systemd1.Manager",
			slot->request.verb == ENFORCE_FREEZE ? "FreezeUnit" : "ThawUnit");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", slot->request.text);
	slot->call = sd_bus_slot_unref(slot->call);
	if (r >= 0)
		r = sd_bus_call_async(server->bus, &slot->call, m, on_reply, slot, UINT64_MAX);
	return r;
}

static int on_again(sd_event_source *, uint64_t, void *userdata)
{
	struct slot *slot = userdata;
	int r = send_call(slot);

	if (r < 0)
		on_done(slot, r, strerror(-r));
	return 0;
}

/* Until the time-out of the slot. */
static int ask_again(struct slot *slot)
{
	slot->again = sd_event_source_disable_unref(slot->again);
	return sd_event_add_time_relative(slot->server->event, &slot->again, CLOCK_MONOTONIC,
					  BUSY_USEC, 1000, on_again, slot);
}

/* Returns 1: the event loop calls on_done(); or a negative errno with a sentence in why. */
static int call_systemd(struct slot *slot, char *why, size_t size)
{
	struct server *server = slot->server;
	int r = slot->request.verb == ENFORCE_FREEZE ? held_add(server, slot->request.text) : 0;

	if (r < 0)
		return refuse(why, size, r, "the name of %s cannot be saved: %s",
			      slot->request.text, strerror(-r));
	r = send_call(slot);
	if (r >= 0)
		r = sd_event_add_time_relative(server->event, &slot->timer, CLOCK_MONOTONIC,
					       server->timeout_usec, 1000, on_timeout, slot);
	if (r >= 0)
		return 1;
	return refuse(why, size, r, "cannot ask the service manager: %s", strerror(-r));
}

/* Nobody else remembers which units are frozen if the client has ended for good. The next client has to
 * wait: it may freeze the same unit. */
static void close_client(struct server *server)
{
	struct held_unit *held, *next;
	struct slot *slot;
	char why[256];

	drop_client(server);
	for (held = LIST_FIRST(&server->held); held; held = next) {
		next = LIST_NEXT(held, link);
		slot = slot_add(server);
		if (!slot)
			continue;
		slot->request.verb = ENFORCE_THAW;
		strcpy(slot->request.text, held->name);
		if (call_systemd(slot, why, sizeof(why)) >= 0)
			continue;
		log_warning("%s: cannot be thawed: %s", held->name, why);
		slot_settle(slot, -EIO, why);
	}
	flush(server);
}

/* ---- requests -------------------------------------------------------------------------- */

static int check_packet(const struct packet *packet, char *why, size_t size)
{
	unsigned needed;
	int r;

	r = enforce_request_check(&packet->request, packet->length, why, size);
	if (r < 0)
		return r;
	needed = packet->request.verb == ENFORCE_THAW ? 0 : 1;
	if (packet->n_fds == needed)
		return 0;
	return refuse(why, size, -EBADMSG,
		      "a thaw needs no pidfd, other requests one: %s came with the request",
		      packet->n_fds == 0   ? "none"
		      : packet->n_fds == 1 ? "one"
					   : "several");
}

/* Returns 0 when the request is carried out, 1 when it is under way, a negative errno with a
 * sentence in why when it is refused. */
static int carry_out(struct slot *slot, const struct packet *packet, char *why, size_t size)
{
	struct server *server = slot->server;
	const struct enforce_request *request = &packet->request;
	bool unleased = request->verb == ENFORCE_WARN || request->verb == ENFORCE_END;
	struct target target;
	int r;

	r = check_packet(packet, why, size);
	if (r >= 0 && request->verb != ENFORCE_THAW)
		r = target_check(server->sysfs, packet->fd, request->start_time,
				 unleased ? 0 : (uid_t)request->uid, server->client_pid, &target,
				 why, size);
	if (r >= 0 && unleased)
		r = target_check_unleased(&target, (uid_t)request->uid, why, size);
	if (r >= 0 && request->verb == ENFORCE_FREEZE)
		r = target_check_unit(&target, request->text, held_find(server, request->text), why,
				      size);
	if (r >= 0 && request->verb == ENFORCE_THAW && !held_find(server, request->text))
		r = refuse(why, size, -EPERM, "%s was not frozen by gpuarb-enforce", request->text);
	if (r < 0)
		return r;
	if (!enforce_names_unit(request->verb))
		target_tell(&target, request->text);
	if (request->verb == ENFORCE_WARN)
		return 0;
	if (!enforce_names_unit(request->verb))
		return target_kill(&target, why, size);
	slot->request = *request;
	return call_systemd(slot, why, size);
}

/* Reads and carries out one request. Returns whether to try another. */
static bool take_request(struct server *server)
{
	char why[ENFORCE_SENTENCE_MAX] = "";
	_cleanup_(packet_done) struct packet packet = { .fd = -1 };
	struct slot *slot;
	int r;

	if (server->ended || server->n_slots >= SLOTS_MAX)
		return false;
	r = packet_receive(server->client, &packet);
	if (r <= 0) {
		server->ended = r != -EAGAIN;
		return false;
	}
	touch(server);
	slot = slot_add(server);
	if (!slot) {
		server->ended = true; /* no memory for an answer: hang up instead */
		return false;
	}
	r = carry_out(slot, &packet, why, sizeof(why));
	if (r <= 0)
		slot_settle(slot, r, why);
	return true;
}

static void take_requests(struct server *server)
{
	for (unsigned i = 0; i < TURN && take_request(server); i++)
		;
	flush(server);
}

/* ---- clients --------------------------------------------------------------------------- */

/* Requests of a client that has hung up are dropped. */
static int on_client(sd_event_source *, int, uint32_t events, void *userdata)
{
	struct server *server = userdata;

	if (events & (EPOLLHUP | EPOLLERR))
		close_client(server);
	else
		take_requests(server);
	return 0;
}

/* A second check beside the mode of the socket's file: an administrator may have changed the mode. */
static bool is_owner(int listening, uid_t uid)
{
	struct sockaddr_un un = { 0 };
	socklen_t size = sizeof(un) - 1;
	struct stat st;

	return getsockname(listening, (struct sockaddr *)&un, &size) == 0 &&
	       un.sun_path[0] == '/' && stat(un.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_uid == uid;
}

static bool may_ask(int listening, int client, struct ucred *ret)
{
	socklen_t size = sizeof(*ret);

	*ret = (struct ucred){ .uid = (uid_t)-1 };
	return getsockopt(client, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0 &&
	       (ret->uid == 0 || is_owner(listening, ret->uid));
}

static void send_away(int client, const struct ucred *who)
{
	struct enforce_answer answer;
	char sentence[128];

	snprintf(sentence, sizeof(sentence), "uid %u is neither root nor the owner of the socket",
		 who->uid);
	log_warning("process %d: %s", (int)who->pid, sentence);
	answer = enforce_answer_new(-EPERM, sentence);
	send(client, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	close(client);
}

static int on_accept(sd_event_source *, int fd, uint32_t, void *userdata)
{
	struct server *server = userdata;
	struct ucred who;
	int client;

	client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (client < 0)
		return 0;
	touch(server);
	if (!may_ask(fd, client, &who)) {
		send_away(client, &who);
		return 0;
	}
	if (sd_event_add_io(server->event, &server->io, client, EPOLLIN, on_client, server) < 0) {
		close(client);
		return 0;
	}
	server->client = client;
	server->client_pid = who.pid;
	sd_event_source_set_enabled(server->accept, SD_EVENT_OFF);
	return 0;
}

/* Carries out what the client has sent until now, and then exits. */
static int on_idle(sd_event_source *, uint64_t, void *userdata)
{
	struct server *server = userdata;

	if (server->n_slots > 0 || (server->client >= 0 && !LIST_EMPTY(&server->held))) {
		touch(server);
		return 0;
	}
	server->leaving = true;
	if (server->client < 0)
		return sd_event_exit(server->event, 0);
	shutdown(server->client, SHUT_RD);
	take_requests(server);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------ */

void server_leave(struct server *server)
{
	server->leaving = true;
	sd_event_source_set_enabled(server->accept, SD_EVENT_OFF);
	if (server->client >= 0)
		close_client(server);
	else if (server->n_slots == 0)
		sd_event_exit(server->event, 0);
}

int server_new(sd_event *event, int listening, const char *sysfs, int records,
	       uint64_t timeout_usec, uint64_t idle_usec, struct server **ret)
{
	_cleanup_(server_freep) struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	*server = (struct server){ .event = sd_event_ref(event),
				   .sysfs = sysfs,
				   .records = records,
				   .client = -1,
				   .timeout_usec = timeout_usec,
				   .idle_usec = idle_usec };
	STAILQ_INIT(&server->slots);
	LIST_INIT(&server->held);
	r = held_load(server);
	if (r >= 0)
		r = sd_event_add_io(event, &server->accept, listening, EPOLLIN, on_accept, server);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &server->timer, CLOCK_MONOTONIC, idle_usec,
					       1000, on_idle, server);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(server);
	return 0;
}

struct server *server_free(struct server *server)
{
	drop_client(server);
	server->records = -1; /* the files of units that could not be thawed stay */
	while (!LIST_EMPTY(&server->held))
		held_remove(server, LIST_FIRST(&server->held)->name);
	sd_event_source_disable_unref(server->accept);
	sd_event_source_disable_unref(server->timer);
	sd_bus_close_unref(server->bus);
	sd_event_unref(server->event);
	free(server);
	return NULL;
}
