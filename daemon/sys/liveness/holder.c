/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/holder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sys/liveness/holder-fd.h"

#define BUCKETS 4096U /* lease ids follow each other: id % BUCKETS spreads them evenly */

/* Each edge is told once: told again at every turn of the loop, thousands of ends at a time
 * (a job of many processes that is killed) would cost the square of their number. */
#define HANG_UP EPOLLET
#define ROOM (EPOLLET | EPOLLOUT)
#define EXIT (EPOLLET | EPOLLIN)

/* One thing that keeps a lease alive: our end of a pair, or a process. */
struct keeper {
	struct holders *holders;
	struct keeper *next, **link; /* in its bucket */
	uint64_t lease;
	pid_t pid;    /* 0: a holder */
	bool leaving; /* of a lease that was dropped: what waits is its last record */
	int fd;
	sd_event_source *source;
	void *waiting; /* the latest record, where the queue was full */
	size_t waiting_size;
};

struct holders {
	sd_event *event;
	struct store *store;
	struct holders_callbacks callbacks;
	void *userdata;
	size_t n;
	struct keeper *buckets[BUCKETS];
	struct keeper *leaving[HOLDERS_LEAVING_MAX]; /* a ring: each is alone in its place */
	unsigned next_leaving;
};

static int on_holder(sd_event_source *source, int fd, uint32_t events, void *userdata);
static int on_process(sd_event_source *source, int fd, uint32_t events, void *userdata);

static struct keeper **bucket(struct holders *holders, uint64_t lease)
{
	return &holders->buckets[lease % BUCKETS];
}

static void link_keeper(struct keeper **head, struct keeper *keeper)
{
	keeper->next = *head;
	keeper->link = head;
	if (keeper->next)
		keeper->next->link = &keeper->next;
	*head = keeper;
}

static void unlink_keeper(struct keeper *keeper)
{
	*keeper->link = keeper->next;
	if (keeper->next)
		keeper->next->link = keeper->link;
}

