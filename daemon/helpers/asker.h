/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's requests to a helper that answers each with one packet, in their order. The helper need not be
 * there: a request connects if need be. No function here blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/base.h"

#define ASKER_FDS_MAX 128U

struct asker_helper {
	const char *name;   /* its socket unit is NAME.socket */
	size_t most;        /* requests without an answer */
	size_t answer_size; /* at most */
	size_t answer_fds;  /* file descriptors in an answer, at most ASKER_FDS_MAX */

	/* Whether a packet of this length with so many descriptors is an answer to the request; the struct has only its
	 * first bytes. */
	bool (*is_valid)(void *answer, size_t length, size_t n_fds, const void *request);
	bool lasts;   /* it serves one request after another on a connection */
	bool repeats; /* a request may be carried out twice */
};

struct asker;

struct asker_request {
	uint64_t tag;
	const void *body;
};

/* The answer to one request: 0 and a valid answer, which is valid during the call; else with a sentence
 * in why: -ETIMEDOUT, no answer in time; -ECONNRESET, the helper ended before its answer; -EBADMSG, not
 * an answer; or as asker_ask(). Called from the event loop, never from within a request; may make requests, and
 * must not free. */
typedef void asker_done_t(void *userdata, const struct asker_request *request, int r,
			  const void *answer, const char *why);

/* The connection has ended. Called after the answers of the requests that were lost with it; may make requests,
 * and must not free. */
typedef void asker_lost_t(void *userdata);

/* patience_usec: how long an answer may take. lost: NULL, or a function. */
int asker_new(sd_event *event, const struct asker_helper *helper, const char *socket,
	      uint64_t patience_usec, asker_done_t *done, asker_lost_t *lost, void *userdata,
	      struct asker **ret);

/* Takes NULL. Requests without an answer are forgotten, without a callback. */
struct asker *asker_free(struct asker *asker);
DEFINE_CLEANUP(struct asker *, asker_free)

/* Keeps copies of the request, and of the fd (-1: none) until it is sent. 0: done() will be called once. Else with a
 * sentence in why: -EOPNOTSUPP, there is no helper; -ENOBUFS, too many requests wait; and whatever else the
 * kernel says. */
int asker_ask(struct asker *asker, const void *request, size_t request_size, int fd, uint64_t tag,
	      char *why, size_t size);

/* While an answer is passed: its file descriptors, which are the caller's from then on. Returns how many. Those that are
 * not taken are closed. */
size_t asker_take_fds(struct asker *asker, int ret[static ASKER_FDS_MAX]);

/* Sends a request on a connection of its own, and waits for no answer: the event loop may have ended. Forgets
 * requests that are under way. Fails as asker_ask(). */
int asker_tell(struct asker *asker, const void *request, size_t request_size, char *why,
	       size_t size);
