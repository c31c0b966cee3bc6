/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "util/base.h"

static void client_free(struct front_client *client)
{
	if (client->pidfd >= 0)
		close(client->pidfd);
	if (client->memory_fd >= 0)
		close(client->memory_fd);
	free(client);
}
DEFINE_CLEANUP(struct front_client *, client_free)

/* mem_rw() in fs/proc/base.c: a memory that nobody uses any more reads as empty; an address
 * where nothing is mapped is EIO. */
static bool memory_gone(const struct front_client *client)
{
	char byte;

	return pread(client->memory_fd, &byte, 1, 4096) == 0;
}

static bool process_gone(const struct front_client *client)
{
	struct pollfd poll_fd = { .fd = client->pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0 || memory_gone(client);
}

static void client_ended(struct front *front, struct front_client *client)
{
	struct front_client **at = &front->clients;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	sim_exit(front->sim, client->pid, front_now());
	client->ended = true;
	client->process = NULL;
	epoll_ctl(front->epoll_fd, EPOLL_CTL_DEL, client->pidfd, NULL);
	if (client->handles == 0)
		client_free(client);
}

static struct front_client *find(struct front *front, pid_t pid)
{
	for (struct front_client *client = front->clients; client; client = client->next)
		if (client->pid == pid)
			return client;
	return NULL;
}

static int client_new(struct front *front, pid_t pid, struct front_client **ret)
{
	_cleanup_(client_freep) struct front_client *client = calloc(1, sizeof(*client));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = client };
	char path[64];
	int r;

	if (!client)
		return -ENOMEM;
	client->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	client->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	client->pidfd = pidfd_open(pid, 0);
	if (client->pidfd < 0 || client->memory_fd < 0)
		return -errno;
	r = sim_open(front->sim, pid, &client->process);
	if (r < 0)
		return r;
	if (epoll_ctl(front->epoll_fd, EPOLL_CTL_ADD, client->pidfd, &event) < 0) {
		r = -errno;
		sim_exit(front->sim, pid, front_now());
		return r;
	}
	client->next = front->clients;
	front->clients = client;
	*ret = TAKE_PTR(client);
	return 0;
}

struct front_client *front_find(struct front *front, pid_t tid)
{
	pid_t pid;

	return front_process_of(tid, &pid) < 0 ? NULL : find(front, pid);
}

int front_open(struct front *front, pid_t tid, struct front_client **ret)
{
	struct front_client *client;
	pid_t pid;
	int r;

	r = front_process_of(tid, &pid);
	if (r < 0)
		return r;
	client = find(front, pid);
	if (client && process_gone(client)) {
		client_ended(front, client);
		client = NULL;
	}
	if (!client) {
		r = client_new(front, pid, &client);
		if (r < 0)
			return r;
	}
	client->handles++;
	*ret = client;
	return 0;
}

void front_close(struct front *front, struct front_client *client)
{
	client->handles--;
	if (client->handles > 0)
		return;
	if (client->ended)
		client_free(client);
	else if (memory_gone(client))
		client_ended(front, client);
}

int front_ioctl(struct front *front, struct front_client *client, struct sim_process **file,
		pid_t tid, uint64_t request, unsigned cmd, void *argument, size_t size)
{
	struct sim_process *process;
	pid_t pid;
	int r;

	if (!client->ended && memory_gone(client))
		client_ended(front, client);
	if (client->ended)
		return -EBADF;
	r = front_process_of(tid, &pid);
	if (r < 0)
		return r;
	if (!file)
		return sim_ioctl(front->sim, client->process, pid, request, cmd, argument, size,
				 front_now());
	process = *file ? *file : client->process;
	r = sim_ioctl_file(front->sim, &process, pid, request, cmd, argument, size, front_now());
	*file = process == client->process ? NULL : process;
	return r;
}

void front_kill_clients(struct front *front)
{
	for (struct front_client *client = front->clients; client; client = client->next)
		pidfd_send_signal(client->pidfd, SIGKILL, NULL, 0);
}

void front_bury(struct front *front)
{
	for (struct front_client *client = front->clients, *next; client; client = next) {
		next = client->next;
		if (process_gone(client))
			client_ended(front, client);
	}
}
