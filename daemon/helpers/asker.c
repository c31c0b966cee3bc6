/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/asker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "helpers/helper.h"
#include "util/fd.h"
#include "util/text.h"

struct asker {
	struct helper connection;
	const struct asker_helper *helper;
	uint64_t patience_usec;
	asker_done_t *done;
	void *userdata;

	const void *request; /* under way; NULL: none */
	size_t request_size;
	bool reused; /* the connection is older than the request */
	_Alignas(max_align_t) char answer[];
};

static int send_request(const struct asker *asker, int fd, char *why, size_t size)
{
	if (send(fd, asker->request, asker->request_size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	return refuse(why, size, -errno, "%s: %s", asker->connection.socket, strerror(errno));
}

static int ask_new_helper(struct asker *asker, char *why, size_t size)
{
	int r;

	helper_close(&asker->connection);
	asker->reused = false;
	r = helper_open(&asker->connection, why, size);
	return r < 0 ? r : send_request(asker, asker->connection.fd, why, size);
}

/* A connection after a failed request is not used again: its next packet may be a late answer. */
static void finish(struct asker *asker, int r, const char *why)
{
	bool asked = asker->request;

	asker->request = NULL;
	helper_await(&asker->connection, 0);
	if (r < 0 || !asker->helper->lasts)
		helper_close(&asker->connection);
	if (asked)
		asker->done(asker->userdata, r, r < 0 ? NULL : asker->answer, why);
}

static void fail(struct asker *asker, int r, const char *what)
{
	char why[256];

	finish(asker, refuse(why, sizeof(why), r, "%s %s", asker->helper->name, what), why);
}

/* An idle helper ends, maybe in the moment of the next request: then a new one is asked. */
static void on_end(struct asker *asker)
{
	char why[256];
	int r;

	if (!asker->request || !asker->reused) {
		fail(asker, -ECONNRESET, "ended before it answered");
		return;
	}
	r = ask_new_helper(asker, why, sizeof(why));
	if (r < 0)
		finish(asker, r, why);
}

static int on_io(sd_event_source *, int fd, uint32_t, void *userdata)
{
	struct asker *asker = userdata;
	ssize_t n = recv(fd, asker->answer, asker->helper->answer_size, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		on_end(asker);
	else if (!asker->request ||
		 !asker->helper->is_valid(asker->answer, (size_t)n, asker->request))
		fail(asker, -EBADMSG, "sent an invalid answer");
	else
		finish(asker, 0, "");
	return 0;
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	fail(userdata, -ETIMEDOUT, "did not answer in time");
	return 0;
}

int asker_ask(struct asker *asker, const void *request, size_t request_size, char *why, size_t size)
{
	int r = -EPIPE;

	if (asker->request)
		return -EALREADY;
	asker->request = request;
	asker->request_size = request_size;
	asker->reused = asker->connection.fd >= 0;
	if (asker->reused)
		r = send_request(asker, asker->connection.fd, why, size);
	if (r < 0)
		r = ask_new_helper(asker, why, size);
	if (r >= 0)
		r = helper_await(&asker->connection, asker->patience_usec);
	if (r >= 0)
		return 0;
	asker->request = NULL;
	helper_close(&asker->connection);
	return r;
}

int asker_tell(struct asker *asker, const void *request, size_t request_size, char *why,
	       size_t size)
{
	_cleanup_fd_ int fd = helper_connect(asker->connection.socket, SOCK_SEQPACKET,
					     asker->helper->unit, why, size);
	int r;

	helper_await(&asker->connection, 0);
	helper_close(&asker->connection);
	asker->request = request;
	asker->request_size = request_size;
	r = fd < 0 ? fd : send_request(asker, fd, why, size);
	asker->request = NULL;
	return r;
}

int asker_new(sd_event *event, const struct asker_helper *helper, const char *socket,
	      uint64_t patience_usec, asker_done_t *done, void *userdata, struct asker **ret)
{
	_cleanup_(asker_freep) struct asker *asker = calloc(1,
							    sizeof(*asker) + helper->answer_size);
	int r;

	if (!asker)
		return -ENOMEM;
	asker->helper = helper;
	asker->patience_usec = patience_usec;
	asker->done = done;
	asker->userdata = userdata;
	r = helper_init(&asker->connection, event, SOCK_SEQPACKET, socket, helper->unit, on_io,
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

	helper_done(&asker->connection);
	free(asker);
	return NULL;
}
