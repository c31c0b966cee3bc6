/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The caller of a method: the credentials that the bus vouches for, asked for once for each
 * connection and kept until the connection closes. A bus never uses a unique name twice.
 */

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus/bus-private.h"

#define PEER_CALLS_MAX 1024U /* calls that wait for one look-up */

/* A call that waits until the credentials of its caller are known. */
struct waiting {
	sd_bus_message *call;
	sd_bus_message_handler_t handler;
	STAILQ_ENTRY(waiting) link;
};

/* A connection that has called a method. */
struct peer {
	struct bus *bus;
	char name[256];      /* unique name: names on a bus are at most 255 bytes long */
	sd_bus_slot *lookup; /* NULL: the caller is known */
	struct caller caller;
	STAILQ_HEAD(, waiting) waiting;
	size_t n_waiting;
};

static int compare(const void *a, const void *b)
{
	const struct peer *left = a, *right = b;

	return strcmp(left->name, right->name);
}

/* The call that has waited longest, for waiting_free(); NULL: none. */
static struct waiting *take_waiting(struct peer *peer)
{
	struct waiting *waiting = STAILQ_FIRST(&peer->waiting);

	if (!waiting)
		return NULL;
	STAILQ_REMOVE_HEAD(&peer->waiting, link);
	peer->n_waiting--;
	return waiting;
}

static void waiting_free(struct waiting *waiting)
{
	sd_bus_message_unref(waiting->call);
	free(waiting);
}

static struct peer *peer_free(struct peer *peer)
{
	if (!peer)
		return NULL;

	for (struct waiting *w; (w = take_waiting(peer));)
		waiting_free(w);
	sd_bus_slot_unref(peer->lookup);
	free(peer);
	return NULL;
}
DEFINE_CLEANUP(struct peer *, peer_free)

static void forget(struct peer *peer)
{
	tdelete(peer, &peer->bus->peers, compare);
	peer_free(peer);
}

/* Answers the waiting calls and forgets the peer: its next call starts another look-up. */
static void refuse_waiting(struct peer *peer, enum result_kind kind, const char *sentence)
{
	for (struct waiting *w; (w = take_waiting(peer));) {
		bus_refuse_as(w->call, kind, sentence);
		waiting_free(w);
	}
	forget(peer);
}

static void run_waiting(struct peer *peer)
{
	for (struct waiting *w; (w = take_waiting(peer));) {
		_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
		int r = w->handler(w->call, peer->bus, &error);

		if (r < 0 || sd_bus_error_is_set(&error))
			sd_bus_reply_method_errno(w->call, r, &error);
		waiting_free(w);
	}
}

static int read_groups(sd_bus_message *m, struct caller *caller)
{
	const void *groups;
	size_t size;
	int r;

	r = sd_bus_message_enter_container(m, 'v', "au");
	if (r >= 0)
		r = sd_bus_message_read_array(m, 'u', &groups, &size);
	if (r < 0)
		return r;

	/* A group beyond the last place is missing: that can only deny something. */
	caller->n_groups = size / sizeof(uint32_t);
	if (caller->n_groups > CALLER_GROUPS)
		caller->n_groups = CALLER_GROUPS;
	if (caller->n_groups > 0)
		memcpy(caller->groups, groups, caller->n_groups * sizeof(uint32_t));
	return sd_bus_message_exit_container(m);
}

static int read_credential(sd_bus_message *m, struct caller *caller)
{
	const char *key;
	uint32_t value;
	int r;

	r = sd_bus_message_read_basic(m, 's', &key);
	if (r < 0)
		return r;
	if (strcmp(key, "UnixGroupIDs") == 0)
		return read_groups(m, caller);
	if (strcmp(key, "UnixUserID") != 0 && strcmp(key, "ProcessID") != 0)
		return sd_bus_message_skip(m, "v");

	r = sd_bus_message_read(m, "v", "u", &value);
	if (r < 0)
		return r;
	if (key[0] == 'U')
		caller->uid = (uid_t)value;
	else
		caller->pid = (pid_t)value;
	return 0;
}

/* -EACCES: the bus does not know the user. */
static int read_credentials(sd_bus_message *m, struct caller *ret)
{
	struct caller caller = { .uid = (uid_t)-1 };
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	if (r < 0)
		return r;
	while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = read_credential(m, &caller);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	if (caller.uid == (uid_t)-1)
		return -EACCES;

	caller.administrator = caller.uid == 0 || caller.uid == geteuid();
	*ret = caller;
	return 0;
}

