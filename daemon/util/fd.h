/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <unistd.h>

#include "util/base.h"

/* For _cleanup_(): closes what is open; -1 is not. */
static inline void close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define _cleanup_fd_ _cleanup_(close_fd)

/* One message, without waiting for room, and fd with it unless that is negative. */
int send_with_fd(int socket, const char *text, size_t size, int fd);
