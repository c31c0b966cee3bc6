/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/lease/apply.h"

/* Which partition's GPU it is on, or n. */
static size_t find_partition(const struct queue *queue, const struct gpuarb_partition *partitions,
			     size_t n)
{
	size_t i = 0;

	while (i < n && partitions[i].kfd_gpu_id != queue->kfd_gpu_id)
		i++;
	return i;
}

static const struct book_entry *find_same(const struct book *book, const struct queue *queue)
{
	for (size_t i = 0; i < book->n; i++) {
		const struct queue *known = &book->entries[i].queue;

		if (known->id == queue->id && known->kfd_gpu_id == queue->kfd_gpu_id &&
		    known->inode == queue->inode)
			return &book->entries[i];
	}
	return NULL;
}

int book_refresh(struct book *book, const struct queue_list *list,
		 const struct gpuarb_partition *partitions, size_t n)
{
	struct book fresh = { calloc(list->n + 1, sizeof(*fresh.entries)), 0 };

	if (!fresh.entries)
		return -ENOMEM;

	for (size_t i = 0; i < list->n; i++) {
		const struct queue *queue = &list->queues[i];
		size_t partition = find_partition(queue, partitions, n);
		const struct book_entry *known = find_same(book, queue);

		if (partition == n)
			continue;
		if (known)
			fresh.entries[fresh.n] = *known;
		fresh.entries[fresh.n].queue = *queue;
		fresh.entries[fresh.n].partition = partition;
		fresh.entries[fresh.n].next.words = 0;
		fresh.n++;
	}
	book_clear(book);
	*book = fresh;
	return 0;
}

void book_clear(struct book *book)
{
	free(book->entries);
	*book = (struct book){ NULL, 0 };
}

struct book_entry *book_find(struct book *book, size_t partition, uint32_t id)
{
	for (size_t i = 0; i < book->n; i++)
		if (book->entries[i].partition == partition && book->entries[i].queue.id == id)
			return &book->entries[i];
	return NULL;
}
