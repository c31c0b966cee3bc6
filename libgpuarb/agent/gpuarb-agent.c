/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-agent LEASE ROOT LISTENING LISTENING PROCESS: started by `gpuarbctl run`, and by gpuarb-oci for a container.
 * ROOT is the process id of the command, or of the first process of the container. The last three are fds: two listening
 * sockets, the first one with a file that gpuarb-agent deletes (gpuarb-oci passes it twice), and a pidfd of ROOT. A process that connects early waits for the first grant.
 *
 * It follows one lease for all processes of the command. It sends them each grant, and acknowledges
 * a generation when every queue of every process has its masks.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/util/number.h"
#include "libgpuarb/agent/follower.h"
#include "libgpuarb/agent/members.h"
#include "libgpuarb/lease/environment.h"
#include "libgpuarb/lease/kfd-sysfs.h"

/* No process is served during a call of the daemon. Must be shorter than GRANT_MSEC, which is how
 * long a process waits with its first queue. */
#define CALL_USEC UINT64_C(3000000)

#define BEGIN_USEC UINT64_C(10000000)    /* for a daemon that is restarting */
#define UNFOLLOWED_USEC UINT64_C(100000) /* between two searches for an unfollowed process */
#define ACCEPT_USEC UINT64_C(100000)     /* until it is tried again to accept one */

/* How many connections of a socket are accepted in a turn. Other users, who are refused, can connect to the abstract socket
 * all the time. */
#define ACCEPTS 64U

struct server {
	const char *environment; /* HSA_CU_MASK of the processes; NULL: none */
	bool debug;

	struct follower *follower;
	struct lease_copy now; /* the last state that the daemon reported */
	struct agent_grant grant;

	pid_t root;                /* the process that `gpuarbctl run` became */
	int listening[2], process; /* sockets; a pidfd of the root */
	int epoll;                 /* of these and of the fds of the members */
	struct members members;
	pid_t unfollowed; /* the process that prevents an acknowledgement; 0: none */
	bool crowded;     /* there was no fd for a process that connects */
	bool pending;     /* more processes may have connected than a turn accepts */
};

