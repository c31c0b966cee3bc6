/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One lease, followed by its number on a connection of its own: for who must know of each change
 * of it and leaves its holder to others. The bus and the daemon may go and come.
 */

#include "libgpuarb/connection/call.h"

struct follower {
	struct gpuarb *gpuarb; /* failures are noted here */
	uint64_t id;
	struct connection *connection; /* NULL: there is none now */
	bool stale;                    /* it may be another than it was when it was read last */

	/* After a failure: how long it was to be, in microseconds, and until when. */
	uint64_t pause, retry; /* 0: the last call did it */
};

/* What the lease is at one moment. */
struct snapshot {
	struct gpuarb_lease_info info;
	struct arena arena; /* what info points to */
};
void snapshot_clear(struct snapshot *snapshot);

/* Does not connect. wake as of struct gpuarb: what follows gives up when it is readable. */
int follower_new(const char *address, uint64_t id, const int *wake, struct follower **ret);
struct follower *follower_free(struct follower *follower); /* takes NULL, returns it */
DEFINE_CLEANUP(struct follower *, follower_free)

/*
 * Reads the lease, all of it, into *ret, which is cleared before. -ENOENT: it has ended.
 * -ECANCELED. Every other failure is to be tried again, and follower_wait() says when.
 */
int follower_read(struct follower *follower, struct snapshot *ret);

/* -ENOENT, -ECANCELED, and others as above; -ERANGE and the like are the daemon's own refusal. */
int follower_acknowledge(struct follower *follower, uint64_t generation);

/* It is to be read: stale, and no failure was just before. */
bool follower_due(const struct follower *follower);

/* Waits until that may be so: 0; or until a moment: -ETIMEDOUT; or *wake is readable: -ECANCELED.
 * NULL: there is nothing to wake it. */
int follower_wait(struct follower *follower, const int *wake, uint64_t deadline);
