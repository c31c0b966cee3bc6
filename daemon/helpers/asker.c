/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/asker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "helpers/helper.h"
#include "util/fd.h"
#include "util/text.h"

struct pending {
	struct asker_request request;
	size_t size; /* of its body */
	int fd;      /* -1: none, or it was sent */
	bool sent;
	uint64_t deadline;
	STAILQ_ENTRY(pending) link;
	_Alignas(max_align_t) unsigned char body[];
};

struct asker {
	struct helper connection;
	const struct asker_helper *helper;
	uint64_t patience_usec;
	asker_done_t *done;
	asker_lost_t *lost;
	void *userdata;

	bool full;                    /* the socket is full */
	bool leaving;                 /* the helper reads no more and will hang up */
	bool reused;                  /* the helper has answered on this connection */
	STAILQ_HEAD(, pending) queue; /* those that were sent are first */
	size_t n;
	int fds[ASKER_FDS_MAX]; /* of the answer */
	size_t n_fds;
	_Alignas(max_align_t) char answer[];
};

/* ---- the queue ------------------------------------------------------------------------- */

static void pending_free(struct pending *pending)
{
	close_fd(&pending->fd);
	free(pending);
}
DEFINE_CLEANUP(struct pending *, pending_free)

static struct pending *take_first(struct asker *asker)
{
	struct pending *first = STAILQ_FIRST(&asker->queue);

	STAILQ_REMOVE_HEAD(&asker->queue, link);
	asker->n--;
	return first;
}

static void forget_all(struct asker *asker)
{
	while (asker->n > 0)
		pending_free(take_first(asker));
}