__attribute__((format(printf, 2, 3))) static void say(const struct server *server,
						      const char *format, ...)
{
	va_list args;

	if (!server->debug)
		return;
	va_start(args, format);
	fprintf(stderr, "gpuarb-agent, lease %" PRIu64 ": ", server->follower->id);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

static void delete_file(int listening)
{
	struct sockaddr_un address;
	socklen_t size = sizeof(address) - 1;

	memset(&address, 0, sizeof(address));
	if (getsockname(listening, (struct sockaddr *)&address, &size) == 0 && *address.sun_path)
		(void)unlink(address.sun_path);
}

static void server_free(struct server *server)
{
	members_clear(&server->members);
	delete_file(server->listening[0]);
	close_fd(&server->listening[0]);
	close_fd(&server->listening[1]);
	close_fd(&server->process);
	close_fd(&server->epoll);
	lease_copy_clear(&server->now);
	follower_free(server->follower);
	free(server);
}
DEFINE_CLEANUP(struct server *, server_free)

static int watch(struct server *server, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Takes over the fds. */
static int server_new(uint64_t lease, const int listening[static 2], int process, pid_t root,
		      struct server **ret)
{
	_cleanup_(server_freep) struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;

	server->root = root;
	memcpy(server->listening, listening, sizeof(server->listening));
	server->process = process;
	server->now.info.state = "";
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = server->epoll < 0 ? -errno : watch(server, process, EPOLLIN);
	for (size_t i = 0; r >= 0 && i < 2; i++)
		r = watch(server, listening[i], EPOLLIN | EPOLLET);
	if (r >= 0)
		r = follower_new(NULL, lease, NULL, &server->follower);
	if (r < 0)
		return r;
	server->follower->gpuarb->answer_usec = CALL_USEC;
	*ret = TAKE_PTR(server);
	return 0;
}

static void describe_partition(const struct server *server, const struct topology *topology,
			       size_t i, struct agent_partition *ret)
{
	const struct gpuarb_partition *partition = &server->now.info.partitions[i];
	const struct topology_gpu *gpu = topology_find(topology, partition->kfd_gpu_id);
	struct mask environment = { .words = 0 };

	*ret = (struct agent_partition){
		.kfd_gpu_id = partition->kfd_gpu_id,
		.xccs = gpu ? gpu->xccs : 1,
		.paused = partition->paused,
		.priority = partition->priority,
		.n_words = (uint32_t)partition->cu_mask_words,
	};
	memcpy(ret->cu_mask, partition->cu_mask, ret->n_words * sizeof(ret->cu_mask[0]));
	if (server->environment && environment_mask(server->environment, i, &environment)) {
		ret->n_environment = (uint32_t)environment.words;
		memcpy(ret->environment, environment.word,
		       ret->n_environment * sizeof(ret->environment[0]));
	}
}

static int describe(struct server *server)
{
	const struct gpuarb_lease_info *info = &server->now.info;
	struct topology topology = { NULL, 0 };
	int r;

	if (info->n_partitions == 0 || info->n_partitions > AGENT_PARTITIONS)
		return fail(server->follower->gpuarb, -EBADFD,
			    "lease %" PRIu64 " is %s, not granted", server->follower->id,
			    info->state);
	for (size_t i = 0; i < info->n_partitions; i++)
		if (info->partitions[i].cu_mask_words == 0 ||
		    info->partitions[i].cu_mask_words > MASK_WORDS)
			return fail(server->follower->gpuarb, -EPROTO,
				    "lease %" PRIu64 " has an invalid mask of %zu words on GPU %s",
				    server->follower->id, info->partitions[i].cu_mask_words,
				    info->partitions[i].gpu);

	r = topology_read("/sys", "/dev", &topology);
	if (r == -ENOMEM)
		return r;
	server->grant = (struct agent_grant){
		.version = AGENT_VERSION,
		.n_partitions = (uint32_t)info->n_partitions,
		.lease = server->follower->id,
		.generation = info->generation,
	};
	for (size_t i = 0; i < info->n_partitions; i++)
		describe_partition(server, &topology, i, &server->grant.partitions[i]);
	free(topology.gpus);
	return 0;
}

/* Reads the lease, and makes a new grant if the generation changed. */
static int take(struct server *server)
{
	struct lease_copy copy = { .info.state = "" };
	int r = follower_read(server->follower, &copy);

	if (r < 0)
		return r;
	lease_copy_clear(&server->now);
	server->now = copy;
	if (strcmp(copy.info.state, "ending") == 0)
		return -ENOENT;
	if (copy.info.generation == server->grant.generation)
		return 0;
	r = describe(server);
	say(server, "generation %" PRIu64 ", %s", copy.info.generation, copy.info.state);
	return r;
}

/* Reads the lease for the first time, and waits for a daemon that is restarting. A failure is noted
 * in the handle of the follower. */
static int server_begin(struct server *server)
{
	uint64_t deadline = deadline_after(BEGIN_USEC);
	int r;

	for (;;) {
		r = take(server);
		if (r >= 0 || r == -ENOENT || r == -EBADFD || now_usec() >= deadline)
			break;
		(void)follower_wait(server->follower, NULL, deadline);
	}
	return r;
}

/* Whether a process of the lease has queues and cannot be reached. */
static bool has_unfollowed(struct server *server)
{
	const struct unfollowed_search search = { .sys = "/sys",
						  .proc = "/proc",
						  .root = server->root,
						  .members = &server->members,
						  .grant = &server->grant };
	pid_t unfollowed = queues_visible() ? members_find_unfollowed(&search) : 0;

	if (unfollowed > 0 && unfollowed != server->unfollowed)
		say(server,
		    "process %d has queues and does not follow the lease: generation %" PRIu64
		    " is not acknowledged",
		    (int)unfollowed, server->grant.generation);
	server->unfollowed = unfollowed;
	return unfollowed != 0;
}

/* To acknowledge a revocation ends the lease at once; the program could not save its work. */
static int acknowledge(struct server *server)
{
	uint64_t generation = server->grant.generation;
	int r;

	bool told = server->follower->acknowledged == generation;

	server->unfollowed = told ? 0 : server->unfollowed;
	if (told || strcmp(server->now.info.state, "revoking") == 0 ||
	    !members_follow(&server->members, generation) || has_unfollowed(server))
		return 0;
	r = follower_acknowledge(server->follower, generation);
	if (r >= 0)
		say(server, "generation %" PRIu64 " acknowledged", generation);
	return r;
}

/* Other users may find the name of the socket, so their processes are refused. */
static void add_member(struct server *server, int accepted)
{
	_cleanup_(close_fd) int fd = accepted;
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != getuid() ||
	    watch(server, fd, EPOLLIN) < 0)
		return;
	if (members_add(&server->members, TAKE_FD(fd), peer.pid) >= 0)
		say(server, "process %d has queues", (int)peer.pid);
}

/* The events of these sockets are edges: one that waits for an fd, or for the next turn, wakes nobody. */
static void accept_members(struct server *server)
{
	server->crowded = server->pending = false;
	for (size_t i = 0; i < 2; i++) {
		int fd = 0;

		for (unsigned n = 0; fd >= 0 && n < ACCEPTS; n++) {
			fd = accept4(server->listening[i], NULL, NULL, SOCK_CLOEXEC);
			if (fd >= 0)
				add_member(server, fd);
		}
		server->pending |= fd >= 0;
		server->crowded |= fd < 0 && errno != EAGAIN;
	}
}

/* 1: the root process has ended. */
static int handle_events(struct server *server)
{
	struct epoll_event events[16];
	int n = epoll_wait(server->epoll, events, (int)ARRAY_SIZE(events), 0);

	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == server->process)
			return 1;
		if (members_receive(&server->members, fd) < 0)
			members_remove(&server->members, fd);
	}
	return 0;
}

