/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's requests to a helper that answers each with one packet, one at a time. The helper need not be
 * there: a request connects if need be. No function here blocks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/base.h"

struct asker_helper {
	const char *name, *unit;
	size_t answer_size; /* at most */

	/* Whether a packet of this length is an answer to the request; the struct has only its first bytes. */
	bool (*is_valid)(const void *answer, size_t length, const void *request);
	bool lasts; /* it serves one request after another on a connection */
};

struct asker;

/* The answer to one request: 0 and a valid answer, which is valid during the call; else with a sentence
 * in why: -ETIMEDOUT, no answer in time; -ECONNRESET, the helper ended before its answer; -EBADMSG, not
 * an answer. Called from the event loop, never from within asker_ask(); must not free. */
typedef void asker_done_t(void *userdata, int r, const void *answer, const char *why);

/* patience_usec: how long an answer may take. */
int asker_new(sd_event *event, const struct asker_helper *helper, const char *socket,
	      uint64_t patience_usec, asker_done_t *done, void *userdata, struct asker **ret);

/* Takes NULL. A request without an answer is forgotten, without a callback. */
struct asker *asker_free(struct asker *asker);
DEFINE_CLEANUP(struct asker *, asker_free)

/* The request has to stay until it is answered. 0: done() will be called once. -EALREADY: for an earlier
 * request it will. Else with a sentence in why: -EOPNOTSUPP, there is no helper; and whatever else the
 * kernel says. */
int asker_ask(struct asker *asker, const void *request, size_t request_size, char *why,
	      size_t size);

/* Sends a request on a connection of its own, and waits for no answer: the event loop may have ended. Forgets a
 * request that is under way. Fails as asker_ask(). */
int asker_tell(struct asker *asker, const void *request, size_t request_size, char *why,
	       size_t size);
