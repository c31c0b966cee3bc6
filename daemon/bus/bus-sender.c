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

#include "bus/bus-sender.h"
#include "bus/bus-read.h"
#include "bus/bus-reply.h"
#include "bus/bus-unread.h"
#include "core/ledger/ledger.h"

static int compare(const void *a, const void *b)
{
	const struct bus_peer *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static struct bus_peer *peer_free(struct bus_peer *peer)
{
	peer->bus->unknown(peer, RESULT_OK, NULL);
	bus_unread_forget(peer);
	if (peer->user)
		TAILQ_REMOVE(&peer->user->peers, peer, link);
	sd_bus_slot_unref(peer->lookup);
	free(peer);
	return NULL;
}
DEFINE_CLEANUP(struct bus_peer *, peer_free)

static void forget(struct bus_peer *peer)
{
	tdelete(peer, &peer->bus->peers, compare);
	peer_free(peer);
}

/* Answers the calls that wait and forgets the peer: its next call starts another look-up. */
static void refuse(struct bus_peer *peer, enum result_kind kind, const char *sentence)
{
	peer->bus->unknown(peer, kind, sentence);
	forget(peer);
}

void bus_peer_unqueue(struct bus_peer *peer)
{
	peer->n_queued--;
	if (peer->closed && peer->n_queued == 0)
		forget(peer);
}

static int read_groups(sd_bus_message *m, struct caller *caller)
{
	const void *groups = NULL;
	size_t size = 0;
	int r;

	r = sd_bus_message_enter_container(m, 'v', "au");
	if (r >= 0)
		r = sd_bus_message_read_array(m, 'u', &groups, &size);
	/* The tenant of a group that is left out would not bind the user. */
	if (r >= 0 && size / sizeof(uint32_t) > CALLER_GROUPS)
		return -E2BIG;
	caller->n_groups = size / sizeof(uint32_t);
	if (caller->n_groups > 0)
		memcpy(caller->groups, groups, caller->n_groups * sizeof(uint32_t));
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_credential(sd_bus_message *m, const char *key, void *userdata)
{
	struct caller *caller = userdata;

	if (strcmp(key, "UnixGroupIDs") == 0)
		return read_groups(m, caller);
	if (strcmp(key, "UnixUserID") == 0)
		return sd_bus_message_read(m, "v", "u", &caller->uid);
	if (strcmp(key, "ProcessID") == 0)
		return sd_bus_message_read(m, "v", "u", &caller->pid);
	return sd_bus_message_skip(m, "v");
}

/* -EACCES: the bus does not know the user. A subordinate uid gives no right of an administrator: root
 * does not trust what runs in its containers. */
static int read_credentials(const struct bus *bus, sd_bus_message *m, struct caller *ret)
{
	struct caller caller = { .uid = (uid_t)-1 };
	int r = bus_read_entries(m, read_credential, &caller);

	if (r < 0 || caller.uid == (uid_t)-1)
		return r < 0 ? r : -EACCES;

	caller.administrator = caller.uid == 0 || caller.uid == geteuid();
	caller.uid = subuids_user(&bus->arbiter->settings->subuids, caller.uid);
	*ret = caller;
	return 0;
}

static int on_credentials(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct bus_peer *peer = userdata;
	int r = sd_bus_message_is_method_error(m, NULL)
			? -EACCES
			: read_credentials(peer->bus, m, &peer->caller);

	/* No error for a connection that has closed: the bus sends NameOwnerChanged first, and
	 * on_name_lost() forgets the peer and this look-up. */
	if (r < 0) {
		refuse(peer, RESULT_NOT_PERMITTED,
		       r == -E2BIG
			       ? "Access denied: the user is in more than 1024 groups"
			       : "Access denied: the bus does not know the user of this connection: "
				 "connect from a process that the bus can identify");
		return 1;
	}
	peer->user = bus_user_get(peer->bus, &peer->caller);
	if (!peer->user) {
		refuse(peer, RESULT_NO_MEMORY, "out of memory");
		return 1;
	}
	TAILQ_INSERT_TAIL(&peer->user->peers, peer, link);
	peer->lookup = sd_bus_slot_unref(peer->lookup);
	if (peer->caller.pid > 0)
		peer->bus->host->describe(peer->bus->userdata, peer->caller.pid, &peer->caller);
	peer->bus->known(peer);
	return 1;
}

static struct bus_peer *find(struct bus *bus, const char *name)
{
	struct bus_peer key;
	void *node;

	snprintf(key.name, sizeof(key.name), "%s", name);
	node = tfind(&key, &bus->peers, compare);
	return node ? *(struct bus_peer **)node : NULL;
}

static int add(struct bus *bus, const char *name, struct bus_peer **ret)
{
	_cleanup_(peer_freep) struct bus_peer *peer = calloc(1, sizeof(*peer));
	int r;

	if (!peer)
		return -ENOMEM;
	peer->bus = bus;
	TAILQ_INIT(&peer->calls);
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

struct bus_peer *bus_peer_of(struct bus *bus, sd_bus_message *call)
{
	const char *name = sd_bus_message_get_sender(call);
	struct bus_peer *peer = find(bus, name);
	int r = peer ? 0 : add(bus, name, &peer);

	if (r < 0)
		sd_bus_reply_method_errno(call, r, NULL);
	return r < 0 ? NULL : peer;
}

const struct caller *bus_sender(struct bus *bus, sd_bus_message *call)
{
	const struct bus_peer *peer = find(bus, sd_bus_message_get_sender(call));

	return peer && peer->user ? &peer->caller : NULL;
}

/* Calls that it has sent are still served. */
void bus_forget_sender(struct bus *bus, const char *name)
{
	struct bus_peer *peer = find(bus, name);

	if (!peer)
		return;
	peer->closed = true;
	if (!peer->user || peer->n_queued == 0)
		forget(peer);
	else
		bus_unread_forget(peer);
}

void bus_drop_senders(struct bus *bus)
{
	while (bus->peers)
		refuse(*(struct bus_peer **)bus->peers, RESULT_SHUTDOWN, BUS_STOPPING);
}
