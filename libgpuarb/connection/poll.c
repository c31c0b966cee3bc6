/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "libgpuarb/connection/internal.h"

uint64_t now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t deadline_after(uint64_t usec)
{
	uint64_t now = now_usec();

	return usec > UINT64_MAX - now ? UINT64_MAX : now + usec;
}

static struct timespec left_until(uint64_t deadline)
{
	uint64_t now = now_usec(), left = deadline > now ? deadline - now : 0;

	return (struct timespec){ .tv_sec = (time_t)(left / 1000000),
				  .tv_nsec = (long)(left % 1000000) * 1000 };
}

int poll_until(struct pollfd *fds, size_t n, uint64_t deadline)
{
	struct timespec left = left_until(deadline);
	int r = ppoll(fds, n, deadline == UINT64_MAX ? NULL : &left, NULL);

	if (r < 0)
		return -errno;
	return r == 0 ? -ETIMEDOUT : r;
}

void free_charp(char **p)
{
	free(*p);
}

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
