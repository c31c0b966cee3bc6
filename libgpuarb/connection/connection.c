/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A private connection that the library drives with its own poll(). The blocking calls of libdbus
 * continue after a signal, so none is used: authentication, Hello and answers all pass through
 * connection_receive().
 */

#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dbus/names.h"
#include "libgpuarb/connection/connection.h"
#include "libgpuarb/connection/read.h"

/* The default address of the system bus in the D-Bus specification. */
#define SYSTEM_BUS "unix:path=/var/run/dbus/system_bus_socket"

#define MESSAGE_MAX (16L << 20)

/* How long a daemon counts as present after it was: it can end at any time, also after an answer. */
#define PRESENT_USEC UINT64_C(1000000)

/* For calls that may ask a person: polkit waits two minutes for the password (bus-polkit.c). */
#define PERSON_USEC UINT64_C(130000000)

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

/* Translates the watches of libdbus for poll(). */
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

/* Waits until the socket is ready, or the caller cancels. In both cases libdbus reads and writes what it can: a program that
 * waits and cancels again and again receives its messages, too. */
static int wait_and_handle(struct connection *connection, uint64_t deadline)
{
	struct pollfd fds[WATCHES + 1];
	int r;

	watches_to_poll(connection, fds);
	fds[WATCHES] = (struct pollfd){ .fd = connection->cancel ? *connection->cancel : -1,
					.events = POLLIN };
	r = poll_until(fds, WATCHES + 1, deadline);
	if (r < 0)
		return r;
	for (size_t i = 0; i < WATCHES; i++) {
		unsigned flags = (fds[i].revents & POLLIN ? DBUS_WATCH_READABLE : 0) |
				 (fds[i].revents & POLLOUT ? DBUS_WATCH_WRITABLE : 0) |
				 (fds[i].revents & POLLHUP ? DBUS_WATCH_HANGUP : 0) |
				 (fds[i].revents & POLLERR ? DBUS_WATCH_ERROR : 0);

		if (fds[i].revents & POLLNVAL) /* the program has closed our fd */
			return -ECONNRESET;
		if (flags && connection->watches[i] &&
		    !dbus_watch_handle(connection->watches[i], flags))
			return -ENOMEM;
	}
	return fds[WATCHES].revents ? -ECANCELED : 0;
}

/* A signal of gpuarbd or of the bus has no destination: the bus passes it to all connections with a match rule, which names
 * the sender. Every user can send a signal to a single connection. */
static bool is_forged(DBusMessage *m)
{
	return dbus_message_get_type(m) == DBUS_MESSAGE_TYPE_SIGNAL &&
	       dbus_message_get_destination(m);
}

int connection_receive(struct connection *connection, uint64_t deadline, DBusMessage **ret)
{
	for (;;) {
		DBusConnection *dbus = connection->dbus;
		DBusMessage *m = dbus_connection_pop_message(dbus);
		int r;

		if (m && !is_forged(m)) {
			*ret = m;
			return 0;
		}
		if (m) {
			dbus_message_unref(m);
			if (now_usec() >= deadline)
				return -ETIMEDOUT;
			continue;
		}
		if (dbus_connection_get_dispatch_status(dbus) == DBUS_DISPATCH_NEED_MEMORY)
			return -ENOMEM;
		if (!dbus_connection_get_is_connected(dbus))
			return -ECONNRESET;

		r = wait_and_handle(connection, deadline);
		if (r < 0)
			return r;
	}
}

/* Reads (s) or (s aa{sv}): the sentence of the daemon, then the refusals. */
static int fail_by_reply(struct gpuarb *gpuarb, DBusMessage *reply)
{
	const char *name = dbus_message_get_error_name(reply), *sentence = name;
	DBusMessageIter iter;
	int r = error_from_name(name);

	gpuarb->error_name = strdup(name);
	if (!gpuarb->error_name)
		return -ENOMEM;

	if (dbus_message_iter_init(reply, &iter) &&
	    dbus_message_iter_get_arg_type(&iter) == DBUS_TYPE_STRING) {
		dbus_message_iter_get_basic(&iter, &sentence);
		if (dbus_message_iter_next(&iter) &&
		    read_refusals(&iter, &gpuarb->answer, &gpuarb->refusals, NULL) == -ENOMEM)
			return -ENOMEM;
	}

	if (r == -ECONNREFUSED)
		return fail(gpuarb, r, "no gpuarbd on the bus at %s (%s): start it",
			    gpuarb->address, sentence);
	if (r == -ECONNRESET)
		return fail(gpuarb, r, "gpuarbd left the bus before it answered: %s", sentence);
	return fail(gpuarb, r, "%s", sentence);
}

