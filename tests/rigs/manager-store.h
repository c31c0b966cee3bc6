/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the stand-in for a service manager keeps for its program: the fd store of systemd's
 * service_add_fd_store(), by its observable behaviour. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct stored {
	int fd;
	dev_t device;
	ino_t inode;
	char name[256];
};

struct manager_store {
	struct stored *list; /* in the order in which they came */
	size_t n, max;
	int watch; /* epoll; readable when one has hung up; -1 before the first */
};

/* Takes fd. An fd that is there already is closed, and so, without a word, is what is too
 * much. poll: drop it when it hangs up. */
void manager_store_add(struct manager_store *store, const char *name, int fd, bool poll);

void manager_store_remove(struct manager_store *store, const char *name);

/* Drops what has hung up, or has an error. */
void manager_store_poll(struct manager_store *store);

void manager_store_clear(struct manager_store *store);

/* In a child before it executes: puts them at 3, 4, … and says so in LISTEN_PID, LISTEN_FDS
 * and LISTEN_FDNAMES, the latest first as systemd does. -EMFILE: they are beyond the limit
 * that the child will have. -errno. */
int manager_store_pass(const struct manager_store *store, rlim_t limit);
