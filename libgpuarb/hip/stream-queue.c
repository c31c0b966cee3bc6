/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A new stream's queue: whether there is room for it, which one it is, and its mask. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "libgpuarb/hip/hip.h"

int queue_look(const struct creation *creation, struct queue_set *ret)
{
	int r = gpuarb_lease_queue_ids(creation->lease, creation->i, ret->ids, QUEUES_MAX);

	ret->n = r < 0 ? 0 : (size_t)r < QUEUES_MAX ? (size_t)r : QUEUES_MAX;
	return r < 0 ? r : 0;
}

bool queue_may_be_blind(const struct creation *creation)
{
	return creation->level == LEVEL_NORMAL && !creation->wgps &&
	       !strchr(creation->partition->gpu, '/') && !hip_variable("ROC_GLOBAL_CU_MASK");
}

size_t hip_count(const struct hip_lease *hip, size_t i, bool own)
{
	size_t n = 0;

	for (size_t k = 0; hip && k < hip->n; k++)
		n += hip->streams[k].partition == i && (!own || hip->streams[k].own);
	return n;
}

void hip_budget(const struct hip_lease *hip, const struct gpuarb_partition *partition, size_t i,
		int queues, struct budget *ret)
{
	*ret = (struct budget){
		.queues = partition->queues,
		.processes = partition->processes ? partition->processes : 1,
		.streams = partition->streams,
		.masked = hip_count(hip, i, false),
	};
	ret->used = queues >= 0 ? (size_t)queues : 1 + ret->masked;
}

int queue_budget(const struct creation *creation)
{
	const struct gpuarb_partition *partition = creation->partition;
	uint64_t id = gpuarb_lease_id(creation->lease);
	struct budget budget;

	hip_budget(creation->hip, partition, creation->i,
		   creation->blind ? -EOPNOTSUPP : (int)creation->before.n, &budget);
	if (streams_left(&budget) > 0)
		return 0;
	if (budget.streams > 0 && budget.masked >= budget.streams)
		return hip_fail(creation->lease, -EDQUOT,
				"lease %" PRIu64 " has %" PRIu32 " streams on GPU %s for each "
				"process, and this one made them all: destroy a stream, or ask "
				"for %zu streams",
				id, budget.streams, partition->gpu, budget.masked + 1);
	return hip_fail(creation->lease, -EDQUOT,
			"lease %" PRIu64 " has %" PRIu32 " queues on GPU %s for %" PRIu32
			" processes; this process has %zu there, and one more stream takes one%s: "
			"destroy a stream, or ask for %" PRIu64 " queues",
			id, budget.queues, partition->gpu, budget.processes, budget.used,
			budget.used ? "" : " beside ROCr's own",
			(uint64_t)budget.processes * ((budget.used ? budget.used : 1) + 1));
}

/* HIP put it on a queue that was there before: every queue that it could be gets the mask. */
static int settle_shared(const struct creation *creation)
{
	const char *gpu = creation->partition->gpu;
	size_t streams = hip_count(creation->hip, creation->i, false);
	int r;

	if (creation->level == LEVEL_NORMAL || creation->after.n == 0)
		return hip_fail(creation->lease, -ENODEV,
				"HIP's device %d is not GPU %s: the "
				"stream's queue came elsewhere",
				creation->device, gpu);
	if (creation->own || hip_count(creation->hip, creation->i, true) > 0 ||
	    (streams == 0 && strchr(gpu, '/')))
		return hip_fail(creation->lease, -EBUSY,
				"HIP has no queue on GPU %s for this stream alone, as a mask of "
				"its own needs: raise GPU_MAX_HW_QUEUES, destroy a stream, or ask "
				"for the normal priority",
				gpu);

	r = gpuarb_lease_apply(creation->lease);
	return r < 0 ? r : 0;
}

/* Gives the new queues their masks: the stream's, and what else came meanwhile. */
int queue_settle(const struct creation *creation, struct hip_stream *stream)
{
	const struct queue_set *fresh = &creation->fresh;
	int r;

	if (fresh->n == 0)
		return settle_shared(creation);
	if (creation->own && !queue_of_stream(&creation->before, fresh, &stream->queue))
		return hip_fail(creation->lease, -EAGAIN,
				"%zu queues came on GPU %s together with the stream's, and it is "
				"not known which one is its: try again",
				fresh->n - 1, creation->partition->gpu);

	for (size_t k = 0; k < fresh->n; k++) {
		bool own = creation->own && fresh->ids[k] == stream->queue;

		r = gpuarb_lease_mask_queue(creation->lease, creation->i, fresh->ids[k],
					    own ? creation->mask.word : NULL,
					    own ? creation->mask.words : 0);
		/* HSA_CU_MASK is there, and the stream's mask inside it, or HIP had failed. */
		if (r == -EEXIST && queue_may_be_blind(creation))
			continue;
		if (r < 0)
			return r;
	}
	return 0;
}
