/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* What one holder's queue may take of kernel memory: a few of the largest records. Readers
 * want the latest one only, and there can be thousands of holders that nobody reads. */
#define QUEUE_BYTES 32768

#define BUCKETS 4096U /* lease ids follow each other: id % BUCKETS spreads them evenly */

/* Each edge is told once: told again at every turn of the loop, thousands of ends at a time
 * (a job of many processes that is killed) would cost the square of their number. */
#define HANG_UP EPOLLET
#define ROOM    (EPOLLET | EPOLLOUT)
#define EXIT    (EPOLLET | EPOLLIN)

/* One thing that keeps a lease alive: our end of a pair, or a process. */
struct keeper {
	struct holders *holders;
	struct keeper *next, **link; /* in its bucket */
	uint64_t lease;
	pid_t pid;               /* 0: a holder */
	int fd;
	sd_event_source *source;
	void *waiting;           /* the latest record, where the queue was full */
	size_t waiting_size;
};

struct holders {
	sd_event *event;
	struct holders_callbacks callbacks;
	void *userdata;
	size_t n;
	struct keeper *buckets[BUCKETS];
};

static struct keeper **bucket(struct holders *holders, uint64_t lease)
{
	return &holders->buckets[lease % BUCKETS];
}

/* Takes it out of its bucket, too. */
static void keeper_free(struct keeper *keeper)
{
	if (keeper->link) {
		*keeper->link = keeper->next;
		if (keeper->next)
			keeper->next->link = keeper->link;
		keeper->holders->n--;
	}
	sd_event_source_disable_unref(keeper->source);
	if (keeper->fd >= 0)
		close(keeper->fd);
	free(keeper->waiting);
	free(keeper);
}

static void keeper_freep(struct keeper *const *keeper)
{
	if (*keeper)
		keeper_free(*keeper);
}

/* Takes fd, also on failure. */
static int keeper_new(struct holders *holders, uint64_t lease, pid_t pid, int fd,
		      uint32_t events, sd_event_io_handler_t on_event)
{
	_cleanup_(keeper_freep) struct keeper *keeper = calloc(1, sizeof(*keeper));
	struct keeper **head = bucket(holders, lease);
	int r;

	if (!keeper) {
		close(fd);
		return -ENOMEM;
	}
	*keeper = (struct keeper){ .holders = holders, .lease = lease, .pid = pid, .fd = fd };

	r = sd_event_add_io(holders->event, &keeper->source, fd, events, on_event, keeper);
	if (r < 0)
		return r;

	keeper->next = *head;
	keeper->link = head;
	if (keeper->next)
		keeper->next->link = &keeper->next;
	*head = TAKE_PTR(keeper);
	holders->n++;
	return 0;
}

static void keep_waiting(struct keeper *keeper, const void *record, size_t size)
{
	void *copy = malloc(size);

	/* Without memory the older one stays: the reader still learns that there is news,
	 * and what is true now it can ask. */
	if (!copy)
		return;
	memcpy(copy, record, size);
	free(keeper->waiting);
	keeper->waiting = copy;
	keeper->waiting_size = size;
	sd_event_source_set_io_events(keeper->source, ROOM);
}

/* Returns whether it is sent, or never will be. */
static bool send_record(const struct keeper *keeper, const void *record, size_t size)
{
	return send(keeper->fd, record, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void send_waiting(struct keeper *keeper)
{
	if (!keeper->waiting || !send_record(keeper, keeper->waiting, keeper->waiting_size))
		return;
	free(keeper->waiting);
	keeper->waiting = NULL;
	sd_event_source_set_io_events(keeper->source, HANG_UP);
}

static int on_holder(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct keeper *keeper = userdata;
	struct holders *holders = keeper->holders;
	uint64_t lease = keeper->lease;

	(void)source, (void)fd;
	if (!(events & (EPOLLHUP | EPOLLERR))) {
		send_waiting(keeper);
		return 0;
	}

	/* Gone before the callback, which may drop the rest of the lease. */
	keeper_free(keeper);
	holders->callbacks.holder_gone(holders->userdata, lease);
	return 0;
}

static int on_process(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct keeper *keeper = userdata;
	struct holders *holders = keeper->holders;
	uint64_t lease = keeper->lease;
	pid_t pid = keeper->pid;

	(void)source, (void)fd, (void)events;
	keeper_free(keeper);
	holders->callbacks.bound_gone(holders->userdata, lease, pid);
	return 0;
}

int holders_new(sd_event *event, const struct holders_callbacks *callbacks, void *userdata,
		struct holders **ret)
{
	struct holders *holders = calloc(1, sizeof(*holders));

	if (!holders)
		return -ENOMEM;

	holders->event = sd_event_ref(event);
	holders->callbacks = *callbacks;
	holders->userdata = userdata;
	*ret = holders;
	return 0;
}

struct holders *holders_free(struct holders *holders)
{
	if (!holders)
		return NULL;

	for (size_t i = 0; i < BUCKETS; i++)
		while (holders->buckets[i])
			keeper_free(holders->buckets[i]);
	sd_event_unref(holders->event);
	free(holders);
	return NULL;
}

int holders_add(struct holders *holders, uint64_t lease)
{
	const int queue = QUEUE_BYTES;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;

	/* From here on the other end can send nothing, and when it goes, however it does,
	 * both directions are shut down: EPOLLHUP, which comes unasked. EPOLLRDHUP would
	 * be there for ever. */
	r = 0;
	if (shutdown(pair[0], SHUT_RD) < 0 ||
	    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue)) < 0) {
		r = -errno;
		close(pair[0]);
	}
	if (r == 0)
		r = keeper_new(holders, lease, 0, pair[0], HANG_UP, on_holder);
	if (r < 0) {
		close(pair[1]);
		return r;
	}
	return pair[1];
}

int holders_bind(struct holders *holders, uint64_t lease, int pidfd, pid_t pid)
{
	int fd = fcntl(pidfd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return -errno;
	return keeper_new(holders, lease, pid, fd, EXIT, on_process);
}

void holders_tell(struct holders *holders, uint64_t lease, const void *record, size_t size)
{
	for (struct keeper *keeper = *bucket(holders, lease); keeper; keeper = keeper->next) {
		if (keeper->lease != lease || keeper->pid != 0)
			continue;
		/* Not past one that waits. */
		if (keeper->waiting || !send_record(keeper, record, size))
			keep_waiting(keeper, record, size);
	}
}

void holders_drop(struct holders *holders, uint64_t lease)
{
	struct keeper *keeper, *next;

	for (keeper = *bucket(holders, lease); keeper; keeper = next) {
		next = keeper->next;
		if (keeper->lease == lease)
			keeper_free(keeper);
	}
}

size_t holders_count(const struct holders *holders)
{
	return holders->n;
}
