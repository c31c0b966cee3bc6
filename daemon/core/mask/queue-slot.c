/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/queue-slot.h"

#include <stdlib.h>

#include "util/base.h"

static int compare(const void *a, const void *b)
{
	const struct observed_mask *x = a, *y = b;

	if (x->kfd_gpu_id != y->kfd_gpu_id)
		return x->kfd_gpu_id < y->kfd_gpu_id ? -1 : 1;
	if (x->sdma != y->sdma)
		return x->sdma ? 1 : -1;
	return x->doorbell < y->doorbell ? -1 : x->doorbell > y->doorbell;
}

void queue_slots_join(struct queue_slot *slots, size_t n, struct observed_mask *queues,
		      size_t n_queues)
{
	if (n_queues > 0)
		qsort(queues, n_queues, sizeof(*queues), compare);
	for (size_t i = 0; i < n; i++) {
		struct observed_mask key = { .kfd_gpu_id = slots[i].kfd_gpu_id,
					     .sdma = slots[i].sdma,
					     .doorbell = slots[i].doorbell };
		const struct observed_mask *queue = NULL;

		if (slots[i].active && slots[i].doorbell != 0 && n_queues > 0)
			queue = bsearch(&key, queues, n_queues, sizeof(*queues), compare);
		slots[i].pid = queue ? queue->pid : 0;
	}
}

bool queue_slots_shape(const struct queue_slot *slots, size_t n, uint32_t kfd_gpu_id,
		       unsigned *ret_pipes, unsigned *ret_queues)
{
	unsigned pipes = 0, queues = 0;

	for (size_t i = 0; i < n; i++) {
		if (slots[i].kfd_gpu_id != kfd_gpu_id || slots[i].sdma)
			continue;
		pipes = max_u(pipes, slots[i].pipe + 1);
		queues = max_u(queues, slots[i].queue + 1);
	}
	if (pipes == 0)
		return false;
	*ret_pipes = pipes;
	*ret_queues = queues;
	return true;
}

void queue_slots_count(const struct queue_slot *slots, size_t n, const struct observed_mask *queues,
		       size_t n_queues, uint32_t kfd_gpu_id, unsigned *ret_queues,
		       unsigned *ret_without)
{
	unsigned all = 0, placed = 0;

	for (size_t i = 0; i < n_queues; i++)
		all += queues[i].kfd_gpu_id == kfd_gpu_id && !queues[i].sdma;
	for (size_t i = 0; i < n; i++)
		placed += slots[i].kfd_gpu_id == kfd_gpu_id && !slots[i].sdma &&
			  slots[i].xcc == 0 && slots[i].pid != 0;
	*ret_queues = all;
	*ret_without = all > placed ? all - placed : 0;
}
