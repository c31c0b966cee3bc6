/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Answers: errors, answers that wait until the service manager keeps the holder, and answers that
 * wait until borrowers have given back their CUs. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/bus-reply.h"
#include "bus/bus-objects.h"
#include "bus/bus-write.h"
#include "core/ledger/lease.h"
#include "dbus/names.h"
#include "util/fd.h"
#include "util/text.h"

/* ---- errors ----------------------------------------------------------------------- */

#define GPUARB_ERROR_OK NULL
#define GPUARB_ERROR_NO_MEMORY SD_BUS_ERROR_NO_MEMORY
#define NAME(id, error, word) GPUARB_ERROR_##id,

static const char *const names[] = { RESULT_KINDS_ALL(NAME) };

const char *bus_error_name(enum result_kind kind)
{
	return names[kind];
}

/* A sentence about a configuration has one line for each error. text_clean() replaces bytes one by
 * one, so each line break is still at its place. */
static const char *clean_lines(char *buf, size_t size, const char *text)
{
	text_clean(buf, size, text);
	for (size_t i = 0; buf[i]; i++)
		if (text[i] == '\n')
			buf[i] = '\n';
	return buf;
}

int bus_send(sd_bus_message *reply, int r)
{
	if (r >= 0)
		r = sd_bus_send(NULL, reply, NULL);
	return r < 0 ? r : 1;
}

/* Sends the answer, or the errno of what failed: no caller waits for its own time-out. */
static int send_answer(sd_bus_message *call, sd_bus_message *reply, int r)
{
	r = bus_send(reply, r);
	if (r < 0)
		r = sd_bus_reply_method_errno(call, r, NULL);
	return r < 0 ? r : 1;
}

int bus_refuse(sd_bus_message *call, int r, const struct result *result)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	char sentence[sizeof(result->sentence)];
	sd_bus_error error = {
		.name = bus_error_name(result->kind),
		.message = clean_lines(sentence, sizeof(sentence), result->sentence),
	};

	if (result->kind == RESULT_OK)
		return sd_bus_reply_method_errno(call, r, NULL);

	r = sd_bus_message_new_method_error(call, &reply, &error);
	if (r >= 0 && result->n_refusals > 0)
		r = bus_append_refusals(reply, result->refusals, result->n_refusals, NULL, NULL);
	return send_answer(call, reply, r);
}

int bus_refuse_as(sd_bus_message *call, enum result_kind kind, const char *sentence)
{
	_cleanup_(result_done) struct result result = { 0 };

	return bus_refuse(call, result_set(&result, kind, "%s", sentence), &result);
}

void bus_handle_again(struct bus *bus, sd_bus_message *call, sd_bus_message_handler_t handler)
{
	_cleanup_(sd_bus_error_free) sd_bus_error failed = SD_BUS_ERROR_NULL;
	int r = sd_bus_message_rewind(call, true);

	if (r >= 0)
		r = handler(call, bus, &failed);
	if (r < 0 || sd_bus_error_is_set(&failed))
		sd_bus_reply_method_errno(call, r, &failed);
}

/* ---- answers that wait for the service manager -------------------------------------------- */

/* If the connection is lost before the answer is sent, sending fails, and the holder in the reply
 * is closed with it. */
struct answer {
	const struct bus_host *host; /* the bus can be gone before */
	void *userdata;
	sd_bus_message *call, *reply;
	uint64_t lease; /* that a Reserve made; 0: it is no Reserve */
};

static void answer_free(struct answer *answer)
{
	sd_bus_message_unref(answer->call);
	sd_bus_message_unref(answer->reply);
	free(answer);
}

static void on_settled(void *userdata, int r)
{
	struct answer *answer = userdata;

	if (r == -ECANCELED)
		bus_refuse_as(answer->call, RESULT_SHUTDOWN, BUS_STOPPING);
	else /* without a service manager no lease outlives the daemon, which it has logged */
		r = sd_bus_send(NULL, answer->reply, NULL);
	if (r < 0 && r != -ECANCELED) {
		sd_bus_reply_method_errno(answer->call, r, NULL);
		if (answer->lease > 0)
			answer->host->abandon(answer->userdata, answer->lease);
	}
	answer_free(answer);
}