static int await_reply(struct gpuarb *gpuarb, struct connection *connection, dbus_uint32_t serial,
		       DBusMessage **ret)
{
	bool person = gpuarb->interactive && gpuarb->answer_usec < PERSON_USEC;
	uint64_t usec = person ? PERSON_USEC : gpuarb->answer_usec;
	uint64_t deadline = deadline_after(usec);

	for (;;) {
		_cleanup_(free_message) DBusMessage *m = NULL;
		int r = connection_receive(connection, deadline, &m);

		if (r == -ETIMEDOUT)
			return fail(gpuarb, r,
				    "no answer within %u s on the bus at %s: check whether "
				    "gpuarbd hangs",
				    (unsigned)(usec / 1000000), gpuarb->address);
		if (r == -EINTR)
			return fail_interrupted(gpuarb);
		if (r == -ECONNRESET)
			return fail(gpuarb, r, "lost the connection to the bus at %s",
				    gpuarb->address);
		if (r < 0)
			return r;
		if (dbus_message_get_reply_serial(m) != serial)
			continue;

		*ret = TAKE_PTR(m);
		return 0;
	}
}

static int send_call(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
		     dbus_uint32_t *ret_serial)
{
	free(gpuarb->error_name);
	gpuarb->error_name = NULL;
	dbus_message_set_allow_interactive_authorization(call, gpuarb->interactive);
	return dbus_connection_send(connection->dbus, call, ret_serial) ? 0 : -ENOMEM;
}

/* Waits for the answer to the call, which was sent with this serial. */
static int receive_answer(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
			  dbus_uint32_t serial, const char *signature, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r = await_reply(gpuarb, connection, serial, &reply);

	if (r < 0)
		return r;

	if (!dbus_message_has_sender(reply, DBUS_SERVICE_DBUS))
		gpuarb->daemon_seen = true;
	if (dbus_message_get_type(reply) == DBUS_MESSAGE_TYPE_ERROR)
		return fail_by_reply(gpuarb, reply);
	if (signature && !dbus_message_has_signature(reply, signature))
		return fail_answer(gpuarb, dbus_message_get_member(call), NULL);
	if (ret)
		*ret = TAKE_PTR(reply);
	return 0;
}

int connection_call(struct gpuarb *gpuarb, struct connection *connection, DBusMessage *call,
		    const char *signature, DBusMessage **ret)
{
	dbus_uint32_t serial;
	int r = send_call(gpuarb, connection, call, &serial);

	return r < 0 ? r : receive_answer(gpuarb, connection, call, serial, signature, ret);
}

static int bus_call_new(const char *member, const char *argument, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = dbus_message_new_method_call(
		DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, member);

	if (!call || (argument && !dbus_message_append_args(call, DBUS_TYPE_STRING, &argument,
							    DBUS_TYPE_INVALID)))
		return -ENOMEM;
	*ret = TAKE_PTR(call);
	return 0;
}

int connection_call_bus(struct gpuarb *gpuarb, struct connection *connection, const char *member,
			const char *argument, const char *signature, DBusMessage **ret)
{
	_cleanup_(free_message) DBusMessage *call = NULL;
	int r = bus_call_new(member, argument, &call);

	return r < 0 ? r : connection_call(gpuarb, connection, call, signature, ret);
}

static int open_private(struct gpuarb *gpuarb, struct connection *connection)
{
	DBusError error = DBUS_ERROR_INIT;
	int r;

	/* Otherwise libdbus makes the whole program ignore SIGPIPE. It does not need that: it
	 * sends with MSG_NOSIGNAL. */
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

/* ERANGE: an entry longer than the buffer has a name too. */
static bool has_name(uid_t uid)
{
	struct passwd entry, *found = NULL;
	char buffer[1024];
	int r = getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found);

	return found || r == ERANGE;
}

/* Whether this user namespace gives the user another number than the namespace around it. libdbus sends the number
 * inside, and the bus compares it with what the kernel says of the socket, the number outside. */
