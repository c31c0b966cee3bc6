/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/connection/internal.h"

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
