/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "helpers/enforce-protocol.h"
#include "helpers/enforce/target.h"
#include "util/log.h"
#include "util/text.h"

#define SLOTS_MAX \
	64U /* requests without an answer: no further one is read until the client reads some */
#define TURN 16U /* packets that are read in one round of the event loop */

/* A request, until its answer is sent. */
struct slot {
	struct server *server;
	struct freezer_call *call; /* NULL: systemd was not asked, or has answered */
	bool answered;
	struct enforce_answer answer;
	struct slot *next;
};

struct server {
	sd_event *event;
	int listening;
	struct freezer *freezer;
	const char *sysfs;
	uint64_t idle_usec;
	sd_event_source *accept, *io, *timer;

	int client; /* -1: none */
	pid_t client_pid;
	bool ended;   /* the client sends nothing more */
	bool leaving; /* this program exits after this client */
	struct slot *slots, **end;
	unsigned n_slots;
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
	size_t length;  /* as it was sent: the struct may have only the first bytes */
	int fd;         /* the first; -1: none */
	unsigned n_fds; /* 0, 1, or PACKET_FDS for several */
};

static void take_fds(struct msghdr *message, struct packet *packet)
{
	int fds[PACKET_FDS];
	size_t n;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(header), n * sizeof(int));
		for (size_t i = 0; i < n; i++, packet->n_fds++) {
			if (packet->n_fds == 0)
				packet->fd = fds[i];
			else
				close(fds[i]);
		}
	}
}

static void packet_done(struct packet *packet)
{
	if (packet->fd >= 0)
		close(packet->fd);
	packet->fd = -1;
}

/* Returns 1 with a packet for packet_done(); 0 at the end of the connection, which an empty packet is,
 * too; -EAGAIN where there is none yet; else what recvmsg(2) says. */
static int packet_receive(int socket, struct packet *ret)
{
	union {
		char bytes[CMSG_SPACE(PACKET_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec io = { .iov_base = &ret->request, .iov_len = sizeof(ret->request) };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t n;

	n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	ret->fd = -1;
	ret->n_fds = 0;
	take_fds(&message, ret);
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
	*server->end = slot;
	server->end = &slot->next;
	server->n_slots++;
	return slot;
}

static void slot_drop_first(struct server *server)
{
	struct slot *first = server->slots;

	server->slots = first->next;
	if (!server->slots)
		server->end = &server->slots;
	server->n_slots--;
	freezer_call_free(first->call);
	free(first);
}

static void close_client(struct server *server)
{
	while (server->slots)
		slot_drop_first(server);
	server->io = sd_event_source_disable_unref(server->io);
	if (server->client >= 0)
		close(server->client);
	server->client = -1;
	server->ended = false;
	sd_event_source_set_enabled(server->accept, SD_EVENT_ON);
	if (server->leaving)
		sd_event_exit(server->event, 0);
}

/* Sends the answers that are ready, in the order of the requests. */
static void flush(struct server *server)
{
	uint32_t events = 0;

	while (server->slots && server->slots->answered && events == 0) {
		if (send(server->client, &server->slots->answer, sizeof(server->slots->answer),
			 MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
			slot_drop_first(server);
		} else if (errno == EAGAIN) {
			events = EPOLLOUT;
		} else {
			close_client(server);
			return;
		}
	}
	if (server->ended && !server->slots) {
		close_client(server);
		return;
	}
	if (!server->ended && server->n_slots < SLOTS_MAX)
		events |= EPOLLIN;
	sd_event_source_set_io_events(server->io, events);
}

static void settle(struct slot *slot, int r, const char *sentence)
{
	slot->answer = enforce_answer_new(r, sentence);
	slot->answered = true;
}

/* ---- requests -------------------------------------------------------------------------- */

static void on_done(void *userdata, int r, const char *sentence)
{
	struct slot *slot = userdata;
	struct server *server = slot->server;

	slot->call = NULL;
	settle(slot, r, sentence);
	touch(server);
	flush(server);
}

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
		      "a kill or a freeze needs one pidfd, a thaw none: %s came with the request",
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
	struct target target;
	int r;

	r = check_packet(packet, why, size);
	if (r >= 0 && request->verb != ENFORCE_THAW)
		r = target_check(server->sysfs, packet->fd, request->start_time, server->client_pid,
				 &target, why, size);
	if (r >= 0 && request->verb == ENFORCE_FREEZE)
		r = target_check_unit(&target, request->unit, why, size);
	if (r < 0)
		return r;
	if (request->verb == ENFORCE_KILL)
		return target_kill(&target, why, size);
	r = freezer_start(server->freezer, request->verb == ENFORCE_FREEZE, request->unit, on_done,
			  slot, &slot->call, why, size);
	return r < 0 ? r : 1;
}

/* Reads and carries out one request. Returns whether to try another. */
static bool take_request(struct server *server)
{
	char why[ENFORCE_SENTENCE_MAX] = "";
	struct packet packet;
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
		packet_done(&packet);
		server->ended = true; /* no memory for an answer: hang up instead */
		return false;
	}
	r = carry_out(slot, &packet, why, sizeof(why));
	if (r <= 0)
		settle(slot, r, why);
	packet_done(&packet);
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

	if (server->slots) {
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

int server_new(sd_event *event, int listening, struct freezer *freezer, const char *sysfs,
	       uint64_t idle_usec, struct server **ret)
{
	_cleanup_(server_freep) struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	*server = (struct server){ .listening = listening,
				   .freezer = freezer,
				   .sysfs = sysfs,
				   .client = -1,
				   .idle_usec = idle_usec };
	server->event = sd_event_ref(event);
	server->end = &server->slots;
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
	if (!server)
		return NULL;

	server->leaving = false;
	close_client(server);
	sd_event_source_disable_unref(server->accept);
	sd_event_source_disable_unref(server->timer);
	sd_event_unref(server->event);
	free(server);
	return NULL;
}
