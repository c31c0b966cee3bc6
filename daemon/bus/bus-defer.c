/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A lease whose CUs others have borrowed is granted when they have given way, a moment later.
 * Who asked to be refused rather than to wait is answered then: with the lease, or that it
 * cannot be had.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/bus-error.h"
#include "bus/bus-private.h"

struct deferred {
	struct deferred *next;
	sd_bus_message *call;
	uint64_t lease;
	int holder;
};

static void deferred_free(struct deferred *deferred)
{
	if (deferred->holder >= 0)
		close(deferred->holder);
	sd_bus_message_unref(deferred->call);
	free(deferred);
}

int bus_defer_reserve(struct bus *bus, sd_bus_message *call, const struct lease *lease, int holder)
{
	struct deferred *deferred = calloc(1, sizeof(*deferred));

	if (!deferred) {
		close(holder);
		return -ENOMEM;
	}
	deferred->call = sd_bus_message_ref(call);
	deferred->lease = lease->id;
	deferred->holder = holder;
	deferred->next = bus->deferred;
	bus->deferred = deferred;
	return 1;
}

/* What its end is to who did not want to wait: time that ran out is room that there was not. */
static enum result_kind refusal_of(const struct lease *lease)
{
	if (lease->cause == RESULT_OK || lease->cause == RESULT_TIMED_OUT)
		return RESULT_NO_CAPACITY;
	return lease->cause;
}

static void settle(struct bus *bus, struct deferred *deferred, const struct lease *lease)
{
	_cleanup_(result_done) struct result result = { 0 };
	int holder = deferred->holder, r;

	if (lease->state == STATE_ENDING) {
		r = result_set(&result, refusal_of(lease), "%s", lease->reason);
		bus_refuse(deferred->call, r, &result);
		return;
	}
	deferred->holder = -1;
	r = bus_reply_reserve(bus, deferred->call, lease, holder, state_name(lease->state));
	if (r < 0)
		sd_bus_reply_method_errno(deferred->call, r, NULL);
}

void bus_answer_deferred(struct bus *bus, const struct lease *lease, unsigned touched)
{
	struct deferred **at = &bus->deferred;

	if (!(touched & (TOUCH_CHANGED | TOUCH_ENDING | TOUCH_REMOVED)) ||
	    lease->state == STATE_ACTIVATING)
		return;
	while (*at) {
		struct deferred *deferred = *at;

		if (deferred->lease != lease->id) {
			at = &deferred->next;
			continue;
		}
		*at = deferred->next;
		settle(bus, deferred, lease);
		deferred_free(deferred);
	}
}

/* Its holder was for nobody else. */
void bus_forget_deferred(struct bus *bus, const char *sender)
{
	struct deferred **at = &bus->deferred;

	while (*at) {
		struct deferred *deferred = *at;

		if (strcmp(sd_bus_message_get_sender(deferred->call), sender) != 0) {
			at = &deferred->next;
			continue;
		}
		*at = deferred->next;
		deferred_free(deferred);
	}
}

void bus_drop_deferred(struct bus *bus)
{
	while (bus->deferred) {
		struct deferred *deferred = bus->deferred;

		_cleanup_(result_done) struct result result = { 0 };

		bus->deferred = deferred->next;
		result_set(&result, RESULT_SHUTDOWN, "gpuarbd is going down");
		bus_refuse(deferred->call, -ESHUTDOWN, &result);
		deferred_free(deferred);
	}
}
