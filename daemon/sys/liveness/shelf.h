/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Many descriptors as one: a message with their names and copies of them, in the queue of a socket
 * whose other end is closed. systemd compares each descriptor that it is to keep with all that it
 * keeps, so a Reserve took longer the more leases there were. The queue lives as long as the socket,
 * which the service manager keeps, and reading does not empty it. This is not for a few descriptors:
 * before Linux 6.10, whenever a socket is closed the kernel walks through all sockets in such queues.
 */

#include <stddef.h>

#include "sys/liveness/store.h"

#define SHELF_MAX 240U /* SCM_MAX_FD of Linux is 253 */

struct shelf_entry {
	char name[STORE_NAME_MAX];
	int fd;
};

/* Makes a socket that has copies of these descriptors, at most SHELF_MAX; the caller owns *ret. */
int shelf_write(const struct shelf_entry *entries, size_t n, int *ret);

/* Reads copies of all descriptors, which the caller owns; the socket keeps its own. -EBADMSG: no such
 * socket. -EMFILE: this process has too many open files. */
int shelf_read(int socket, struct shelf_entry entries[static SHELF_MAX], size_t *ret_n);