/* What the store knows stays there. */
static void keeper_free(struct keeper *keeper)
{
	if (keeper->link) {
		unlink_keeper(keeper);
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
		      struct keeper **ret)
{
	_cleanup_(keeper_freep) struct keeper *keeper = calloc(1, sizeof(*keeper));
	int r;

	if (!keeper) {
		close(fd);
		return -ENOMEM;
	}
	*keeper = (struct keeper){ .holders = holders, .lease = lease, .pid = pid, .fd = fd };

	r = sd_event_add_io(holders->event, &keeper->source, fd, pid ? EXIT : HANG_UP,
			    pid ? on_process : on_holder, keeper);
	/* Ends are seen before requests that came at the same time. */
	if (r >= 0)
		r = sd_event_source_set_priority(keeper->source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0)
		return r;

	link_keeper(bucket(holders, lease), keeper);
	holders->n++;
	*ret = TAKE_PTR(keeper);
	return 0;
}

static struct keeper *find_process(struct holders *holders, uint64_t lease, pid_t pid)
{
	struct keeper *keeper = *bucket(holders, lease);

	while (keeper && (keeper->lease != lease || keeper->pid != pid))
		keeper = keeper->next;
	return keeper;
}

/* ---- the store ----------------------------------------------------------------------- */

static int keeper_store(const struct keeper *keeper)
{
	char name[STORE_NAME_MAX];

	holder_fd_name(name, keeper->lease, keeper->pid, keeper->fd);
	return store_keep(keeper->holders->store, name, keeper->fd);
}

static void keeper_forget(const struct keeper *keeper)
{
	char name[STORE_NAME_MAX];

	if (keeper->leaving)
		return; /* as was done then */
	holder_fd_name(name, keeper->lease, keeper->pid, keeper->fd);
	store_forget(keeper->holders->store, name);
}

/* ---- records ------------------------------------------------------------------------- */

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

/* ---- ends ---------------------------------------------------------------------------- */

static void keeper_end(struct keeper *keeper)
{
	keeper_forget(keeper);
	keeper_free(keeper);
}

static int on_holder(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct keeper *keeper = userdata;
	struct holders *holders = keeper->holders;
	uint64_t lease = keeper->lease;
	bool leaving;

	(void)source, (void)fd;
	if (!(events & (EPOLLHUP | EPOLLERR))) {
		send_waiting(keeper);
		if (keeper->leaving && !keeper->waiting)
			keeper_free(keeper);
		return 0;
	}

	/* Gone before the callback, which may drop the rest of the lease. */
	leaving = keeper->leaving;
	keeper_end(keeper);
	if (!leaving)
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
	keeper_end(keeper);
	holders->callbacks.bound_gone(holders->userdata, lease, pid);
	return 0;
}

/* ---- from start to end --------------------------------------------------------------- */

int holders_new(sd_event *event, struct store *store, const struct holders_callbacks *callbacks,
		void *userdata, struct holders **ret)
{
	struct holders *holders = calloc(1, sizeof(*holders));

	if (!holders)
		return -ENOMEM;

	holders->event = sd_event_ref(event);
	holders->store = store;
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
	for (size_t i = 0; i < HOLDERS_LEAVING_MAX; i++)
		if (holders->leaving[i])
			keeper_free(holders->leaving[i]);
	sd_event_unref(holders->event);
	free(holders);
	return NULL;
}

/* Takes fd, also on failure. */
static int keep(struct holders *holders, uint64_t lease, pid_t pid, int fd)
{
	struct keeper *keeper;
	int r;

	r = keeper_new(holders, lease, pid, fd, &keeper);
	if (r < 0)
		return r;
	r = keeper_store(keeper);
	if (r < 0)
		keeper_free(keeper);
	return r;
}

int holders_add(struct holders *holders, uint64_t lease)
{
	int pair[2], r;

	r = holder_fd_pair(pair);
	if (r < 0)
		return r;
	r = keep(holders, lease, 0, pair[0]);
	if (r < 0) {
		close(pair[1]);
		return r;
	}
	return pair[1];
}

int holders_bind(struct holders *holders, uint64_t lease, int pidfd, pid_t pid)
{
	int fd;

	if (find_process(holders, lease, pid))
		return -EEXIST;
	fd = holder_fd_copy(pidfd, pid);
	return fd < 0 ? fd : keep(holders, lease, pid, fd);
}

int holders_process(const struct holders *holders, uint64_t lease, pid_t pid)
{
	for (const struct keeper *k = holders->buckets[lease % BUCKETS]; k && pid; k = k->next)
		if (k->lease == lease && k->pid == pid)
			return k->fd;
	return -1;
}

void holders_unbind(struct holders *holders, uint64_t lease, pid_t pid)
{
	struct keeper *keeper = find_process(holders, lease, pid);

	if (keeper)
		keeper_end(keeper);
}

int holders_adopt(struct holders *holders, uint64_t lease, pid_t pid, int fd)
{
	struct keeper *keeper;
	int r = 0;

	if (!holder_fd_is(fd, pid))
		r = -EINVAL;
	else if (pid && find_process(holders, lease, pid))
		r = -EEXIST;
	if (r < 0) {
		close(fd);
		return r;
	}
	return keeper_new(holders, lease, pid, fd, &keeper);
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

/* At most so many: the one that has been here the longest makes room. */
static void let_leave(struct keeper *keeper)
{
	struct holders *holders = keeper->holders;
	struct keeper **place = &holders->leaving[holders->next_leaving++ % HOLDERS_LEAVING_MAX];

	if (*place)
		keeper_free(*place);
	unlink_keeper(keeper);
	link_keeper(place, keeper);
	keeper->leaving = true;
}

void holders_drop(struct holders *holders, uint64_t lease)
{
	struct keeper *keeper, *next;

	for (keeper = *bucket(holders, lease); keeper; keeper = next) {
		next = keeper->next;
		if (keeper->lease != lease)
			continue;
		keeper_forget(keeper);
		if (keeper->waiting)
			let_leave(keeper);
		else
			keeper_free(keeper);
	}
}

size_t holders_count(const struct holders *holders)
{
	return holders->n;
}
