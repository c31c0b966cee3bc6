/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/names.h"

#define PAUSE_MIN UINT64_C(10000)
#define PAUSE_MAX UINT64_C(1000000)

void snapshot_clear(struct snapshot *snapshot)
{
	arena_clear(&snapshot->arena);
	*snapshot = (struct snapshot){ .info.state = "" };
}

struct follower *follower_free(struct follower *follower)
{
	if (!follower)
		return NULL;

	connection_free(follower->connection);
	gpuarb_close(follower->gpuarb);
	free(follower);
	return NULL;
}

int follower_new(const char *address, uint64_t id, const int *wake, struct follower **ret)
{
	_cleanup_(follower_freep) struct follower *follower = calloc(1, sizeof(*follower));
	int r;

	if (!follower)
		return -ENOMEM;

	r = gpuarb_new(address, &follower->gpuarb);
	if (r < 0)
		return r;
	follower->gpuarb->wake = wake;
	follower->id = id;
	follower->stale = true;
	*ret = TAKE_PTR(follower);
	return 0;
}

/* ---- the connection ---------------------------------------------------------------------- */

/* What comes here: changes of the lease, its end, and the daemon's coming. */
static int subscribe(struct follower *follower, struct connection *connection)
{
	struct lease_path path = lease_path(follower->id);
	char rule[256];
	bool there;
	int r;

	snprintf(rule, sizeof(rule), "type='signal',sender='" GPUARB_BUS_NAME "',path='%s'",
		 path.text);
	r = call_bus(follower->gpuarb, connection, "AddMatch", rule, NULL, NULL);
	snprintf(rule, sizeof(rule), "type='signal',sender='" GPUARB_BUS_NAME "',arg0path='%s'",
		 path.text);
	if (r >= 0)
		r = call_bus(follower->gpuarb, connection, "AddMatch", rule, NULL, NULL);
	return r < 0 ? r : return_subscribe(follower->gpuarb, connection, &there);
}

static int connect_follower(struct follower *follower)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	int r;

	if (follower->connection)
		return 0;
	r = connection_new(follower->gpuarb, &connection);
	if (r >= 0)
		r = subscribe(follower, connection);
	if (r >= 0)
		follower->connection = TAKE_PTR(connection);
	return r;
}

static void disconnect(struct follower *follower)
{
	connection_free(follower->connection);
	follower->connection = NULL;
}

/* What came of a call. A failure that has no name on the bus may leave an answer behind. */
static int settle(struct follower *follower, int r)
{
	if (r >= 0) {
		follower->pause = 0;
		return r;
	}
	if (!follower->gpuarb->error_name)
		disconnect(follower);
	follower->stale = true;
	follower->pause = follower->pause == 0 ? PAUSE_MIN : follower->pause * 2;
	if (follower->pause > PAUSE_MAX)
		follower->pause = PAUSE_MAX;
	follower->retry = deadline_after(follower->pause);
	return r;
}

/* ---- calls ------------------------------------------------------------------------------- */

/* One that does not start a daemon: it has no lease that is not there. */
static int send_call(struct follower *follower, DBusMessage *call, const char *signature,
		     DBusMessage **ret)
{
	int r;

	begin(follower->gpuarb);
	dbus_message_set_auto_start(call, FALSE);
	r = connect_follower(follower);
	if (r >= 0)
		r = call_send_on(follower->gpuarb, follower->connection, call, signature, ret);
	return settle(follower, done(follower->gpuarb, r));
}

int follower_read(struct follower *follower, struct snapshot *ret)
{
	const char *interface = GPUARB_INTERFACE_LEASE, *key = NULL;
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	DBusMessageIter iter;
	int r;

	snapshot_clear(ret);
	r = call_new(lease_path(follower->id).text, DBUS_INTERFACE_PROPERTIES, "GetAll", &call);
	if (r < 0 ||
	    !dbus_message_append_args(call, DBUS_TYPE_STRING, &interface, DBUS_TYPE_INVALID))
		return settle(follower, -ENOMEM);

	/* What changes before the answer is in it; what changes later is told after it. */
	follower->stale = false;
	r = send_call(follower, call, "a{sv}", &reply);
	if (r < 0)
		return r;
	dbus_message_iter_init(reply, &iter);
	r = read_lease(&iter, &ret->arena, &ret->info, &key);
	if (r < 0) {
		snapshot_clear(ret);
		return settle(follower,
			      r == -EPROTO ? misunderstood(follower->gpuarb, "GetAll", key) : r);
	}
	ret->info.id = follower->id;
	return 0;
}

/* The lease is read again afterwards: what was told while this waited for its answer is lost. */
int follower_acknowledge(struct follower *follower, uint64_t generation)
{
	dbus_uint64_t value = generation;
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	r = call_new(lease_path(follower->id).text, GPUARB_INTERFACE_LEASE, "Acknowledge", &call);
	if (r < 0 || !dbus_message_append_args(call, DBUS_TYPE_UINT64, &value, DBUS_TYPE_INVALID))
		return settle(follower, -ENOMEM);
	follower->stale = true;
	return send_call(follower, call, NULL, NULL);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static bool concerns(DBusMessage *m)
{
	return dbus_message_get_type(m) == DBUS_MESSAGE_TYPE_SIGNAL &&
	       (dbus_message_is_signal(m, DBUS_INTERFACE_PROPERTIES, "PropertiesChanged") ||
		dbus_message_is_signal(m, "org.freedesktop.DBus.ObjectManager",
				       "InterfacesRemoved") ||
		return_told(m) > 0);
}

static int listen_until(struct follower *follower, uint64_t deadline)
{
	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(follower->connection, deadline, &m);

		if (r == -EINTR)
			continue;
		if (r == -ECONNRESET || r == -ENOMEM) {
			disconnect(follower);
			(void)settle(follower, r);
			return 0;
		}
		if (r < 0)
			return r;
		if (concerns(m)) {
			follower->stale = true;
			follower->pause = 0;
			return 0;
		}
	}
}

/* Without a connection there is nothing but time, and what wakes. */
static int sleep_until(const int *wake, uint64_t deadline)
{
	struct pollfd fd = { .fd = wake ? *wake : -1, .events = POLLIN };
	int r;

	do
		r = poll_until(&fd, 1, deadline);
	while (r == -EINTR);
	return r > 0 ? -ECANCELED : r;
}

bool follower_due(const struct follower *follower)
{
	return follower->stale && (follower->pause == 0 || now_usec() >= follower->retry);
}

int follower_wait(struct follower *follower, const int *wake, uint64_t deadline)
{
	uint64_t retry = follower->pause > 0 ? follower->retry : UINT64_MAX;
	uint64_t until = retry < deadline ? retry : deadline;
	int r;

	if (follower_due(follower))
		return 0;
	if (follower->connection) {
		connection_wake(follower->connection, wake);
		r = listen_until(follower, until);
		if (follower->connection)
			connection_wake(follower->connection, follower->gpuarb->wake);
	} else {
		r = sleep_until(wake, until);
	}
	return r == -ETIMEDOUT && retry <= deadline ? 0 : r;
}
