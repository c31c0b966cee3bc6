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
struct holder_entry {
	struct holders *holders;
	struct holder_entry *next, **link; /* in its bucket */
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
	struct holder_entry *buckets[BUCKETS];
	struct holder_entry *leaving[HOLDERS_LEAVING_MAX]; /* a ring: each is alone in its place */
	unsigned next_leaving;
};

static int on_holder(sd_event_source *source, int fd, uint32_t events, void *userdata);
static int on_process(sd_event_source *source, int fd, uint32_t events, void *userdata);

static struct holder_entry **bucket(struct holders *holders, uint64_t lease)
{
	return &holders->buckets[lease % BUCKETS];
}

static void link_holder_entry(struct holder_entry **head, struct holder_entry *holder_entry)
{
	holder_entry->next = *head;
	holder_entry->link = head;
	if (holder_entry->next)
		holder_entry->next->link = &holder_entry->next;
	*head = holder_entry;
}

static void unlink_holder_entry(struct holder_entry *holder_entry)
{
	*holder_entry->link = holder_entry->next;
	if (holder_entry->next)
		holder_entry->next->link = holder_entry->link;
}

/* What the store knows stays there. */
static void holder_entry_free(struct holder_entry *holder_entry)
{
	if (holder_entry->link) {
		unlink_holder_entry(holder_entry);
		holder_entry->holders->n--;
	}
	sd_event_source_disable_unref(holder_entry->source);
	if (holder_entry->fd >= 0)
		close(holder_entry->fd);
	free(holder_entry->waiting);
	free(holder_entry);
}

static void holder_entry_freep(struct holder_entry *const *holder_entry)
{
	if (*holder_entry)
		holder_entry_free(*holder_entry);
}

/* Takes fd, also on failure. */
static int holder_entry_new(struct holders *holders, uint64_t lease, pid_t pid, int fd,
			    struct holder_entry **ret)
{
	_cleanup_(holder_entry_freep) struct holder_entry *holder_entry =
		calloc(1, sizeof(*holder_entry));
	int r;

	if (!holder_entry) {
		close(fd);
		return -ENOMEM;
	}
	*holder_entry =
		(struct holder_entry){ .holders = holders, .lease = lease, .pid = pid, .fd = fd };

	r = sd_event_add_io(holders->event, &holder_entry->source, fd, pid ? EXIT : HANG_UP,
			    pid ? on_process : on_holder, holder_entry);
	/* Ends are seen before requests that came at the same time. */
	if (r >= 0)
		r = sd_event_source_set_priority(holder_entry->source, SD_EVENT_PRIORITY_IMPORTANT);
	if (r < 0)
		return r;

	link_holder_entry(bucket(holders, lease), holder_entry);
	holders->n++;
	*ret = TAKE_PTR(holder_entry);
	return 0;
}

static struct holder_entry *find_process(struct holders *holders, uint64_t lease, pid_t pid)
{
	struct holder_entry *holder_entry = *bucket(holders, lease);

	while (holder_entry && (holder_entry->lease != lease || holder_entry->pid != pid))
		holder_entry = holder_entry->next;
	return holder_entry;
}

/* ---- the store ----------------------------------------------------------------------- */

static int holder_entry_store(const struct holder_entry *holder_entry)
{
	char name[STORE_NAME_MAX];

	holder_fd_name(name, holder_entry->lease, holder_entry->pid, holder_entry->fd);
	return store_keep(holder_entry->holders->store, name, holder_entry->fd);
}

static void holder_entry_forget(const struct holder_entry *holder_entry)
{
	char name[STORE_NAME_MAX];

	if (holder_entry->leaving)
		return; /* as was done then */
	holder_fd_name(name, holder_entry->lease, holder_entry->pid, holder_entry->fd);
	store_forget(holder_entry->holders->store, name);
}

/* ---- records ------------------------------------------------------------------------- */

static void keep_waiting(struct holder_entry *holder_entry, const void *record, size_t size)
{
	void *copy = malloc(size);

	/* Without memory the older one stays: the reader still learns that there is news,
	 * and what is true now it can ask. */
	if (!copy)
		return;
	memcpy(copy, record, size);
	free(holder_entry->waiting);
	holder_entry->waiting = copy;
	holder_entry->waiting_size = size;
	sd_event_source_set_io_events(holder_entry->source, ROOM);
}