/* For the first request: all requests have the same time. */
static void set_timer(struct asker *asker)
{
	const struct pending *first = STAILQ_FIRST(&asker->queue);

	if (first)
		sd_event_source_set_time(asker->connection.timer, first->deadline);
	sd_event_source_set_enabled(asker->connection.timer,
				    first ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void end_first(struct asker *asker, int r, const void *answer, const char *why)
{
	_cleanup_(pending_freep) struct pending *pending = take_first(asker);

	set_timer(asker);
	asker->done(asker->userdata, &pending->request, r, answer, why);
}

/* Ends the first n requests. A callback may add requests behind them. */
static void fail_first(struct asker *asker, size_t n, int r, const char *why)
{
	while (n-- > 0)
		end_first(asker, r, NULL, why);
}

/* Those that are sent again may have been carried out or not. */
static size_t count_sent(const struct asker *asker, bool again)
{
	struct pending *pending = STAILQ_FIRST(&asker->queue);
	size_t n = 0;

	for (; pending && pending->sent; pending = STAILQ_NEXT(pending, link)) {
		pending->sent = !again;
		n += !again;
	}
	return n;
}

/* ---- the connection -------------------------------------------------------------------- */

static void hang_up(struct asker *asker)
{
	helper_close(&asker->connection);
	asker->full = asker->leaving = asker->reused = false;
}

/* Sends until the socket is full. A helper that reads no more hangs up, which is an event. */
static void flush(struct asker *asker)
{
	struct pending *pending;
	int r = 0;

	STAILQ_FOREACH(pending, &asker->queue, link)
	{
		if (pending->sent || asker->leaving)
			continue;
		r = send_with_fd(asker->connection.fd, pending->body, pending->size, pending->fd);
		if (r < 0)
			break;
		pending->sent = true;
		close_fd(&pending->fd);
	}
	asker->full = r == -EAGAIN;
	if (r < 0 && !asker->full) {
		asker->leaving = true;
		shutdown(asker->connection.fd, SHUT_WR);
	}
	sd_event_source_set_io_events(asker->connection.io, EPOLLIN | (asker->full ? EPOLLOUT : 0));
}

/* Requests that were sent may have been carried out or not: they fail, unless they can be repeated: an idle
 * helper ends, maybe in the moment of the next request. The others are sent to the next helper. */
static void lose(struct asker *asker, int r, const char *what)
{
	bool again = r == -ECONNRESET && asker->reused && asker->helper->repeats;
	size_t sent = count_sent(asker, again), waiting = asker->n - sent;
	char why[256];

	hang_up(asker);
	refuse(why, sizeof(why), r, "%s %s", asker->helper->name, what);
	fail_first(asker, sent, r, why);
	if (asker->lost)
		asker->lost(asker->userdata);
	if (waiting == 0 || asker->connection.fd >= 0) /* a callback has connected and sent them */
		return;
	r = helper_open(&asker->connection, why, sizeof(why));
	if (r < 0)
		fail_first(asker, waiting, r, why);
	else
		flush(asker);
}

static void close_fds(struct asker *asker)
{
	while (asker->n_fds > 0)
		close(asker->fds[--asker->n_fds]);
}

size_t asker_take_fds(struct asker *asker, int ret[static ASKER_FDS_MAX])
{
	size_t n = asker->n_fds;

	memcpy(ret, asker->fds, n * sizeof(*ret));
	asker->n_fds = 0;
	return n;
}

/* ---- events ---------------------------------------------------------------------------- */

/* Returns whether there may be more. */
static bool receive(struct asker *asker)
{
	const struct pending *first = STAILQ_FIRST(&asker->queue);
	int flags = MSG_TRUNC;
	ssize_t n = receive_with_fds(asker->connection.fd, asker->answer,
				     asker->helper->answer_size, &flags, asker->fds,
				     asker->helper->answer_fds, &asker->n_fds);

	if (n == -EAGAIN || n == -EINTR)
		return false;
	if (n <= 0) {
		close_fds(asker);
		lose(asker, -ECONNRESET, "ended before it answered");
		return false;
	}
	/* The helper may refuse the connection before it gets a request. */
	if (!first || flags & MSG_CTRUNC ||
	    !asker->helper->is_valid(asker->answer, (size_t)n, asker->n_fds, first->body)) {
		close_fds(asker);
		lose(asker, -EBADMSG, "sent an invalid answer");
		return false;
	}
	if (!asker->helper->lasts)
		hang_up(asker);
	asker->reused = true;
	end_first(asker, 0, asker->answer, "");
	close_fds(asker);
	return asker->connection.fd >= 0;
}

static int on_io(sd_event_source *, int, uint32_t events, void *userdata)
{
	struct asker *asker = userdata;

	if (events & ~(uint32_t)EPOLLOUT)
		while (receive(asker))
			;
	if (asker->connection.fd >= 0 && asker->full)
		flush(asker);
	return 0;
}

/* The helper does not answer. The requests that were not sent to it keep their own deadlines. */
static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	struct asker *asker = userdata;
	char why[256];

	refuse(why, sizeof(why), 0, "%s read no request in time", asker->helper->name);
	if (!STAILQ_FIRST(&asker->queue)->sent)
		end_first(asker, -ETIMEDOUT, NULL, why);
	lose(asker, -ETIMEDOUT, "did not answer in time");
	return 0;
}

/* ---- requests -------------------------------------------------------------------------- */

static int pending_new(const void *request, size_t request_size, int fd, uint64_t tag,
		       struct pending **ret, char *why, size_t size)
{
	struct pending *pending = malloc(sizeof(*pending) + request_size);

	if (!pending) {
		refuse(why, size, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	*pending = (struct pending){ .request = { tag, pending->body },
				     .size = request_size,
				     .fd = -1 };
	memcpy(pending->body, request, request_size);
	*ret = pending;
	if (fd >= 0)
		pending->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || pending->fd >= 0)
		return 0;
	return refuse(why, size, -errno, "cannot keep a copy of the file descriptor: %s",
		      strerror(errno));
}

int asker_ask(struct asker *asker, const void *request, size_t request_size, int fd, uint64_t tag,
	      char *why, size_t size)
{
	_cleanup_(pending_freep) struct pending *pending = NULL;
	int r;

	if (asker->n == asker->helper->most)
		return refuse(why, size, -ENOBUFS, "%zu requests wait for %s already", asker->n,
			      asker->helper->name);
	r = pending_new(request, request_size, fd, tag, &pending, why, size);
	if (r >= 0)
		r = sd_event_now(asker->connection.event, CLOCK_MONOTONIC, &pending->deadline);
	if (r >= 0 && asker->connection.fd < 0)
		r = helper_open(&asker->connection, why, size);
	if (r < 0)
		return r;
	pending->deadline += asker->patience_usec;
	STAILQ_INSERT_TAIL(&asker->queue, pending, link);
	asker->n++;
	TAKE_PTR(pending);
	set_timer(asker);
	if (!asker->full)
		flush(asker);
	return 0;
}

int asker_tell(struct asker *asker, const void *request, size_t request_size, char *why,
	       size_t size)
{
	_cleanup_fd_ int fd = helper_connect(&asker->connection, why, size);
	int r = fd < 0 ? fd : send_with_fd(fd, request, request_size, -1);

	hang_up(asker);
	forget_all(asker);
	set_timer(asker);
	if (fd >= 0 && r < 0)
		refuse(why, size, r, "%s: %s", asker->connection.socket, strerror(-r));
	return r;
}

/* ---- life ------------------------------------------------------------------------------ */

int asker_new(sd_event *event, const struct asker_helper *helper, const char *socket,
	      uint64_t patience_usec, asker_done_t *done, asker_lost_t *on_lost, void *userdata,
	      struct asker **ret)
{
	_cleanup_(asker_freep) struct asker *asker = calloc(1,
							    sizeof(*asker) + helper->answer_size);
	int r;

	if (!asker)
		return -ENOMEM;
	STAILQ_INIT(&asker->queue);
	asker->helper = helper;
	asker->patience_usec = patience_usec;
	asker->done = done;
	asker->lost = on_lost;
	asker->userdata = userdata;
	r = helper_init(&asker->connection, event, SOCK_SEQPACKET, socket, helper->name, on_io,
			on_timer, asker);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(asker);
	return 0;
}

struct asker *asker_free(struct asker *asker)
{
	if (!asker)
		return NULL;

	forget_all(asker);
	helper_done(&asker->connection);
	free(asker);
	return NULL;
}
