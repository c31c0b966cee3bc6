/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The service manager's store of file descriptors (sd_notify(3), FDSTORE=1), which survive this
 * process. Messages go over a socket of its own, because sd_notify() may block.
 *
 * The manager drops a descriptor silently if its store is full: callers count what they keep and
 * never exceed store_max().
 */

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "util/base.h"
#include "util/diagnostics.h"

#define STORE_NAME_MAX 64U
#define STORE_PATIENCE_MSEC 5000

/* At most this many copies of kept descriptors wait until the manager reads earlier messages. The
 * limit of open files must have room for them and one barrier. */
#define STORE_QUEUE_MAX 1024U

struct store;

/*
 * Reads the environment: NOTIFY_SOCKET, FDSTORE (the size of the store, if the manager tells it),
 * and LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, which are unset. Probes with a socket pair whether
 * the manager has a store with room: the only call that waits, three times for at most patience_msec. If there
 * is no store, a diagnostic tells what a restart does to leases. -errno if that could not be found
 * out.
 */
int store_new(sd_event *event, int patience_msec, struct store **ret,
	      struct diagnostics *diagnostics);
struct store *store_free(struct store *store); /* takes NULL; kept descriptors stay in the store */
DEFINE_CLEANUP(struct store *, store_free)

bool store_works(const struct store *store);   /* false after the manager ended */
unsigned store_max(const struct store *store); /* UINT_MAX: unknown */

/* Returns 1 and the next descriptor of an earlier process (close-on-exec, owned by the caller), or
 * 0 if there are no more. */
int store_take(struct store *store, char name[static STORE_NAME_MAX], int *ret);

/* Keeps a copy of fd under a name of small letters, digits and dashes. Does nothing without a
 * store. -EAGAIN (STORE_QUEUE_MAX), -ENOMEM and others if it could not be sent. Every fd must be an
 * open file of its own: the manager does not keep a duplicate of one that it has, whatever its
 * name. */
int store_keep(struct store *store, const char *name, int fd);

/* Removes all descriptors of this name. */
void store_forget(struct store *store, const char *name);

/*
 * Calls back when the manager has everything that was kept so far: at once without a store, else
 * from the loop, in the order of the calls. r < 0: it may not have it, because it ended or because
 * there was no memory for a message that had to wait. store_free() calls the rest back with
 * -ECANCELED; a callback must not call it. One barrier (BARRIER=1) serves all waiters. -ENOMEM,
 * -EMFILE and others: there will be no callback.
 */
typedef void (*store_settled_t)(void *userdata, int r);
int store_settle(struct store *store, store_settled_t settled, void *userdata);
