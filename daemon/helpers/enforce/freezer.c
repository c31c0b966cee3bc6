/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/freezer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "util/log.h"

struct freezer {
	sd_event *event;
	char *address;
	uint64_t timeout_usec;
	sd_bus *bus; /* NULL: not connected */
};

struct freezer_call {
	freezer_done_t *done;
	void *userdata;
	bool freeze;
	char *unit;
	sd_bus_slot *slot;
	sd_event_source *timer;
};

/* Errors of FreezeUnit and ThawUnit, and of the bus. */
static const struct {
	const char *name;
	int r;
} errors[] = {
	{ "org.freedesktop.systemd1.NoSuchUnit", -ENOENT },
	{ "org.freedesktop.systemd1.UnitInactive", -ESRCH },
	{ "org.freedesktop.systemd1.UnitBusy", -EBUSY },
	{ SD_BUS_ERROR_NOT_SUPPORTED, -EOPNOTSUPP },
	{ SD_BUS_ERROR_UNKNOWN_METHOD, -EOPNOTSUPP }, /* before systemd 246 */
	{ SD_BUS_ERROR_SERVICE_UNKNOWN, -EOPNOTSUPP },
	{ SD_BUS_ERROR_ACCESS_DENIED, -EACCES },
	{ SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, -EACCES },
};

static int errno_of(const sd_bus_error *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (sd_bus_error_has_name(error, errors[i].name))
			return errors[i].r;
	return -EIO;
}

/* ---- the connection -------------------------------------------------------------------- */

static int open_bus(struct freezer *freezer, sd_bus **ret)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	int r;

	if (!freezer->address) {
		r = sd_bus_open_system(&bus);
	} else {
		r = sd_bus_new(&bus);
		if (r >= 0)
			r = sd_bus_set_address(bus, freezer->address);
		if (r >= 0)
			r = sd_bus_set_bus_client(bus, true);
		if (r >= 0)
			r = sd_bus_start(bus);
	}
	if (r >= 0)
		r = sd_bus_attach_event(bus, freezer->event, SD_EVENT_PRIORITY_NORMAL);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(bus);
	return 0;
}

static int connect_bus(struct freezer *freezer)
{
	if (freezer->bus && sd_bus_is_open(freezer->bus) > 0)
		return 0;
	freezer->bus = sd_bus_close_unref(freezer->bus);
	return open_bus(freezer, &freezer->bus);
}

/* ---- one call -------------------------------------------------------------------------- */

struct freezer_call *freezer_call_free(struct freezer_call *call)
{
	if (!call)
		return NULL;

	sd_bus_slot_unref(call->slot);
	sd_event_source_disable_unref(call->timer);
	free(call->unit);
	free(call);
	return NULL;
}

static void finish(struct freezer_call *call, int r, const char *sentence)
{
	freezer_done_t *done = call->done;
	void *userdata = call->userdata;

	if (r == 0)
		log_notice("%s: %s", call->unit, call->freeze ? "frozen" : "thawed");
	freezer_call_free(call);
	done(userdata, r, sentence);
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	const sd_bus_error *e = sd_bus_message_get_error(m);
	char sentence[400];

	if (!e) {
		finish(userdata, 0, "");
		return 0;
	}
	snprintf(sentence, sizeof(sentence), "%s (%s)", e->message ? e->message : "no reason given",
		 e->name);
	finish(userdata, errno_of(e), sentence);
	return 0;
}

/* A timer of its own: the time-out of sd-bus starts only when the bus has answered Hello. */
static int on_timeout(sd_event_source *, uint64_t, void *userdata)
{
	finish(userdata, -ETIMEDOUT, "the service manager does not answer");
	return 0;
}

static int send_call(struct freezer *freezer, struct freezer_call *call)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
	int r;

	r = sd_bus_message_new_method_call(
		freezer->bus, &m, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", call->freeze ? "FreezeUnit" : "ThawUnit");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", call->unit);
	if (r >= 0)
		r = sd_bus_call_async(freezer->bus, &call->slot, m, on_reply, call, UINT64_MAX);
	if (r >= 0)
		r = sd_event_add_time_relative(freezer->event, &call->timer, CLOCK_MONOTONIC,
					       freezer->timeout_usec, 1000, on_timeout, call);
	return r;
}

int freezer_start(struct freezer *freezer, bool freeze, const char *unit, freezer_done_t *done,
		  void *userdata, struct freezer_call **ret, char *why, size_t size)
{
	_cleanup_(freezer_call_freep) struct freezer_call *call = calloc(1, sizeof(*call));
	int r = -ENOMEM;

	if (call) {
		call->done = done;
		call->userdata = userdata;
		call->freeze = freeze;
		call->unit = strdup(unit);
	}
	if (call && call->unit)
		r = connect_bus(freezer);
	if (r >= 0)
		r = send_call(freezer, call);
	if (r < 0) {
		snprintf(why, size, "cannot ask the service manager: %s", strerror(-r));
		return r;
	}
	*ret = TAKE_PTR(call);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------ */

int freezer_new(sd_event *event, const char *address, uint64_t timeout_usec, struct freezer **ret)
{
	_cleanup_(freezer_freep) struct freezer *freezer = calloc(1, sizeof(*freezer));

	if (!freezer)
		return -ENOMEM;
	freezer->event = sd_event_ref(event);
	freezer->timeout_usec = timeout_usec;
	if (address) {
		freezer->address = strdup(address);
		if (!freezer->address)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(freezer);
	return 0;
}

struct freezer *freezer_free(struct freezer *freezer)
{
	if (!freezer)
		return NULL;

	sd_bus_close_unref(freezer->bus);
	sd_event_unref(freezer->event);
	free(freezer->address);
	free(freezer);
	return NULL;
}
