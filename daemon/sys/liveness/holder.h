/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Watches what keeps leases alive: the daemon's ends of holder pairs, and pidfds of bound
 * processes. Each is an event source; nothing is polled.
 *
 * Reading is shut down on the daemon's end before the client gets the other end, so nothing that a
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
struct shelf;

struct holders_callbacks {
	void (*holder_gone)(void *userdata, uint64_t lease);
	void (*bound_gone)(void *userdata, uint64_t lease, pid_t pid);
};

/* Holders of dropped leases whose last record waits for room. */
#define HOLDERS_LEAVING_MAX 256U

/* store: keeps the descriptors over a restart, each under a name of its own, so that it is removed when it ends,
 * and the store never has more than holders_count(): the manager itself notices a hang-up at some later
 * time. The store must outlive holders. */
int holders_new(sd_event *event, struct store *store, const struct holders_callbacks *callbacks,
		void *userdata, struct holders **ret);

/* Leaves the store as it is. */
struct holders *holders_free(struct holders *holders);
DEFINE_CLEANUP(struct holders *, holders_free)

/* Makes a pair for the lease and returns the client's end, which the caller owns, or -errno. The
 * daemon's end is in the store after the next store_settle(). */
int holders_add(struct holders *holders, uint64_t lease);

/* Watches a process, whose pid is that of process_of_pidfd(). Takes no ownership of pidfd. delegated:
 * root binds it. -EEXIST: the process is already bound to this lease. */
int holders_bind(struct holders *holders, uint64_t lease, int pidfd, pid_t pid, bool delegated);

/* The pidfd of a bound process, which stays owned here; -1: it is not bound to the lease. */
int holders_process(const struct holders *holders, uint64_t lease, pid_t pid);

/* The bound process with which the innermost container begins that has this process; 0: none. */
pid_t holders_container(const struct holders *holders, pid_t pid);

/* Undoes holders_bind() without callback. Does nothing if the process is not bound. */
void holders_unbind(struct holders *holders, uint64_t lease, pid_t pid);

/* The most entries that a store can have: their names are one environment variable of the next
 * daemon, and Linux does not start a program with one of 128 KiB. id: of the next lease. */
unsigned holders_most(uint64_t id);

/* From this many entries on, the oldest are stored as one descriptor, SHELF_MAX at a time: the service
 * manager needs room for one more. At first: never. A copy on a shelf stays until all entries on it have
 * ended; the client's end ends all the same. */
#define HOLDERS_SHELVE_AT 512U
void holders_shelve_at(struct holders *holders, unsigned n);

/* A shelf of an earlier daemon, shelf-NUMBER in the store: takes ownership of fd, also on failure. Adopt
 * what shelf_read() reads from it, with it; then call holders_adopted(). */
int holders_take_shelf(struct holders *holders, uint64_t number, int fd, struct shelf **ret);
void holders_adopted(struct holders *holders);

/* What the store has of a lease: lease-ID-INODE, the end of a holder; lease-ID-pid-PID and, if root bound
 * it, lease-ID-root-PID, a bound process; lease-ID-cap-PID, the listener of a filter (cap/caps.c). */
enum stored_kind { STORED_END, STORED_BOUND, STORED_DELEGATED, STORED_CAP, STORED_KINDS };

struct stored_name {
	uint64_t lease; /* no lease has the id 0 */
	enum stored_kind kind;
	uint64_t number; /* the inode of an end, else the pid */
};

void stored_name_write(const struct stored_name *of, char ret[static STORE_NAME_MAX]);
bool stored_name_parse(const char *name, struct stored_name *ret);

/* Continues with a descriptor that an earlier daemon kept under such a name, not of a STORED_CAP; takes ownership
 * of fd, also on failure. If it has ended meanwhile, the callback comes in the next turn of the loop.
 * -EINVAL: fd is not what its name says; -EEXIST: it was adopted already, or another pidfd of the
 * process. A refused descriptor stays in the store until store_forget(). shelf: NULL, or the one that
 * has the descriptor. */
int holders_adopt(struct holders *holders, const struct stored_name *name, int fd,
		  struct shelf *shelf);

/* Sends the record to every holder of the lease. If a queue is full, a copy of the latest record
 * waits until there is room; older ones are dropped. */
void holders_tell(struct holders *holders, uint64_t lease, const void *record, size_t size);

/* Closes all entries of the lease without callbacks, and removes them from the store. A record that
 * waits for room is still sent: that end is closed after it, or when HOLDERS_LEAVING_MAX others
 * follow. */
void holders_drop(struct holders *holders, uint64_t lease);

/* Entries, including those of dropped leases whose last record waits: one file descriptor each. */
size_t holders_count(const struct holders *holders);
