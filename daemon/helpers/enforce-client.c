/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce-client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/helper.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/text.h"

struct request {
	uint64_t tag;
	struct enforce_request body;
	int pidfd; /* -1: none */
	bool sent;
	uint64_t deadline;
	STAILQ_ENTRY(request) link;
};

struct enforce {
	struct helper helper;
	uint64_t patience_usec;
	enforce_done_t *done;
	enforce_lost_t *lost;
	void *userdata;

	bool full;                    /* the socket is full */
	bool leaving;                 /* the helper reads no more and will hang up */
	STAILQ_HEAD(, request) queue; /* those that were sent are first */
	size_t n;
};

/* ---- the queue ------------------------------------------------------------------------- */

static void request_free(struct request *request)
{
	if (request->pidfd >= 0)
		close(request->pidfd);
	free(request);
}
DEFINE_CLEANUP(struct request *, request_free)

static struct request *take_first(struct enforce *enforce)
{
	struct request *first = STAILQ_FIRST(&enforce->queue);

	STAILQ_REMOVE_HEAD(&enforce->queue, link);
	enforce->n--;
	return first;
}

/* For the first request: all requests have the same time. */
static void set_timer(struct enforce *enforce)
{
	const struct request *first = STAILQ_FIRST(&enforce->queue);

	if (first)
		sd_event_source_set_time(enforce->helper.timer, first->deadline);
	sd_event_source_set_enabled(enforce->helper.timer, first ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static void answer(struct enforce *enforce, int r, const char *sentence)
{
	_cleanup_(request_freep) struct request *request = take_first(enforce);

	set_timer(enforce);
	enforce->done(enforce->userdata, request->tag, &request->body, r, sentence);
}

/* Answers the first n requests. A callback may add requests behind them. */
static void answer_first(struct enforce *enforce, size_t n, int r, const char *sentence)
{
	while (n-- > 0)
		answer(enforce, r, sentence);
}

static size_t count_sent(const struct enforce *enforce)
{
	size_t n = 0;

	for (const struct request *request = STAILQ_FIRST(&enforce->queue);
	     request && request->sent; request = STAILQ_NEXT(request, link))
		n++;
	return n;
}

/* ---- the connection -------------------------------------------------------------------- */

static void hang_up(struct enforce *enforce)
{
	helper_close(&enforce->helper);
	enforce->full = enforce->leaving = false;
}

/* Sends until the socket is full. A helper that reads no more hangs up, which is an event. */
static void flush(struct enforce *enforce)
{
	int r = 0;

	for (struct request *request = STAILQ_FIRST(&enforce->queue); request;
	     request = STAILQ_NEXT(request, link)) {
		if (request->sent || enforce->leaving)
			continue;
		r = send_with_fd(enforce->helper.fd, &request->body, sizeof(request->body),
				 request->pidfd);
		if (r < 0)
			break;
		request->sent = true;
		if (request->pidfd >= 0)
			close(request->pidfd);
		request->pidfd = -1;
	}
	enforce->full = r == -EAGAIN;
	if (r < 0 && !enforce->full) {
		enforce->leaving = true;
		shutdown(enforce->helper.fd, SHUT_WR);
	}
	sd_event_source_set_io_events(enforce->helper.io, EPOLLIN | (enforce->full ? EPOLLOUT : 0));
}

/* Requests that were sent may have been carried out or not: they fail. The others are sent to the next
 * helper. */
static void lost(struct enforce *enforce, int r, const char *sentence)
{
	size_t sent = count_sent(enforce), waiting = enforce->n - sent;
	char why[256];
	int again;

	hang_up(enforce);
	answer_first(enforce, sent, r, sentence);
	enforce->lost(enforce->userdata);
	if (waiting == 0 || enforce->helper.fd >= 0) /* a callback has connected and sent them */
		return;

	again = helper_open(&enforce->helper, why, sizeof(why));
	if (again < 0)
		answer_first(enforce, waiting, again, why);
	else
		flush(enforce);
}

/* ---- events ---------------------------------------------------------------------------- */

/* Returns whether there may be more. */
static bool receive(struct enforce *enforce)
{
	struct enforce_answer packet;
	ssize_t n = recv(enforce->helper.fd, &packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		lost(enforce, -ECONNRESET, "gpuarb-enforce ended before it answered");
		return false;
	}
	/* The helper may refuse the connection before it gets a request. */
	if (enforce->n == 0 || enforce_answer_check(&packet, (size_t)n) < 0) {
		lost(enforce, -EBADMSG, "gpuarb-enforce sent an invalid answer");
		return false;
	}
	answer(enforce, packet.r, packet.sentence);
	return enforce->helper.fd >= 0;
}

static int on_io(sd_event_source *, int, uint32_t events, void *userdata)
{
	struct enforce *enforce = userdata;

	if (events & ~(uint32_t)EPOLLOUT)
		while (receive(enforce))
			;
	if (enforce->helper.fd >= 0 && enforce->full)
		flush(enforce);
	return 0;
}

/* The helper does not answer. The requests that were not sent to it keep their own deadlines. */
static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	struct enforce *enforce = userdata;

	if (!STAILQ_FIRST(&enforce->queue)->sent)
		answer(enforce, -ETIMEDOUT, "gpuarb-enforce read no request in time");
	lost(enforce, -ETIMEDOUT, "gpuarb-enforce did not answer in time");
	return 0;
}

/* ---- requests -------------------------------------------------------------------------- */

static int queue_request(struct enforce *enforce, const struct request *wanted, char *why,
			 size_t size)
{
	_cleanup_(request_freep) struct request *request = NULL;
	int r;

	if (enforce->n == ENFORCE_QUEUE)
		return refuse(why, size, -ENOBUFS, "%u requests wait for gpuarb-enforce already",
			      ENFORCE_QUEUE);
	if (wanted->pidfd < 0 && wanted->body.verb != ENFORCE_THAW)
		return refuse(why, size, -EBADF, "there is no pidfd of the process");
	request = malloc(sizeof(*request));
	if (!request)
		return refuse(why, size, -ENOMEM, "out of memory");
	*request = *wanted;
	if (wanted->pidfd >= 0) {
		request->pidfd = fcntl(wanted->pidfd, F_DUPFD_CLOEXEC, 3);
		if (request->pidfd < 0)
			return refuse(why, size, -errno, "cannot keep a copy of the pidfd: %s",
				      strerror(errno));
	}
	r = sd_event_now(enforce->helper.event, CLOCK_MONOTONIC, &request->deadline);
	if (r >= 0 && enforce->helper.fd < 0)
		r = helper_open(&enforce->helper, why, size);
	if (r < 0)
		return r;

	request->deadline += enforce->patience_usec;
	STAILQ_INSERT_TAIL(&enforce->queue, request, link);
	enforce->n++;
	TAKE_PTR(request);
	set_timer(enforce);
	if (!enforce->full)
		flush(enforce);
	return 0;
}

int enforce_ask(struct enforce *enforce, enum enforce_verb verb, int pidfd, uint64_t start_time,
		uid_t uid, const char *text, uint64_t tag, char *why, size_t size)
{
	struct request wanted = { .tag = tag,
				  .body = { .verb = verb, .start_time = start_time, .uid = uid },
				  .pidfd = pidfd };
	int r = enforce_names_unit(verb) ? enforce_unit_check(text, why, size) : 0;

	if (r < 0)
		return r;
	snprintf(wanted.body.text, sizeof(wanted.body.text), "%s", text);
	return queue_request(enforce, &wanted, why, size);
}

/* ---- life ------------------------------------------------------------------------------ */

int enforce_new(sd_event *event, const char *socket, uint64_t patience_usec, enforce_done_t *done,
		enforce_lost_t *on_lost, void *userdata, struct enforce **ret)
{
	_cleanup_(enforce_freep) struct enforce *enforce = calloc(1, sizeof(*enforce));
	int r;

	if (!enforce)
		return -ENOMEM;
	STAILQ_INIT(&enforce->queue);
	enforce->patience_usec = patience_usec;
	enforce->done = done;
	enforce->lost = on_lost;
	enforce->userdata = userdata;
	r = helper_init(&enforce->helper, event, SOCK_SEQPACKET, socket, "gpuarb-enforce.socket",
			on_io, on_timer, enforce);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(enforce);
	return 0;
}

void enforce_wake(struct enforce *enforce)
{
	char why[256];
	_cleanup_fd_ int fd = helper_connect(enforce->helper.socket, SOCK_SEQPACKET,
					     enforce->helper.unit, why, sizeof(why));

	if (fd < 0 && fd != -EOPNOTSUPP)
		log_warning("units that an earlier gpuarb-enforce froze are not thawed: %s", why);
}

struct enforce *enforce_free(struct enforce *enforce)
{
	if (!enforce)
		return NULL;

	while (enforce->n > 0)
		request_free(take_first(enforce));
	helper_done(&enforce->helper);
	free(enforce);
	return NULL;
}