static int turn(struct server *server)
{
	uint64_t deadline = UINT64_MAX;
	int r;

	if (follower_due(server->follower)) {
		r = take(server);
		if (r == -ENOENT)
			return r;
	}
	accept_members(server);
	members_send(&server->members, &server->grant);
	if (server->follower->pause_usec == 0) {
		r = acknowledge(server);
		if (r == -ENOENT)
			return r;
	}
	if (server->pending)
		deadline = 0;
	else if (server->unfollowed != 0)
		deadline = deadline_after(UNFOLLOWED_USEC);
	else if (server->crowded)
		deadline = deadline_after(ACCEPT_USEC);
	r = follower_wait(server->follower, &server->epoll, deadline);
	return r == -ECANCELED ? handle_events(server) : 0;
}

/* Runs until the lease or the root process ends. */
static void server_run(struct server *server)
{
	int r;

	do
		r = turn(server);
	while (r == 0);
	say(server, r > 0 ? "the process has ended" : "the lease has ended");
}

static int report_failure(const struct server *server, int error)
{
	fprintf(stderr, "gpuarb-agent: %s\n",
		server && *gpuarb_last_error(server->follower->gpuarb)
			? gpuarb_last_error(server->follower->gpuarb)
			: strerror(-error));
	return EXIT_FAILURE;
}

/* Detaches from the terminal and the current folder of the user, which the command may outlive. */
static void leave_terminal(const struct server *server)
{
	_cleanup_(close_fd) int null = server->debug ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0)
		dup2(null, STDERR_FILENO);
	if (chdir("/") < 0)
		return;
}

/* Whether the process of the pidfd has ended. */
static bool has_ended(int process)
{
	struct pollfd fd = { .fd = process, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

static int serve(const uint64_t *values)
{
	_cleanup_(server_freep) struct server *server = NULL;
	const char *debug = getenv(AGENT_DEBUG);
	int r;

	r = server_new(values[0], (const int[]){ (int)values[2], (int)values[3] }, (int)values[4],
		       (pid_t)values[1], &server);
	if (r < 0)
		return report_failure(NULL, r);

	server->environment = getenv("HSA_CU_MASK");
	server->debug = debug && *debug && strcmp(debug, "0") != 0;
	r = server_begin(server);
	if (r < 0 && has_ended(server->process))
		return EXIT_SUCCESS;
	if (r < 0)
		return report_failure(server, r);

	leave_terminal(server);
	server_run(server);
	return EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	static const uint64_t maxima[] = { UINT64_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX };
	uint64_t values[ARRAY_SIZE(maxima)];
	bool valid = argc == 1 + (int)ARRAY_SIZE(maxima);

	for (size_t i = 0; valid && i < ARRAY_SIZE(maxima); i++)
		valid = number_parse(argv[1 + i], 0, maxima[i], &values[i]) == 0;
	if (!valid) {
		fprintf(stderr, "usage: gpuarb-agent LEASE ROOT LISTENING LISTENING PROCESS\n"
				"Do not start it by hand: use gpuarbctl run.\n");
		return 2;
	}
	return serve(values);
}
