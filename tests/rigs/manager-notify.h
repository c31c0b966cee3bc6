/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a program tells its service manager: the other end of sd_notify(3). */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define NOTIFICATION_FDS 253 /* SCM_MAX_FD */

struct notification {
	pid_t sender; /* by the kernel's word */
	char text[4096];
	int fds[NOTIFICATION_FDS]; /* close-on-exec, and the taker's */
	size_t n_fds;
};

/* Opens a socket, and says what to put into NOTIFY_SOCKET. */
int notify_open(char ret_address[static 32]);

/* false: there is nothing to read now. */
bool notify_take(int fd, struct notification *ret);

/* Whether it has this line. */
bool notification_has(const struct notification *notification, const char *line);

/* The value of the line NAME=VALUE; false if there is none, or it is too long. */
bool notification_value(const struct notification *notification, const char *name, char *ret,
			size_t size);
