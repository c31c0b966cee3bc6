/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What keeps leases alive, watched: the daemon's ends of holder pairs, and pidfds of bound
 * processes. No polling: each end is an event.
 *
 * Reading is shut down on the daemon's end before the other end leaves, so nothing that a
 * client sends (its own end included) can keep a lease alive.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "core/base.h"

struct holders;

struct holders_callbacks {
	void (*holder_gone)(void *userdata, uint64_t lease);
	void (*bound_gone)(void *userdata, uint64_t lease, pid_t pid);
};

int holders_new(sd_event *event, const struct holders_callbacks *callbacks, void *userdata,
		struct holders **ret);
struct holders *holders_free(struct holders *holders);
DEFINE_CLEANUP(struct holders *, holders_free)

/* Makes a pair for the lease; returns the client's end, an fd that the caller owns.
 * -EMFILE and the like from the kernel. */
int holders_add(struct holders *holders, uint64_t lease);

/* Watches a process; takes no ownership of pidfd (it keeps a duplicate). */
int holders_bind(struct holders *holders, uint64_t lease, int pidfd, pid_t pid);

/* Sends the record to every holder of the lease. Where a queue is full the latest record
 * waits, alone, and goes out when there is room: copies are kept, never a backlog. */
void holders_tell(struct holders *holders, uint64_t lease, const void *record, size_t size);

/* Closes all that belongs to the lease, without callbacks. */
void holders_drop(struct holders *holders, uint64_t lease);

/* Ends of holders and bound processes of all leases: an fd each. */
size_t holders_count(const struct holders *holders);
