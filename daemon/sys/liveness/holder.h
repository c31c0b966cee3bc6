/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What keeps leases alive, watched: the daemon's ends of holder pairs, and pidfds of bound
 * processes. No polling: each end is an event.
 *
 * Reading is shut down on the daemon's end before the other end leaves, so nothing that a
 * client sends (its own end included) can keep a lease alive.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "util/base.h"
#include "sys/liveness/store.h"

struct holders;

struct holders_callbacks {
	void (*holder_gone)(void *userdata, uint64_t lease);
	void (*bound_gone)(void *userdata, uint64_t lease, pid_t pid);
};

/* Ends of holders of leases that are no more, with a last record that nobody has read yet. */
#define HOLDERS_LEAVING_MAX 256U

/* store: keeps what keeps leases alive over a restart, under the names lease-ID-pid-PID and
 * lease-ID-INODE (the end of a holder). Each has a name of its own, so that each is
 * forgotten when it ends and what is kept never is more than holders_count(): the manager
 * sees a hang-up itself, but at its leisure. The store outlives holders. */
int holders_new(sd_event *event, struct store *store, const struct holders_callbacks *callbacks,
		void *userdata, struct holders **ret);

/* What is in the store stays there. */
struct holders *holders_free(struct holders *holders);
DEFINE_CLEANUP(struct holders *, holders_free)

/* Makes a pair for the lease; returns the client's end, an fd that the caller owns.
 * -EMFILE and the like from the kernel. It is in the store, or will be: store_settle(). */
int holders_add(struct holders *holders, uint64_t lease);

/* Watches a process, whose pid process_of_pidfd() has told; takes no ownership of pidfd. A
 * process that is bound to this lease already is not bound twice: -EEXIST. */
int holders_bind(struct holders *holders, uint64_t lease, int pidfd, pid_t pid);

/* The pidfd of a bound process, which stays ours; -1: it is not bound to the lease. */
int holders_process(const struct holders *holders, uint64_t lease, pid_t pid);

/* Undoes a holders_bind(), without callback; nothing where there was none. */
void holders_unbind(struct holders *holders, uint64_t lease, pid_t pid);

/* How many there can be in a store: their names are one variable of the environment of the next
 * daemon, and Linux starts no program with one of 128 KiB. id: the next lease's. */
unsigned holders_most(uint64_t id);

/* Whether this is a name of ours in the store; *ret_pid is 0 for the end of a holder. */
bool holders_parse_name(const char *name, uint64_t *ret_lease, pid_t *ret_pid);

/* Goes on with what an earlier daemon kept under such a name; takes fd, also on failure.
 * What has ended meanwhile is told by the callbacks in the next turn of the loop. -EINVAL:
 * it is not what the name says; -EEXIST: this process is bound. What is refused stays in the
 * store until store_forget(). */
int holders_adopt(struct holders *holders, uint64_t lease, pid_t pid, int fd);

/* Sends the record to every holder of the lease. Where a queue is full the latest record
 * waits, alone, and goes out when there is room: copies are kept, never a backlog. */
void holders_tell(struct holders *holders, uint64_t lease, const void *record, size_t size);

/* Closes all that belongs to the lease, without callbacks, and takes it out of the store. A
 * record that waits for room in a holder's queue still goes out when there is some: that
 * end is closed then, or when HOLDERS_LEAVING_MAX others came after it. */
void holders_drop(struct holders *holders, uint64_t lease);

/* Ends of holders, also of those that are leaving, and bound processes: an fd each. */
size_t holders_count(const struct holders *holders);
