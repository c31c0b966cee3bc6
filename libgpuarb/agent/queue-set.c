/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/queue-set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool agent_grant_valid(const struct agent_grant *grant, size_t size)
{
	if (size < offsetof(struct agent_grant, parts) || grant->version != AGENT_VERSION ||
	    grant->n_parts > AGENT_PARTS || grant->generation == 0 ||
	    size != agent_grant_size(grant))
		return false;
	for (size_t i = 0; i < grant->n_parts; i++)
		if (grant->parts[i].n_words == 0 || grant->parts[i].n_words > MASK_WORDS ||
		    grant->parts[i].n_environment > MASK_WORDS)
			return false;
	return true;
}

void queue_set_clear(struct queue_set *queue_set)
{
	free(queue_set->queues);
	queue_set->queues = NULL;
	queue_set->n = 0;
	queue_set->grant.generation = 0;
	queue_set->grant.n_parts = 0;
}

static const struct agent_part *find_part(const struct queue_set *queue_set, uint32_t kfd_gpu_id)
{
	for (size_t i = 0; i < queue_set->grant.n_parts; i++)
		if (queue_set->grant.parts[i].kfd_gpu_id == kfd_gpu_id)
			return &queue_set->grant.parts[i];
	return NULL;
}

static struct queue_set_queue *find_queue(const struct queue_set *queue_set, uint32_t id)
{
	for (size_t i = 0; i < queue_set->n; i++)
		if (queue_set->queues[i].id == id)
			return &queue_set->queues[i];
	return NULL;
}

static void take_mask(const uint32_t *word, uint32_t words, struct mask *ret)
{
	*ret = (struct mask){ .words = words };
	memcpy(ret->word, word, words * sizeof(*word));
}

/* The grant's mask within what the program wants; all of it where the two have nothing in common,
 * or leave an XCC without a CU: the program cannot know, and must not get stuck. */
static void wanted(const struct agent_part *part, const struct queue_set_queue *queue,
		   struct mask *ret)
{
	struct mask grant;
	uint32_t xcc;

	take_mask(part->cu_mask, part->n_words, &grant);
	if (mask_narrow(&grant, &queue->own, part->xccs, ret, &xcc) < 0)
		*ret = grant;
}

/* Each change costs a preemption of the GPU: not without need. */
static int set(const struct queue_set *queue_set, int fd, struct queue_set_queue *queue)
{
	const struct agent_part *part = find_part(queue_set, queue->kfd_gpu_id);
	struct mask next;
	int r;

	if (!part)
		return 0;
	wanted(part, queue, &next);
	if (queue->now.words > 0 && mask_same(&queue->now, &next))
		return 0;
	r = queue_set->set_mask(fd, queue->id, &next, queue_set->userdata);
	if (r >= 0)
		queue->now = next;
	return r;
}

static struct queue_set_queue *append(struct queue_set *queue_set)
{
	struct queue_set_queue *queues = realloc(queue_set->queues,
						 (queue_set->n + 1) * sizeof(*queues));

	if (!queues)
		return NULL;
	queue_set->queues = queues;
	return &queues[queue_set->n++];
}

int queue_set_made(struct queue_set *queue_set, int fd, uint32_t id, uint32_t kfd_gpu_id)
{
	struct queue_set_queue *queue;
	int r;

	queue_set_gone(queue_set, id); /* the program destroyed it in a way that was not seen */
	if (!find_part(queue_set, kfd_gpu_id))
		return 0;
	queue = append(queue_set);
	if (!queue)
		return -ENOMEM;

	*queue = (struct queue_set_queue){ .id = id, .kfd_gpu_id = kfd_gpu_id };
	r = set(queue_set, fd, queue);
	if (r < 0)
		queue_set->n--;
	return r;
}

/* The environment's mask is what the runtime asks for every queue: no wish of the program. */
static bool is_wish(const struct agent_part *part, const struct mask *own)
{
	struct mask environment;

	take_mask(part->environment, part->n_environment, &environment);
	return environment.words == 0 || !mask_same(&environment, own);
}

int queue_set_asked(struct queue_set *queue_set, int fd, uint32_t id, const struct mask *own)
{
	struct queue_set_queue *queue = find_queue(queue_set, id);
	const struct agent_part *part = queue ? find_part(queue_set, queue->kfd_gpu_id) : NULL;
	struct mask before;
	int r;

	if (!part)
		return -ENOENT;

	before = queue->own;
	queue->own = (struct mask){ .words = 0 };
	if (is_wish(part, own))
		queue->own = *own;
	r = set(queue_set, fd, queue);
	if (r < 0)
		queue->own = before;
	return r;
}

void queue_set_gone(struct queue_set *queue_set, uint32_t id)
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
		int r = set(queue_set, fd, &queue_set->queues[i]);

		if (r == -EFAULT) /* the driver does not know it: it has gone unseen */
			queue_set_gone(queue_set, queue_set->queues[i].id);
		else if (r < 0 && error == 0)
			error = r;
	}
	return error;
}