static bool is_renumbered(uid_t uid)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, n;
	bool same = !map;

	while (map && !same && fscanf(map, "%u %u %u", &inside, &outside, &n) == 3)
		same = uid >= inside && uid - inside < n && inside == outside;
	if (map)
		fclose(map);
	return !same;
}

static int fail_hello(struct gpuarb *gpuarb)
{
	if (is_renumbered(geteuid()))
		return fail(gpuarb, -ECONNREFUSED,
			    "the bus at %s closed the connection without a greeting; this user "
			    "namespace gives the user a number of its own, %u: give it the number "
			    "that it has outside, in a container with podman run --userns=keep-id",
			    gpuarb->address, geteuid());
	return fail(gpuarb, -ECONNREFUSED,
		    has_name(geteuid())
			    ? "the bus at %s closed the connection without a greeting; a session "
			      "bus serves only its own user, and this is user %u"
			    : "the bus at %s closed the connection without a greeting; it "
			      "refuses users without a name: see getent passwd %u",
		    gpuarb->address, geteuid());
}

static void note_presence(struct connection *connection, DBusMessage *reply)
{
	dbus_bool_t present = FALSE;

	dbus_message_get_args(reply, NULL, DBUS_TYPE_BOOLEAN, &present, DBUS_TYPE_INVALID);
	connection->present_usec = present ? now_usec() : 0;
}

/* Both calls are sent before the first answer is read: the second costs no time of its own. */
static int hello(struct gpuarb *gpuarb, struct connection *connection)
{
	_cleanup_(free_message) DBusMessage *greeting = NULL, *question = NULL, *reply = NULL;
	dbus_uint32_t greeting_serial, question_serial;
	int r;

	r = bus_call_new("Hello", NULL, &greeting);
	if (r >= 0)
		r = bus_call_new("NameHasOwner", GPUARB_BUS_NAME, &question);
	if (r >= 0)
		r = send_call(gpuarb, connection, greeting, &greeting_serial);
	if (r >= 0)
		r = send_call(gpuarb, connection, question, &question_serial);
	if (r >= 0)
		r = receive_answer(gpuarb, connection, greeting, greeting_serial, "s", NULL);
	if (r == -ECONNRESET)
		return fail_hello(gpuarb);
	if (r >= 0)
		r = receive_answer(gpuarb, connection, question, question_serial, "b", &reply);
	if (r >= 0)
		note_presence(connection, reply);
	return r;
}

int connection_new(struct gpuarb *gpuarb, struct connection **ret)
{
	_cleanup_(connection_freep) struct connection *connection = NULL;
	int r;

	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return -ENOMEM;
	connection->cancel = gpuarb->cancel;

	r = open_private(gpuarb, connection);
	if (r >= 0)
		r = hello(gpuarb, connection);
	if (r >= 0)
		*ret = TAKE_PTR(connection);
	return r;
}

/* Drops the messages that came since the last call. False: the bus has closed the connection. */
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

	connection_free(TAKE_PTR(gpuarb->connection));
	return connection_new(gpuarb, &gpuarb->connection);
}

/* ---- opening and closing a handle; its leases share it, so it counts references --------- */

/* For gpuarb_last_error(NULL): when gpuarb_open() fails there is no handle for the sentence. */
static _Thread_local char open_sentence[512];

static char *bus_address(void)
{
	const char *address = secure_getenv("GPUARB_BUS_ADDRESS");

	if (!address || !*address)
		address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
	return strdup(address && *address ? address : SYSTEM_BUS);
}

int gpuarb_new(const char *address, struct gpuarb **ret)
{
	_cleanup_(gpuarb_closep) struct gpuarb *gpuarb = calloc(1, sizeof(*gpuarb));

	if (!gpuarb)
		return -ENOMEM;

	gpuarb->references = 1;
	gpuarb->answer_usec = ANSWER_USEC;
	gpuarb->reconnect_usec = RECONNECT_USEC;
	gpuarb->address = address ? strdup(address) : bus_address();
	if (!gpuarb->address)
		return -ENOMEM;
	*ret = TAKE_PTR(gpuarb);
	return 0;
}

static const char *last_sentence(const struct gpuarb *gpuarb)
{
	if (gpuarb->no_memory)
		return "out of memory";
	return gpuarb->sentence ? gpuarb->sentence : "";
}

