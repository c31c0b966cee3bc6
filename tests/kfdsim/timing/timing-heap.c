/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>

#include "kfdsim/timing/timing-internal.h"

int timing_heap_init(struct timing_heap *heap, size_t max)
{
	heap->blocks = calloc(max, sizeof(heap->blocks[0]));
	if (!heap->blocks)
		return -ENOMEM;
	heap->max = max;
	return 0;
}

static void sift_up(struct timing_heap *heap, size_t i, const struct timing_block *block)
{
	while (i > 0 && heap->blocks[(i - 1) / 2].end > block->end) {
		heap->blocks[i] = heap->blocks[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->blocks[i] = *block;
}

static void sift_down(struct timing_heap *heap, size_t i, const struct timing_block *block)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= heap->n)
			break;
		if (child + 1 < heap->n && heap->blocks[child + 1].end < heap->blocks[child].end)
			child++;
		if (heap->blocks[child].end >= block->end)
			break;
		heap->blocks[i] = heap->blocks[child];
		i = child;
	}
	heap->blocks[i] = *block;
}

void timing_heap_push(struct timing_heap *heap, const struct timing_block *block)
{
	sift_up(heap, heap->n++, block);
}

struct timing_block timing_heap_pop(struct timing_heap *heap)
{
	struct timing_block first = heap->blocks[0];
	struct timing_block last = heap->blocks[--heap->n];

	if (heap->n > 0)
		sift_down(heap, 0, &last);
	return first;
}

void timing_heap_order(struct timing_heap *heap)
{
	for (size_t i = heap->n / 2; i-- > 0;) {
		struct timing_block block = heap->blocks[i];

		sift_down(heap, i, &block);
	}
}