static int on_credentials(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct peer *peer = userdata;

	/* No error for a connection that has closed: the bus sends NameOwnerChanged first, and
	 * on_name_lost() forgets the peer and this look-up. */
	if (sd_bus_message_is_method_error(m, NULL) || read_credentials(m, &peer->caller) < 0) {
		refuse_waiting(peer, RESULT_NOT_PERMITTED,
			       "Access denied: the bus does not know the user of this connection: "
			       "connect from a process that the bus can identify");
		return 1;
	}

	peer->lookup = sd_bus_slot_unref(peer->lookup);
	if (peer->caller.pid > 0)
		peer->bus->host->describe(peer->bus->userdata, peer->caller.pid, &peer->caller);
	run_waiting(peer);
	return 1;
}

static struct peer *find(struct bus *bus, const char *name)
{
	struct peer key;
	void *node;

	snprintf(key.name, sizeof(key.name), "%s", name);
	node = tfind(&key, &bus->peers, compare);
	return node ? *(struct peer **)node : NULL;
}

static int add(struct bus *bus, const char *name, struct peer **ret)
{
	_cleanup_(peer_freep) struct peer *peer = calloc(1, sizeof(*peer));
	int r;

	if (!peer)
		return -ENOMEM;
	peer->bus = bus;
	STAILQ_INIT(&peer->waiting);
	snprintf(peer->name, sizeof(peer->name), "%s", name);
	r = sd_bus_call_method_async(bus->sd, &peer->lookup, "org.freedesktop.DBus",
				     "/org/freedesktop/DBus", "org.freedesktop.DBus",
				     "GetConnectionCredentials", on_credentials, peer, "s", name);
	if (r < 0)
		return r;
	if (!tsearch(peer, &bus->peers, compare))
		return -ENOMEM;
	*ret = TAKE_PTR(peer);
	return 0;
}

static int queue(struct peer *peer, sd_bus_message *call, sd_bus_message_handler_t handler)
{
	struct waiting *waiting;

	if (peer->n_waiting >= PEER_CALLS_MAX)
		return sd_bus_reply_method_errorf(
			call, SD_BUS_ERROR_LIMITS_EXCEEDED,
			"%u calls of this connection are waiting already: "
			"wait for their answers first",
			PEER_CALLS_MAX);
	waiting = calloc(1, sizeof(*waiting));
	if (!waiting)
		return -ENOMEM;
	waiting->call = sd_bus_message_ref(call);
	waiting->handler = handler;
	STAILQ_INSERT_TAIL(&peer->waiting, waiting, link);
	peer->n_waiting++;
	return 0;
}

const struct caller *bus_sender(struct bus *bus, sd_bus_message *call,
				sd_bus_message_handler_t handler)
{
	const char *name = sd_bus_message_get_sender(call);
	struct peer *peer = find(bus, name);
	int r = 0;

	if (peer && !peer->lookup)
		return &peer->caller;
	if (!peer)
		r = add(bus, name, &peer);
	if (r >= 0)
		r = queue(peer, call, handler);
	if (r < 0)
		sd_bus_reply_method_errno(call, r, NULL);
	return NULL;
}

static int on_name_lost(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct bus *bus = userdata;
	struct peer *peer;
	const char *name;

	if (sd_bus_message_read(m, "s", &name) < 0)
		return 0;
	bus_forget_deferred(bus, name);
	bus_forget_client_calls(bus, name);
	bus_forget_questions(bus, name);
	peer = find(bus, name);
	if (peer)
		forget(peer);
	return 0;
}

int bus_watch_senders(struct bus *bus)
{
	return sd_bus_add_match_async(bus->sd, NULL,
				      "type='signal',sender='org.freedesktop.DBus',"
				      "path='/org/freedesktop/DBus',"
				      "interface='org.freedesktop.DBus',"
				      "member='NameOwnerChanged',arg2=''",
				      on_name_lost, NULL, bus);
}

void bus_drop_senders(struct bus *bus)
{
	while (bus->peers)
		refuse_waiting(*(struct peer **)bus->peers, RESULT_SHUTDOWN, BUS_STOPPING);
}
