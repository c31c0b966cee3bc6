/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A private connection that is driven by our own poll(). libdbus's blocking calls go on
 * after a signal, so none is used: authentication, Hello and answers all pass through
 * connection_receive().
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/connection/call.h"

#define WATCHES 4U /* libdbus has two for a socket: to read, to write */
#define MESSAGE_MAX (16L << 20)

struct connection {
	DBusConnection *dbus;
	DBusWatch *watches[WATCHES];
	const int *wake; /* as the handle's */
};

void free_message(DBusMessage **m)
{
	if (*m)
		dbus_message_unref(*m);
}

static dbus_bool_t add_watch(DBusWatch *watch, void *userdata)
{
	struct connection *connection = userdata;

	for (size_t i = 0; i < WATCHES; i++) {
		if (connection->watches[i])
			continue;
		connection->watches[i] = watch;
		return TRUE;
	}
	return FALSE;
}

static void remove_watch(DBusWatch *watch, void *userdata)
{
	struct connection *connection = userdata;

	for (size_t i = 0; i < WATCHES; i++)
		if (connection->watches[i] == watch)
			connection->watches[i] = NULL;
}

void connection_free(struct connection *connection)
{
	if (!connection)
		return;

	if (connection->dbus) {
		dbus_connection_close(connection->dbus);
		dbus_connection_unref(connection->dbus);
	}
	free(connection);
}

/* Which of our watches want what, as poll() has it. */
static void watches_to_poll(const struct connection *connection, struct pollfd *fds)
{
	for (size_t i = 0; i < WATCHES; i++) {
		DBusWatch *watch = connection->watches[i];
		unsigned flags = 0;

		fds[i] = (struct pollfd){ .fd = -1 };
		if (!watch || !dbus_watch_get_enabled(watch))
			continue;
		flags = dbus_watch_get_flags(watch);
		fds[i].fd = dbus_watch_get_unix_fd(watch);
		fds[i].events = (short)((flags & DBUS_WATCH_READABLE ? POLLIN : 0) |
					(flags & DBUS_WATCH_WRITABLE ? POLLOUT : 0));
	}
}

/* One turn: waits until the socket is ready and lets libdbus read or write. */
static int turn(struct connection *connection, uint64_t deadline)
{
	struct pollfd fds[WATCHES + 1];
	int r;

	watches_to_poll(connection, fds);
	fds[WATCHES] = (struct pollfd){ .fd = connection->wake ? *connection->wake : -1,
					.events = POLLIN };
	r = poll_until(fds, WATCHES + 1, deadline);
	if (r < 0)
		return r;
	if (fds[WATCHES].revents)
		return -ECANCELED;

	for (size_t i = 0; i < WATCHES; i++) {
		unsigned flags = (fds[i].revents & POLLIN ? DBUS_WATCH_READABLE : 0) |
				 (fds[i].revents & POLLOUT ? DBUS_WATCH_WRITABLE : 0) |
				 (fds[i].revents & POLLHUP ? DBUS_WATCH_HANGUP : 0) |
				 (fds[i].revents & POLLERR ? DBUS_WATCH_ERROR : 0);

		if (fds[i].revents & POLLNVAL) /* the program closed it under us */
			return -ECONNRESET;
		if (flags && connection->watches[i] &&
		    !dbus_watch_handle(connection->watches[i], flags))
			return -ENOMEM;
	}
	return 0;
}

int connection_receive(struct connection *connection, uint64_t deadline, DBusMessage **ret)
{
	for (;;) {
		DBusConnection *dbus = connection->dbus;
		DBusMessage *m = dbus_connection_pop_message(dbus);
		int r;

		if (m) {
			*ret = m;
			return 0;
		}
		if (dbus_connection_get_dispatch_status(dbus) == DBUS_DISPATCH_NEED_MEMORY)
			return -ENOMEM;
		if (!dbus_connection_get_is_connected(dbus))
			return -ECONNRESET;

		r = turn(connection, deadline);
		if (r < 0)
			return r;
	}
}

int connection_send(struct connection *connection, DBusMessage *m, dbus_uint32_t *ret_serial)
{
	return dbus_connection_send(connection->dbus, m, ret_serial) ? 0 : -ENOMEM;
}

void connection_wake(struct connection *connection, const int *wake)
{
	connection->wake = wake;
}

bool connection_passes_fds(const struct connection *connection)
{
	return dbus_connection_can_send_type(connection->dbus, DBUS_TYPE_UNIX_FD);
}

static int dial(struct gpuarb *gpuarb, struct connection *connection)
{
	DBusError error = DBUS_ERROR_INIT;
	int r;

	/* libdbus would make the whole program ignore SIGPIPE; it sends with MSG_NOSIGNAL
	 * in any case. */
	dbus_connection_set_change_sigpipe(FALSE);

	connection->dbus = dbus_connection_open_private(gpuarb->address, &error);
	if (!connection->dbus) {
		r = dbus_error_has_name(&error, DBUS_ERROR_NO_MEMORY)
			    ? -ENOMEM
			    : fail(gpuarb, -ECONNREFUSED, "cannot connect to the bus at %s: %s",
				   gpuarb->address, error.message);
		dbus_error_free(&error);
		return r;
	}

	dbus_connection_set_exit_on_disconnect(connection->dbus, FALSE);
	dbus_connection_set_max_message_size(connection->dbus, MESSAGE_MAX);
	dbus_connection_set_max_message_unix_fds(connection->dbus, 4);
	if (!dbus_connection_set_watch_functions(connection->dbus, add_watch, remove_watch, NULL,
						 connection, NULL))
		return -ENOMEM;
	return 0;
}

static int hello(struct gpuarb *gpuarb, struct connection *connection)
{
	int r = call_bus(gpuarb, connection, "Hello", NULL, "s", NULL);

	if (r == -ECONNRESET)
		return fail(gpuarb, -ECONNREFUSED,
			    "the bus at %s closed the connection without a greeting",
			    gpuarb->address);
	return r;
}

int connection_new(struct gpuarb *gpuarb, struct connection **ret)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	int r;

	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return -ENOMEM;
	connection->wake = gpuarb->wake;

	r = dial(gpuarb, connection);
	if (r < 0)
		return r;

	r = hello(gpuarb, connection);
	if (r < 0)
		return r;

	*ret = TAKE_PTR(connection);
	return 0;
}

/* Takes in what came since, and finds out whether the other end is still there. */
static bool alive(struct connection *connection)
{
	int r;

	do {
		_cleanup_(free_message) DBusMessage *m = NULL;

		r = connection_receive(connection, 0, &m);
	} while (r >= 0);
	return r == -ETIMEDOUT || r == -EINTR;
}

int connection_ensure(struct gpuarb *gpuarb)
{
	if (gpuarb->connection && alive(gpuarb->connection))
		return 0;

	connection_free(gpuarb->connection);
	gpuarb->connection = NULL;
	return connection_new(gpuarb, &gpuarb->connection);
}
