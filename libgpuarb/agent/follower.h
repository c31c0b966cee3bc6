/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Follows one lease by its number, on a connection of its own and without its holder. Outlasts
 * restarts of the daemon and the bus.
 */

#include "libgpuarb/connection/connection.h"

struct follower {
	struct gpuarb *gpuarb; /* failures are noted here */
	uint64_t id;
	struct connection *connection; /* NULL: none at the moment */
	bool stale;                    /* the lease may have changed since it was read */

	uint64_t acknowledged; /* the generation that this daemon has accepted; 0: none */

	uint64_t pause_usec; /* after a failure, before the next try; 0: the last call succeeded */
	unsigned refusals; /* of acknowledgements, one after another: each makes the pause longer */
	uint64_t retry;    /* the end of the pause */
};

/* A lease at one moment. */
struct lease_copy {
	struct gpuarb_lease_info info;
	struct arena arena; /* what info points to */
};
void lease_copy_clear(struct lease_copy *copy);

/* Does not connect. cancel: an fd; while it is readable waits end with -ECANCELED. NULL: none. */
int follower_new(const char *address, uint64_t id, const int *cancel, struct follower **ret);
void follower_free(struct follower *follower); /* takes NULL */
DEFINE_CLEANUP(struct follower *, follower_free)

/*
 * Reads the lease into *ret, which is cleared first. -ENOENT: it has ended. -ECANCELED. After every
 * other failure try again when follower_wait() returns.
 */
int follower_read(struct follower *follower, struct lease_copy *ret);

/* Acknowledges the generation, unless this daemon has accepted that. A daemon that was started since is told
 * again: it may not know. Failures as of follower_read(), and refusals of the daemon, after which it is to be
 * acknowledged again. */
int follower_acknowledge(struct follower *follower, uint64_t generation);

/* Whether to read now: the lease may have changed, and no pause is running. */
bool follower_due(const struct follower *follower);

/* Waits until follower_due() may be true: 0. -ETIMEDOUT: the deadline came first. -ECANCELED:
 * *cancel is readable; NULL: nothing cancels the wait. */
int follower_wait(struct follower *follower, const int *cancel, uint64_t deadline);
