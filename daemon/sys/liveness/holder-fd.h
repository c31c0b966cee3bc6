/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The fds that leases live by, one by one: our end of a pair, or (pid not 0) a pidfd. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/liveness/store.h"

/* Ours is [0], and can only send; [1] is the client's, and can only receive. */
int holder_fd_pair(int pair[static 2]);

/* A pidfd of our own: a duplicate would be the same file, which a client can bind to many
 * leases, and the store keeps but once. */
int holder_fd_copy(int pidfd, pid_t pid);

/* Whether it is one of those. A pidfd of a process that has ended may be any. */
bool holder_fd_is(int fd, pid_t pid);

/* The name of one of those in the store. */
void holder_fd_name(char name[static STORE_NAME_MAX], uint64_t lease, pid_t pid, int fd);