GPUARB_EXPORT int gpuarb_open(struct gpuarb **ret)
{
	_cleanup_(gpuarb_closep) struct gpuarb *gpuarb = NULL;
	int r;

	if (!ret)
		return -EINVAL;

	*ret = NULL;
	snprintf(open_sentence, sizeof(open_sentence), "out of memory");
	r = gpuarb_new(NULL, &gpuarb);
	if (r < 0)
		return r;

	r = handle_end(gpuarb, connection_ensure(gpuarb));
	if (r < 0) {
		snprintf(open_sentence, sizeof(open_sentence), "%s", last_sentence(gpuarb));
		return r;
	}
	open_sentence[0] = '\0';
	*ret = TAKE_PTR(gpuarb);
	return 0;
}

static bool seen_lately(const struct connection *connection)
{
	return connection->present_usec > 0 && now_usec() - connection->present_usec < PRESENT_USEC;
}

static int daemon_present(struct gpuarb *gpuarb, bool *ret)
{
	_cleanup_(free_message) DBusMessage *reply = NULL;
	int r = connection_ensure(gpuarb);

	if (r >= 0 && !seen_lately(gpuarb->connection)) {
		r = connection_call_bus(gpuarb, gpuarb->connection, "NameHasOwner", GPUARB_BUS_NAME,
					"b", &reply);
		if (r >= 0)
			note_presence(gpuarb->connection, reply);
	}
	if (r >= 0)
		*ret = gpuarb->connection->present_usec > 0;
	return r;
}

/* StartServiceByName answers when the name is on the bus. It refuses a name that the bus cannot
 * start, also if it is there. */
static int start_daemon(struct gpuarb *gpuarb)
{
	_cleanup_(free_message) DBusMessage *call = dbus_message_new_method_call(
		DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "StartServiceByName");
	const char *name = GPUARB_BUS_NAME;
	bool present = false;
	dbus_uint32_t flags = 0;
	int r = daemon_present(gpuarb, &present);

	if (r < 0 || present)
		return r;
	if (!call || !dbus_message_append_args(call, DBUS_TYPE_STRING, &name, DBUS_TYPE_UINT32,
					       &flags, DBUS_TYPE_INVALID))
		return -ENOMEM;
	return connection_call(gpuarb, gpuarb->connection, call, NULL, NULL);
}

GPUARB_EXPORT int gpuarb_start(struct gpuarb *gpuarb, uint64_t usec)
{
	uint64_t answer_usec;
	int r;

	if (!gpuarb)
		return -EINVAL;

	handle_begin(gpuarb);
	answer_usec = gpuarb->answer_usec;
	if (usec < answer_usec)
		gpuarb->answer_usec = usec;
	r = start_daemon(gpuarb);
	gpuarb->answer_usec = answer_usec;
	if (r == -ETIMEDOUT)
		r = fail(gpuarb, r,
			 "gpuarbd does not start on the bus at %s: read journalctl -u gpuarbd",
			 gpuarb->address);
	return handle_end(gpuarb, r);
}

struct gpuarb *gpuarb_reference(struct gpuarb *gpuarb)
{
	gpuarb->references++;
	return gpuarb;
}

void gpuarb_unreference(struct gpuarb *gpuarb)
{
	if (--gpuarb->references > 0)
		return;

	handle_begin(gpuarb);
	connection_free(gpuarb->connection);
	free(gpuarb->address);
	free(gpuarb);
}

GPUARB_EXPORT void gpuarb_set_interactive(struct gpuarb *gpuarb, bool interactive)
{
	if (gpuarb)
		gpuarb->interactive = interactive;
}

GPUARB_EXPORT void gpuarb_set_timeout(struct gpuarb *gpuarb, uint64_t usec)
{
	if (gpuarb)
		gpuarb->answer_usec = usec;
}

GPUARB_EXPORT void gpuarb_close(struct gpuarb *gpuarb)
{
	if (!gpuarb)
		return;

	/* The leases that remain connect again when they have to call the daemon. */
	connection_free(TAKE_PTR(gpuarb->connection));
	gpuarb_unreference(gpuarb);
}

GPUARB_EXPORT const char *gpuarb_last_error(const struct gpuarb *gpuarb)
{
	return gpuarb ? last_sentence(gpuarb) : open_sentence;
}
