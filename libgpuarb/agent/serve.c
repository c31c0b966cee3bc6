/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libgpuarb/agent/unfollowed.h"
#include "libgpuarb/lease/apply.h"

/* While the daemon hangs nobody here is served: a process with its first queue does not wait for
 * longer (GRANT_MSEC). */
#define CALL_USEC UINT64_C(3000000)

#define BEGIN_USEC UINT64_C(10000000) /* for a daemon that is being restarted */
#define STRAY_USEC UINT64_C(100000)   /* between two looks whether a stray has gone or joined */

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

/* ---- its beginning and end --------------------------------------------------------------- */

struct server *server_free(struct server *server)
{
	if (!server)
		return NULL;

	members_clear(&server->members);
	close_fd(&server->listening);
	close_fd(&server->process);
	close_fd(&server->epoll);
	snapshot_clear(&server->now);
	follower_free(server->follower);
	free(server);
	return NULL;
}

static int watch(struct server *server, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int server_new(uint64_t lease, int listening, int process, pid_t root, struct server **ret)
{
	_cleanup_(server_freep) struct server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;

	server->sys = "/sys";
	server->dev = "/dev";
	server->proc = "/proc";
	server->sees_queues = queues_visible();
	server->root = root;
	server->listening = listening;
	server->process = process;
	server->now.info.state = "";
	server->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = server->epoll < 0 ? -errno : watch(server, listening);
	if (r >= 0)
		r = watch(server, process);
	if (r >= 0)
		r = follower_new(NULL, lease, NULL, &server->follower);
	if (r < 0)
		return r;
	server->follower->gpuarb->answer_usec = CALL_USEC;
	*ret = TAKE_PTR(server);
	return 0;
}

/* ---- the lease --------------------------------------------------------------------------- */

static void describe_part(const struct server *server, const struct topology *topology, size_t i,
			  struct agent_part *ret)
{
	const struct gpuarb_partition *partition = &server->now.info.partitions[i];
	const struct topology_gpu *gpu = topology_find(topology, partition->kfd_gpu_id);
	struct mask environment = { .words = 0 };

	*ret = (struct agent_part){
		.kfd_gpu_id = partition->kfd_gpu_id,
		.xccs = gpu ? gpu->xccs : 1,
		.n_words = (uint32_t)partition->cu_mask_words,
	};
	memcpy(ret->cu_mask, partition->cu_mask, ret->n_words * sizeof(ret->cu_mask[0]));
	if (server->environment && inherited_mask(server->environment, i, &environment)) {
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

	if (info->n_partitions == 0 || info->n_partitions > AGENT_PARTS)
		return fail(server->follower->gpuarb, -EBADFD,
			    "lease %" PRIu64 " is %s, not granted", server->follower->id,
			    info->state);
	for (size_t i = 0; i < info->n_partitions; i++)
		if (info->partitions[i].cu_mask_words == 0 ||
		    info->partitions[i].cu_mask_words > MASK_WORDS)
			return fail(server->follower->gpuarb, -EPROTO,
				    "a mask of %zu words is none on GPU %s",
				    info->partitions[i].cu_mask_words, info->partitions[i].gpu);

	r = topology_read(server->sys, server->dev, &topology);
	if (r == -ENOMEM)
		return r;
	server->grant = (struct agent_grant){
		.version = AGENT_VERSION,
		.n_parts = (uint32_t)info->n_partitions,
		.lease = server->follower->id,
		.generation = info->generation,
	};
	for (size_t i = 0; i < info->n_partitions; i++)
		describe_part(server, &topology, i, &server->grant.parts[i]);
	free(topology.gpus);
	return 0;
}

/* Takes the lease as it is now. */
static int take(struct server *server)
{
	struct snapshot snapshot = { .info.state = "" };
	int r = follower_read(server->follower, &snapshot);

	if (r < 0)
		return r;
	snapshot_clear(&server->now);
	server->now = snapshot;
	if (strcmp(snapshot.info.state, "ending") == 0)
		return -ENOENT;
	if (snapshot.info.generation == server->grant.generation)
		return 0;
	r = describe(server);
	say(server, "generation %" PRIu64 ", %s", snapshot.info.generation, snapshot.info.state);
	return r;
}

int server_begin(struct server *server)
{
	uint64_t deadline = deadline_after(BEGIN_USEC);
	int r;

	for (;;) {
		r = take(server);
		if (r >= 0 || r == -ENOENT || r == -EBADFD || now_usec() >= deadline)
			break;
		(void)follower_wait(server->follower, NULL, deadline);
	}
	if (r >= 0 && !server->now.info.adaptable)
		return fail(server->follower->gpuarb, -EINVAL, "lease %" PRIu64 " is not adaptable",
			    server->follower->id);
	return r;
}

/* ---- acknowledging ----------------------------------------------------------------------- */

/* Whether anybody with queues is not in the crowd: one that gpuarb-agent cannot reach. */
static bool unfollowed(struct server *server)
{
	const struct search search = { .sys = server->sys,
				       .proc = server->proc,
				       .root = server->root,
				       .members = &server->members,
				       .grant = &server->grant };
	pid_t unfollowed = server->sees_queues ? unfollowed_find(&search) : 0;

	if (unfollowed > 0 && unfollowed != server->unfollowed)
		say(server,
		    "process %d has queues and no agent: generation %" PRIu64 " is not "
		    "acknowledged",
		    (int)unfollowed, server->grant.generation);
	server->unfollowed = unfollowed;
	return unfollowed != 0;
}

/* A lease that is being revoked would be taken at once, which the program does not know of. */
static int acknowledge(struct server *server)
{
	uint64_t generation = server->grant.generation;
	int r;

	server->unfollowed = server->acknowledged < generation ? server->unfollowed : 0;
	if (server->acknowledged >= generation || strcmp(server->now.info.state, "revoking") == 0 ||
	    !members_follows(&server->members, generation) || unfollowed(server))
		return 0;
	r = follower_acknowledge(server->follower, generation);
	if (r >= 0) {
		server->acknowledged = generation;
		say(server, "generation %" PRIu64 " acknowledged", generation);
	}
	return r;
}

/* ---- the processes ----------------------------------------------------------------------- */

/* Of this user, whoever else finds the name. */
static void admit(struct server *server)
{
	int fd = accept4(server->listening, NULL, NULL, SOCK_CLOEXEC);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != getuid() ||
	    watch(server, fd) < 0) {
		close(fd);
		return;
	}
	if (members_join(&server->members, fd, peer.pid) >= 0)
		say(server, "process %d has queues", (int)peer.pid);
}

static void hear(struct server *server, const struct epoll_event *event)
{
	if (event->data.fd == server->listening)
		admit(server);
	else if (members_hear(&server->members, event->data.fd) < 0)
		members_leave(&server->members, event->data.fd);
}

/* 1: the process has ended. */
static int hear_all(struct server *server)
{
	struct epoll_event events[16];
	int n = epoll_wait(server->epoll, events, (int)ARRAY_SIZE(events), 0);

	for (int i = 0; i < n; i++) {
		if (events[i].data.fd == server->process)
			return 1;
		hear(server, &events[i]);
	}
	return 0;
}

/* ---- all together ------------------------------------------------------------------------ */

static int turn(struct server *server)
{
	uint64_t deadline = UINT64_MAX;
	int r;

	if (follower_due(server->follower)) {
		r = take(server);
		if (r == -ENOENT)
			return r;
	}
	members_tell(&server->members, &server->grant);
	if (server->follower->pause == 0) {
		r = acknowledge(server);
		if (r == -ENOENT)
			return r;
	}
	if (server->unfollowed != 0)
		deadline = deadline_after(STRAY_USEC);
	r = follower_wait(server->follower, &server->epoll, deadline);
	return r == -ECANCELED ? hear_all(server) : 0;
}

int server_run(struct server *server)
{
	int r;

	do
		r = turn(server);
	while (r == 0);
	say(server, r > 0 ? "the process has ended" : "the lease has ended");
	return 0;
}
