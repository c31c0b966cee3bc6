/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/follower.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "dbus/names.h"
#include "libgpuarb/connection/call.h"
#include "libgpuarb/connection/read.h"
#include "libgpuarb/lease/lease-calls.h"

#define PAUSE_MIN_USEC UINT64_C(10000)
#define PAUSE_MAX_USEC UINT64_C(1000000)

void lease_copy_clear(struct lease_copy *copy)
{
	arena_clear(&copy->arena);
	*copy = (struct lease_copy){ .info.state = "" };
}

void follower_free(struct follower *follower)
{
	if (!follower)
		return;

	connection_free(follower->connection);
	gpuarb_close(follower->gpuarb);
	free(follower);
}

int follower_new(const char *address, uint64_t id, const int *cancel, struct follower **ret)
{
	_cleanup_(follower_freep) struct follower *follower = calloc(1, sizeof(*follower));
	int r;

	if (!follower)
		return -ENOMEM;

	r = gpuarb_new(address, &follower->gpuarb);
	if (r < 0)
		return r;
	follower->gpuarb->cancel = cancel;
	follower->id = id;
	follower->stale = true;
	*ret = TAKE_PTR(follower);
	return 0;
}

/* Subscribes to changes of the lease, to its end, and to the arrival of the daemon. */
static int subscribe(struct follower *follower, struct connection *connection)
{
	struct lease_path path = lease_path(follower->id);
	char rule[256];
	bool present;
	int r;

	snprintf(rule, sizeof(rule), "type='signal',sender='" GPUARB_BUS_NAME "',path='%s'",
		 path.text);
	r = connection_call_bus(follower->gpuarb, connection, "AddMatch", rule, NULL, NULL);
	snprintf(rule, sizeof(rule), "type='signal',sender='" GPUARB_BUS_NAME "',arg0path='%s'",
		 path.text);
	if (r >= 0)
		r = connection_call_bus(follower->gpuarb, connection, "AddMatch", rule, NULL, NULL);
	return r < 0 ? r : daemon_subscribe(follower->gpuarb, connection, &present);
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
	if (r < 0)
		return r;
	follower->connection = TAKE_PTR(connection);
	follower->acknowledged = 0;
	return 0;
}

static void pause_for(struct follower *follower, uint64_t usec)
{
	follower->pause_usec = usec < PAUSE_MAX_USEC ? usec : PAUSE_MAX_USEC;
	follower->retry = deadline_after(follower->pause_usec);
}

/* Keeps the result of a call for follower_due(). After a failure without an error name the answer
 * may still come, so the connection is closed. */
static int note_result(struct follower *follower, int r)
{
	if (r >= 0) {
		follower->pause_usec = 0;
		return r;
	}
	if (!follower->gpuarb->error_name)
		connection_free(TAKE_PTR(follower->connection));
	follower->stale = true;
	pause_for(follower, follower->pause_usec == 0 ? PAUSE_MIN_USEC : follower->pause_usec * 2);
	return r;
}

/* Does not start the daemon: leases exist only while it runs. */
static int send_call(struct follower *follower, DBusMessage *call, const char *signature,
		     DBusMessage **ret)
{
	int r;

	handle_begin(follower->gpuarb);
	dbus_message_set_auto_start(call, FALSE);
	r = connect_follower(follower);
	if (r >= 0)
		r = connection_call(follower->gpuarb, follower->connection, call, signature, ret);
	return note_result(follower, handle_end(follower->gpuarb, r));
}

