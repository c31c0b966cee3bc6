/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd's requests to gpuarb-budget, which lets the kernel refuse queues: one at a time, each on a
 * connection of its own. helpers/budget-protocol.h has the protocol. No function here blocks.
 */

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "helpers/budget-protocol.h"
#include "util/base.h"

#define BUDGET_SOCKET "/run/gpuarb-budget.socket"

struct budget_client;

/* The answer to one request: 0 and a valid answer, which is valid during the call; else with a sentence
 * in why: -ETIMEDOUT, no answer in time; -ECONNRESET, the helper ended before its answer; -EBADMSG, not
 * an answer. Called from the event loop, never from within budget_ask(); must not free. */
typedef void budget_done_t(void *userdata, int r, const struct budget_answer *answer,
			   const char *why);

/* patience_usec: how long an answer may take. The helper need not be there. */
int budget_client_new(sd_event *event, const char *socket, uint64_t patience_usec,
		      budget_done_t *done, void *userdata, struct budget_client **ret);

/* Takes NULL. A request without an answer is carried out all the same. */
struct budget_client *budget_client_free(struct budget_client *client);
DEFINE_CLEANUP(struct budget_client *, budget_client_free)

/* Sorts the rows by cgroup, and writes one row for each cgroup into the request: its first lease and the sum of the
 * limits. Returns how many cgroups, those with the highest ids, had no room. */
size_t budget_request_fill(struct budget_request *request, struct budget_row *rows, size_t n);

/* The state of the cgroup in the answer to such a request; NULL: the request had no row for it. */
const struct budget_state *budget_state_of(const struct budget_request *request,
					   const struct budget_answer *answer, uint64_t cgroup);

/* 0: done() will be called once. -EALREADY: for an earlier request it will. Else with a sentence in why:
 * -EOPNOTSUPP, there is no helper; and whatever else the kernel says. */
int budget_ask(struct budget_client *client, const struct budget_request *request, char *why,
	       size_t size);

/* Sends a request without a row, and waits for no answer: the event loop may have ended. Forgets a
 * request that is under way. Fails as budget_ask(). */
int budget_clear(struct budget_client *client, char *why, size_t size);
