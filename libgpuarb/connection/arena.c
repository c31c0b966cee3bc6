/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/connection/internal.h"

struct pool_block {
	struct pool_block *next;
	max_align_t data[];
};

void *pool_alloc(struct pool *pool, size_t n, size_t size)
{
	struct pool_block *block;
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*block) + 1, &bytes))
		return NULL;

	block = calloc(1, bytes);
	if (!block)
		return NULL;

	block->next = pool->blocks;
	pool->blocks = block;
	return block->data;
}

void *pool_copy(struct pool *pool, const void *data, size_t n, size_t size)
{
	void *copy = pool_alloc(pool, n, size);

	if (copy && n > 0)
		memcpy(copy, data, n * size);
	return copy;
}

char *pool_string(struct pool *pool, const char *string)
{
	return pool_copy(pool, string, strlen(string) + 1, 1);
}

void pool_clear(struct pool *pool)
{
	while (pool->blocks) {
		struct pool_block *next = pool->blocks->next;

		free(pool->blocks);
		pool->blocks = next;
	}
}
