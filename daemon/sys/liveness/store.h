/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service manager's fd store: what is kept there outlives this process. sd_notify(3),
 * FDSTORE=1; over a socket of our own, since sd_notify() may block.
 *
 * The manager says nothing when it throws an fd away because its store is full, so what is
 * kept is counted against store_max(), which must never be passed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "util/base.h"
#include "util/diagnostics.h"

#define STORE_NAME_MAX 64U

/* So many fds, copies of those that are kept, wait for the manager to read what was sent
 * before. Files for them, and one for the barrier, have to be left free. */
#define STORE_QUEUE_MAX 1024U

struct store;

/*
 * Takes over what is in the environment: NOTIFY_SOCKET, FDSTORE (the size of the store, where
 * the manager says it), and LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, which it unsets.
 * Finds out, with a pair that it keeps for a moment, whether the manager has a store with
 * room: the only thing here that waits, for at most five seconds. A note says what a restart
 * will do to leases where there is none. -errno where nothing can be said at all.
 */
int store_new(sd_event *event, struct store **ret, struct diagnostics *diagnostics);
struct store *store_free(struct store *store); /* what is kept stays kept; takes NULL */
DEFINE_CLEANUP(struct store *, store_free)

bool store_works(const struct store *store);   /* no longer, once the manager has gone */
unsigned store_max(const struct store *store); /* UINT_MAX: the manager does not say */

/* The next fd that an earlier process kept, close-on-exec, and the caller's. 0: none left. */
int store_take(struct store *store, char name[static STORE_NAME_MAX], int *ret);

/* Keeps a copy of fd under a name of small letters, digits and dashes. Without a store it
 * does nothing. -EAGAIN (STORE_QUEUE_MAX), -ENOMEM and others where it could not be handed
 * over. The manager takes a file that it has already, under whatever name, for the same and
 * does not keep it once more: each fd here must have been opened by itself. */
int store_keep(struct store *store, const char *name, int fd);

/* Forgets all that has this name. */
void store_forget(struct store *store, const char *name);

/*
 * Calls back when the manager has all that was kept so far: at once without a store, else
 * from the loop, in the order of the calls. r < 0: it is not known to have it (the manager
 * is gone, or no memory was left for something that had to wait for room). What still waits
 * is called back with -ECANCELED by store_free(), which a callback must not call itself. One
 * barrier (BARRIER=1) serves all that wait. -ENOMEM, -EMFILE and others: no callback comes.
 */
typedef void (*store_settled_t)(void *userdata, int r);
int store_settle(struct store *store, store_settled_t settled, void *userdata);
