/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A daemon that restarts, and a bus that does. A call that was cut off, or that finds nobody
 * where there was somebody, is sent again when they are back. For the daemon the bus is
 * watched; for the bus nobody tells, so it is looked for now and then.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"

#define PAUSE_MIN 10000U /* between two looks for the bus */
#define PAUSE_MAX 250000U

/* A call that was cut off so often may be what the daemon dies of. */
#define CUTS_MAX 3U

#define NAME_RULE                                                                 \
	"type='signal',sender='" DBUS_SERVICE_DBUS "',member='NameOwnerChanged'," \
	"arg0='" GPUARB_BUS_NAME "'"

int return_subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_there)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	dbus_bool_t there = FALSE;
	int r;

	r = call_bus(gpuarb, connection, "AddMatch", NAME_RULE, NULL, NULL);
	if (r >= 0)
		r = call_bus(gpuarb, connection, "NameHasOwner", GPUARB_BUS_NAME, "b", &reply);
	if (r < 0)
		return r;

	dbus_message_get_args(reply, NULL, DBUS_TYPE_BOOLEAN, &there, DBUS_TYPE_INVALID);
	*ret_there = there;
	return 0;
}

int return_told(DBusMessage *m)
{
	const char *name, *from, *to;

	if (!dbus_message_is_signal(m, DBUS_INTERFACE_DBUS, "NameOwnerChanged") ||
	    !dbus_message_get_args(m, NULL, DBUS_TYPE_STRING, &name, DBUS_TYPE_STRING, &from,
				   DBUS_TYPE_STRING, &to, DBUS_TYPE_INVALID) ||
	    strcmp(name, GPUARB_BUS_NAME) != 0)
		return -1;
	return *to != '\0';
}

/* 0, also when the deadline came first. */
static int pause_until(struct gpuarb *gpuarb, uint64_t until, uint64_t deadline)
{
	int r = poll_until(NULL, 0, until < deadline ? until : deadline);

	return r == -EINTR ? interrupted(gpuarb) : 0;
}

int return_of_bus(struct gpuarb *gpuarb, uint64_t deadline, struct connection **ret)
{
	uint64_t pause = PAUSE_MIN;

	for (;;) {
		int r = pause_until(gpuarb, deadline_after(pause), deadline);

		if (r >= 0)
			r = connection_new(gpuarb, ret);
		if (r != -ECONNREFUSED || now_usec() >= deadline)
			return r;
		pause = pause < PAUSE_MAX / 2 ? pause * 2 : PAUSE_MAX;
	}
}

/* 0: it may be back, or the bus has gone, too: the call finds out. -ETIMEDOUT: not by then. */
static int return_of_daemon(struct gpuarb *gpuarb, uint64_t deadline)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	bool there = false;
	int r;

	r = connection_new(gpuarb, &connection);
	if (r >= 0)
		r = return_subscribe(gpuarb, connection, &there);
	while (r >= 0 && !there) {
		_cleanup_(free_message) DBusMessage *m = NULL;

		r = connection_receive(connection, deadline, &m);
		if (r >= 0)
			there = return_told(m) > 0;
	}
	if (r == -EINTR)
		return interrupted(gpuarb);
	return r == -ECONNRESET || r == -ECONNREFUSED ? 0 : r;
}

/* Makes the connection that the call is sent on again. */
static int reconnect(struct gpuarb *gpuarb, uint64_t deadline)
{
	connection_free(gpuarb->connection);
	gpuarb->connection = NULL;
	return return_of_bus(gpuarb, deadline, &gpuarb->connection);
}

void outage_done(struct outage *outage)
{
	free(outage->sentence);
	free(outage->error_name);
}

/* The program is told the first failure, or the first that cut the call off: then it may have
 * been carried out. */
static void outage_note(struct gpuarb *gpuarb, struct outage *outage, int r)
{
	uint64_t window = gpuarb->return_usec < gpuarb->answer_usec ? gpuarb->return_usec
								    : gpuarb->answer_usec;

	if (outage->error == 0) {
		outage->since = now_usec();
		outage->deadline = outage->since + window;
	}
	if (outage->error == 0 || (outage->error == -ECONNREFUSED && r == -ECONNRESET)) {
		outage_done(outage);
		outage->error = r;
		outage->sentence = TAKE_PTR(gpuarb->sentence);
		outage->error_name = TAKE_PTR(gpuarb->error_name);
	}
	free(gpuarb->error_name); /* what fails next may have none */
	gpuarb->error_name = NULL;
}

static int outage_over(struct gpuarb *gpuarb, struct outage *outage)
{
	uint64_t tenths = (now_usec() - outage->since) / 100000;

	free(gpuarb->error_name);
	gpuarb->error_name = TAKE_PTR(outage->error_name);
	return fail(gpuarb, outage->error, "%s; waited %u.%u s for it to return", outage->sentence,
		    (unsigned)(tenths / 10), (unsigned)(tenths % 10));
}

int outage_wait(struct gpuarb *gpuarb, struct outage *outage, int r)
{
	bool named = gpuarb->error_name;

	if (gpuarb->return_usec == 0 ||
	    (r != -ECONNRESET && (r != -ECONNREFUSED || (named && !gpuarb->known))))
		return r;

	outage_note(gpuarb, outage, r);
	if (r == -ECONNRESET) {
		gpuarb->known = gpuarb->repeated = true;
		r = ++outage->cuts < CUTS_MAX ? 0 : -ETIMEDOUT;
	} else {
		r = named ? return_of_daemon(gpuarb, outage->deadline)
			  : reconnect(gpuarb, outage->deadline);
	}
	if (r == -ETIMEDOUT || r == -ECONNREFUSED || (r >= 0 && now_usec() >= outage->deadline))
		return outage_over(gpuarb, outage);
	return r < 0 ? r : 1;
}
