/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/connection/basics.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

struct arena_block {
	struct arena_block *next;
	max_align_t data[];
};

void *arena_alloc(struct arena *arena, size_t n, size_t size)
{
	struct arena_block *block;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*block) + 1, &bytes))
		return NULL;

	block = calloc(1, bytes);
	if (!block)
		return NULL;

	block->next = arena->blocks;
	arena->blocks = block;
	return block->data;
}

void *arena_copy(struct arena *arena, const void *data, size_t n, size_t size)
{
	void *copy = arena_alloc(arena, n, size);

	if (copy && n > 0)
		memcpy(copy, data, n * size);
	return copy;
}

char *arena_string(struct arena *arena, const char *string)
{
	return arena_copy(arena, string, strlen(string) + 1, 1);
}

void arena_clear(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}

void arena_object_free(void *object)
{
	if (object)
		arena_clear(object);
	free(object);
}

void arena_take(struct arena *arena, struct arena *from)
{
	arena_clear(arena);
	*arena = *from;
	*from = (struct arena){ NULL };
}

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

int poll_until(struct pollfd *fds, size_t n, uint64_t deadline)
{
	uint64_t now = now_usec(), usec = deadline > now ? deadline - now : 0;
	struct timespec left = { .tv_sec = (time_t)(usec / 1000000),
				 .tv_nsec = (long)(usec % 1000000) * 1000 };
	int r = ppoll(fds, n, deadline == UINT64_MAX ? NULL : &left, NULL);

	if (r < 0)
		return -errno;
	return r == 0 ? -ETIMEDOUT : r;
}
