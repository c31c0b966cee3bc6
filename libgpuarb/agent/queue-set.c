/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/queue-set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/grow.h"

void queue_set_clear(struct queue_set *queue_set)
{
	free(queue_set->queues);
	queue_set->queues = NULL;
	queue_set->n = 0;
	queue_set->grant.generation = 0;
	queue_set->grant.n_partitions = 0;
}

static const struct agent_partition *find_partition(const struct queue_set *queue_set,
						    uint32_t kfd_gpu_id)
{
	for (size_t i = 0; i < queue_set->grant.n_partitions; i++)
		if (queue_set->grant.partitions[i].kfd_gpu_id == kfd_gpu_id)
			return &queue_set->grant.partitions[i];
	return NULL;
}

static struct queue_set_queue *find_queue(const struct queue_set *queue_set, uint32_t id)
{
	for (size_t i = 0; i < queue_set->n; i++)
		if (queue_set->queues[i].id == id)
			return &queue_set->queues[i];
	return NULL;
}

static void mask_of_words(const uint32_t *word, uint32_t words, struct mask *ret)
{
	*ret = (struct mask){ .words = words };
	memcpy(ret->word, word, words * sizeof(*word));
}

/* The granted CUs in the own mask. If there are none, or an XCC has none, all granted CUs: the
 * program does not know of the grant, and must not hang. */
static struct queue_state next_state(const struct agent_partition *partition,
				     const struct queue_set_queue *queue)
{
	struct queue_state next = { .has_turn = true,
				    .paused = partition->paused,
				    .priority = partition->priority };
	struct mask grant;
	uint32_t xcc;

	mask_of_words(partition->cu_mask, partition->n_words, &grant);
	if (mask_narrow(&grant, &queue->own, partition->xccs, &next.mask, &xcc) < 0)
		next.mask = grant;
	return next;
}

/* Sets the state of a queue unless it has it: a change preempts the GPU. */
static int update(const struct queue_set *queue_set, int fd, struct queue_set_queue *queue)
{
	const struct agent_partition *partition = find_partition(queue_set, queue->kfd_gpu_id);
	struct queue_state next;
	int r;

	if (!partition)
		return 0;
	next = next_state(partition, queue);
	r = queue_state_set(queue_set->driver, fd, queue->id, &queue->now, &next);
	if (r < 0 && r != -ENODATA)
		return r;
	queue->now.mask = next.mask;
	return 0;
}

int queue_set_add(struct queue_set *queue_set, int fd, uint32_t id, uint32_t kfd_gpu_id)
{
	struct queue_set_queue *queue;
	int r;

	queue_set_remove(queue_set, id); /* it was destroyed without our ioctl() */
	if (!find_partition(queue_set, kfd_gpu_id))
		return 0;
	queue = grow(&queue_set->queues, &queue_set->n, sizeof(*queue));
	if (!queue)
		return -ENOMEM;

	*queue = (struct queue_set_queue){ .id = id, .kfd_gpu_id = kfd_gpu_id };
	r = update(queue_set, fd, queue);
	if (r < 0)
		queue_set->n--;
	return r;
}

/* The runtime asks for the mask of the environment for every queue; that is no own mask. */
static bool is_own(const struct agent_partition *partition, const struct mask *own)
{
	struct mask environment;

	mask_of_words(partition->environment, partition->n_environment, &environment);
	return environment.words == 0 || !mask_same(&environment, own);
}

int queue_set_mask(struct queue_set *queue_set, int fd, uint32_t id, const struct mask *own)
{
	struct queue_set_queue *queue = find_queue(queue_set, id);
	const struct agent_partition *partition =
		queue ? find_partition(queue_set, queue->kfd_gpu_id) : NULL;
	struct mask before;
	int r;

	if (!partition)
		return -ENOENT;

	before = queue->own;
	queue->own = (struct mask){ .words = 0 };
	if (is_own(partition, own))
		queue->own = *own;
	r = update(queue_set, fd, queue);
	if (r < 0)
		queue->own = before;
	return r;
}

void queue_set_remove(struct queue_set *queue_set, uint32_t id)
{
	struct queue_set_queue *queue = find_queue(queue_set, id);

	if (queue)
		*queue = queue_set->queues[--queue_set->n];
}

int queue_set_follow(struct queue_set *queue_set, int fd, const struct agent_grant *grant)
{
	int error = 0;

	queue_set->grant = *grant;
	for (size_t i = queue_set->n; i-- > 0;) {
		int r = update(queue_set, fd, &queue_set->queues[i]);

		if (r == -EFAULT) /* it was destroyed without our ioctl() */
			queue_set_remove(queue_set, queue_set->queues[i].id);
		else if (r < 0 && error == 0)
			error = r;
	}
	return error;
}