/* Returns whether it is sent, or never will be. */
static bool send_record(const struct holder_entry *holder_entry, const void *record, size_t size)
{
	return send(holder_entry->fd, record, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static void send_waiting(struct holder_entry *holder_entry)
{
	if (!holder_entry->waiting ||
	    !send_record(holder_entry, holder_entry->waiting, holder_entry->waiting_size))
		return;
	free(holder_entry->waiting);
	holder_entry->waiting = NULL;
	sd_event_source_set_io_events(holder_entry->source, HANG_UP);
}

/* ---- ends ---------------------------------------------------------------------------- */

static void holder_entry_end(struct holder_entry *holder_entry)
{
	holder_entry_forget(holder_entry);
	holder_entry_free(holder_entry);
}

static int on_holder(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct holder_entry *holder_entry = userdata;
	struct holders *holders = holder_entry->holders;
	uint64_t lease = holder_entry->lease;
	bool leaving;

	(void)source, (void)fd;
	if (!(events & (EPOLLHUP | EPOLLERR))) {
		send_waiting(holder_entry);
		if (holder_entry->leaving && !holder_entry->waiting)
			holder_entry_free(holder_entry);
		return 0;
	}

	/* Gone before the callback, which may drop the rest of the lease. */
	leaving = holder_entry->leaving;
	holder_entry_end(holder_entry);
	if (!leaving)
		holders->callbacks.holder_gone(holders->userdata, lease);
	return 0;
}

static int on_process(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct holder_entry *holder_entry = userdata;
	struct holders *holders = holder_entry->holders;
	uint64_t lease = holder_entry->lease;
	pid_t pid = holder_entry->pid;

	(void)source, (void)fd, (void)events;
	holder_entry_end(holder_entry);
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
			holder_entry_free(holders->buckets[i]);
	for (size_t i = 0; i < HOLDERS_LEAVING_MAX; i++)
		if (holders->leaving[i])
			holder_entry_free(holders->leaving[i]);
	sd_event_unref(holders->event);
	free(holders);
	return NULL;
}

/* Takes fd, also on failure. */
static int keep(struct holders *holders, uint64_t lease, pid_t pid, int fd)
{
	struct holder_entry *holder_entry;
	int r;

	r = holder_entry_new(holders, lease, pid, fd, &holder_entry);
	if (r < 0)
		return r;
	r = holder_entry_store(holder_entry);
	if (r < 0)
		holder_entry_free(holder_entry);
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
	for (const struct holder_entry *k = holders->buckets[lease % BUCKETS]; k && pid;
	     k = k->next)
		if (k->lease == lease && k->pid == pid)
			return k->fd;
	return -1;
}

void holders_unbind(struct holders *holders, uint64_t lease, pid_t pid)
{
	struct holder_entry *holder_entry = find_process(holders, lease, pid);

	if (holder_entry)
		holder_entry_end(holder_entry);
}

int holders_adopt(struct holders *holders, uint64_t lease, pid_t pid, int fd)
{
	struct holder_entry *holder_entry;
	int r = 0;

	if (!holder_fd_is(fd, pid))
		r = -EINVAL;
	else if (pid && find_process(holders, lease, pid))
		r = -EEXIST;
	if (r < 0) {
		close(fd);
		return r;
	}
	return holder_entry_new(holders, lease, pid, fd, &holder_entry);
}

void holders_tell(struct holders *holders, uint64_t lease, const void *record, size_t size)
{
	for (struct holder_entry *holder_entry = *bucket(holders, lease); holder_entry;
	     holder_entry = holder_entry->next) {
		if (holder_entry->lease != lease || holder_entry->pid != 0)
			continue;
		/* Not past one that waits. */
		if (holder_entry->waiting || !send_record(holder_entry, record, size))
			keep_waiting(holder_entry, record, size);
	}
}

/* At most so many: the one that has been here the longest makes room. */
static void let_leave(struct holder_entry *holder_entry)
{
	struct holders *holders = holder_entry->holders;
	struct holder_entry **place =
		&holders->leaving[holders->next_leaving++ % HOLDERS_LEAVING_MAX];

	if (*place)
		holder_entry_free(*place);
	unlink_holder_entry(holder_entry);
	link_holder_entry(place, holder_entry);
	holder_entry->leaving = true;
}

void holders_drop(struct holders *holders, uint64_t lease)
{
	struct holder_entry *holder_entry, *next;

	for (holder_entry = *bucket(holders, lease); holder_entry; holder_entry = next) {
		next = holder_entry->next;
		if (holder_entry->lease != lease)
			continue;
		holder_entry_forget(holder_entry);
		if (holder_entry->waiting)
			let_leave(holder_entry);
		else
			holder_entry_free(holder_entry);
	}
}

size_t holders_count(const struct holders *holders)
{
	return holders->n;
}