int follower_read(struct follower *follower, struct lease_copy *ret)
{
	const char *interface = GPUARB_INTERFACE_LEASE, *key = NULL;
	_cleanup_(free_message) DBusMessage *call = NULL, *reply = NULL;
	DBusMessageIter iter;
	int r;

	lease_copy_clear(ret);
	r = call_new(lease_path(follower->id).text, DBUS_INTERFACE_PROPERTIES, "GetAll", &call,
		     DBUS_TYPE_STRING, &interface, DBUS_TYPE_INVALID);
	if (r < 0)
		return note_result(follower, r);

	/* The answer has all earlier changes, and signals for later ones follow it. */
	follower->stale = false;
	r = send_call(follower, call, "a{sv}", &reply);
	if (r < 0)
		return r;
	dbus_message_iter_init(reply, &iter);
	r = read_lease(&iter, &ret->arena, &ret->info, NULL, &key);
	if (r < 0) {
		lease_copy_clear(ret);
		return note_result(follower,
				   r == -EPROTO ? fail_answer(follower->gpuarb, "GetAll", key) : r);
	}
	ret->info.id = follower->id;
	return 0;
}

/* Drops the signals that come before the answer, so the lease is read again afterwards. */
int follower_acknowledge(struct follower *follower, uint64_t generation)
{
	dbus_uint64_t value = generation;
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r;

	if (generation == follower->acknowledged)
		return 0;
	r = call_new(lease_path(follower->id).text, GPUARB_INTERFACE_LEASE, "Acknowledge", &call,
		     DBUS_TYPE_UINT64, &value, DBUS_TYPE_INVALID);
	if (r < 0)
		return note_result(follower, r);
	follower->stale = true;
	r = send_call(follower, call, NULL, NULL);
	if (r >= 0)
		follower->acknowledged = generation;
	follower->refusals = r < 0 ? follower->refusals + 1 : 0;
	if (follower->refusals > 1)
		pause_for(follower,
			  PAUSE_MIN_USEC << (follower->refusals < 7 ? follower->refusals : 7));
	return r;
}

static bool announces_change(DBusMessage *m)
{
	return dbus_message_get_type(m) == DBUS_MESSAGE_TYPE_SIGNAL &&
	       (dbus_message_is_signal(m, DBUS_INTERFACE_PROPERTIES, "PropertiesChanged") ||
		dbus_message_is_signal(m, "org.freedesktop.DBus.ObjectManager",
				       "InterfacesRemoved") ||
		daemon_presence(m) > 0);
}

static int listen_until(struct follower *follower, uint64_t deadline)
{
	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(follower->connection, deadline, &m);

		if (r == -EINTR)
			continue;
		if (r == -ECONNRESET || r == -ENOMEM) {
			connection_free(TAKE_PTR(follower->connection));
			(void)note_result(follower, r);
			return 0;
		}
		if (r < 0)
			return r;
		if (daemon_presence(m) > 0)
			follower->acknowledged = 0;
		if (announces_change(m)) {
			follower->stale = true;
			follower->pause_usec = 0;
			return 0;
		}
	}
}

/* Waits without a connection. -ECANCELED: *cancel is readable. -ETIMEDOUT. */
static int sleep_until(const int *cancel, uint64_t deadline)
{
	struct pollfd fd = { .fd = cancel ? *cancel : -1, .events = POLLIN };
	int r;

	do
		r = poll_until(&fd, 1, deadline);
	while (r == -EINTR);
	return r > 0 ? -ECANCELED : r;
}

bool follower_due(const struct follower *follower)
{
	return follower->stale && (follower->pause_usec == 0 || now_usec() >= follower->retry);
}

int follower_wait(struct follower *follower, const int *cancel, uint64_t deadline)
{
	uint64_t retry = follower->pause_usec > 0 ? follower->retry : UINT64_MAX;
	uint64_t until = retry < deadline ? retry : deadline;
	int r;

	if (follower_due(follower))
		return 0;
	if (follower->connection) {
		follower->connection->cancel = cancel;
		r = listen_until(follower, until);
		if (follower->connection)
			follower->connection->cancel = follower->gpuarb->cancel;
	} else {
		r = sleep_until(cancel, until);
	}
	return r == -ETIMEDOUT && retry <= deadline ? 0 : r;
}