int bus_send_settled(struct bus *bus, sd_bus_message *call, sd_bus_message *reply, uint64_t lease)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	int r;

	if (!answer)
		return -ENOMEM;
	answer->host = bus->host;
	answer->userdata = bus->userdata;
	answer->lease = lease;
	answer->call = sd_bus_message_ref(call);
	answer->reply = sd_bus_message_ref(reply);
	r = bus->host->settle(bus->userdata, on_settled, answer);
	if (r < 0) {
		answer_free(answer);
		return r;
	}
	return 1;
}

/* The message keeps a duplicate of the holder until it is sent. If it cannot be made or sent, the
 * lease ends. */
int bus_reply_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease,
		      const struct request *request, int fd, const char *state)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_fd_ int holder = fd;
	struct bus_path path = bus_path(GPUARB_PATH_LEASE, lease->id);
	int r;

	r = sd_bus_message_new_method_return(call, &reply);
	if (r >= 0)
		r = sd_bus_message_append(reply, "ohs", path.text, holder, state);
	if (r >= 0)
		r = bus_append_partitions(reply, bus->arbiter, lease, request, NULL);
	if (r >= 0)
		r = bus_send_settled(bus, call, reply, lease->id);
	if (r < 0)
		bus->host->abandon(bus->userdata, lease->id);
	return r;
}

/* ---- answers that wait for borrowers ------------------------------------------------------ */

/* A Reserve without wait-usec whose CUs are borrowed is answered when the borrowers have given them
 * back, or when the lease has ended because they did not. */
struct deferred {
	LIST_ENTRY(deferred) link;
	sd_bus_message *call;
	uint64_t lease;
	int holder;
};

static void deferred_free(struct deferred *deferred)
{
	LIST_REMOVE(deferred, link);
	close_fd(&deferred->holder);
	sd_bus_message_unref(deferred->call);
	free(deferred);
}

int bus_defer_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder)
{
	struct deferred *deferred = calloc(1, sizeof(*deferred));

	if (!deferred) {
		close(holder);
		bus->host->abandon(bus->userdata, lease->id);
		return -ENOMEM;
	}
	deferred->call = sd_bus_message_ref(call);
	deferred->lease = lease->id;
	deferred->holder = holder;
	LIST_INSERT_HEAD(&bus->deferred, deferred, link);
	return 1;
}

/* The caller did not ask to wait: for it, a deadline that passed means that there was no room. */
static enum result_kind error_of_end(const struct lease *lease)
{
	if (lease->cause == RESULT_OK || lease->cause == RESULT_TIMED_OUT)
		return RESULT_NO_CAPACITY;
	return lease->cause;
}

static void answer_reserve(struct bus *bus, struct deferred *deferred, const struct lease *lease)
{
	int r;

	if (lease->state == STATE_ENDING) {
		bus_refuse_as(deferred->call, error_of_end(lease), lease->reason);
		return;
	}
	r = bus_reply_reserve(bus, deferred->call, lease, NULL, take_fd(&deferred->holder),
			      state_names[lease->state]);
	if (r < 0)
		sd_bus_reply_method_errno(deferred->call, r, NULL);
}

void bus_answer_deferred(struct bus *bus, const struct lease *lease, unsigned touched)
{
	struct deferred *next;

	if (!(touched & (TOUCH_CHANGED | TOUCH_COMMITTED | TOUCH_ENDING | TOUCH_REMOVED)) ||
	    lease->state == STATE_ACTIVATING || lease->state == STATE_WAITING)
		return;
	for (struct deferred *d = LIST_FIRST(&bus->deferred); d; d = next) {
		next = LIST_NEXT(d, link);
		if (d->lease != lease->id)
			continue;
		answer_reserve(bus, d, lease);
		deferred_free(d);
	}
}

void bus_forget_deferred(struct bus *bus, const char *sender)
{
	struct deferred *next;

	for (struct deferred *d = LIST_FIRST(&bus->deferred); d; d = next) {
		next = LIST_NEXT(d, link);
		if (strcmp(sd_bus_message_get_sender(d->call), sender) != 0)
			continue;
		/* The caller has left, and no other client learns of the lease. */
		bus->host->abandon(bus->userdata, d->lease);
		deferred_free(d);
	}
}

void bus_refuse_deferred(struct bus *bus, enum result_kind kind, const char *sentence)
{
	for (struct deferred *d; (d = LIST_FIRST(&bus->deferred));) {
		bus_refuse_as(d->call, kind, sentence);
		if (kind != RESULT_SHUTDOWN)
			bus->host->abandon(bus->userdata, d->lease);
		deferred_free(d);
	}
}
