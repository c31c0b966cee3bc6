/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A program of libhsakmt alone: nodes, queues, masks. Options: client.h. */

#include HSAKMT_HEADER
#include <stdio.h>
#include <stdlib.h>

#include "kfdsim/client/client.h"

#define QUEUES 1024U
#define RING 65536U
#define PAGE 4096U

struct state {
	HSA_QUEUEID queues[QUEUES];
	size_t n;
	HSAuint32 node;
	unsigned failures;
};

static bool works(struct state *state, const char *what, HSAKMT_STATUS status)
{
	printf("%s: %d\n", what, status);
	if (status != HSAKMT_STATUS_SUCCESS)
		state->failures++;
	return status == HSAKMT_STATUS_SUCCESS;
}

/* Every node with SIMDs is a GPU; the wanted one is kept. */
static void find_node(struct state *state, unsigned device)
{
	HsaSystemProperties system;
	HsaNodeProperties node;
	unsigned gpu = 0;

	if (!works(state, "hsaKmtAcquireSystemProperties", hsaKmtAcquireSystemProperties(&system)))
		return;
	for (HSAuint32 i = 0; i < system.NumNodes; i++) {
		if (!works(state, "hsaKmtGetNodeProperties", hsaKmtGetNodeProperties(i, &node)))
			return;
		if (node.NumFComputeCores == 0)
			continue;
		printf("device %u: node %u, target %u.%u.%u, %u SIMDs, %u queues\n", gpu, i,
		       node.EngineId.ui32.Major, node.EngineId.ui32.Minor,
		       node.EngineId.ui32.Stepping, node.NumFComputeCores, node.NumCpQueues);
		if (gpu++ == device)
			state->node = i;
	}
	if (gpu <= device) {
		printf("no device %u\n", device);
		state->failures++;
	}
}

/* Memory that the GPU has mapped: since Linux 6.12 the driver takes no other for a queue. */
static void *make_buffer(struct state *state, uint64_t size)
{
	HsaMemFlags flags = { .ui32 = { .HostAccess = 1, .ExecuteAccess = 1 } };
	void *buffer = NULL;

	if (!works(state, "hsaKmtAllocMemory", hsaKmtAllocMemory(0, size, flags, &buffer)) ||
	    !works(state, "hsaKmtMapMemoryToGPU", hsaKmtMapMemoryToGPU(buffer, size, NULL)))
		return NULL;
	return buffer;
}

static bool make_queue(struct state *state)
{
	HsaQueueResource resource = { 0 };
	uint64_t *pointers; /* read, write */
	void *ring;

	if (state->n == QUEUES)
		return false;
	ring = make_buffer(state, RING);
	pointers = make_buffer(state, PAGE);
	if (!ring || !pointers)
		return false;
	resource.Queue_read_ptr_aql = &pointers[0];
	resource.Queue_write_ptr_aql = &pointers[1];
	if (!works(state, "hsaKmtCreateQueue",
		   hsaKmtCreateQueue(state->node, HSA_QUEUE_COMPUTE_AQL, 100,
				     HSA_QUEUE_PRIORITY_NORMAL, ring, RING, NULL, &resource)))
		return false;
	state->queues[state->n++] = resource.QueueId;
	return true;
}

static void make_queues(struct state *state, struct client_options *options)
{
	for (unsigned i = 0; i < options->streams; i++)
		make_queue(state);
	for (size_t i = 0; i < options->n_masks; i++)
		if (make_queue(state))
			works(state, "hsaKmtSetQueueCUMask",
			      hsaKmtSetQueueCUMask(state->queues[state->n - 1],
						   options->masks[i].n * 32,
						   options->masks[i].words));
	if (options->high && make_queue(state))
		works(state, "hsaKmtUpdateQueue",
		      hsaKmtUpdateQueue(state->queues[state->n - 1], 100,
					HSA_QUEUE_PRIORITY_MAXIMUM, NULL, 0, NULL));
}

int main(int argc, char *argv[])
{
	static struct state state;
	struct client_options options = { 0 };

	client_options(&options, argc, argv);
	if (!works(&state, "hsaKmtOpenKFD", hsaKmtOpenKFD()))
		return EXIT_FAILURE;
	find_node(&state, options.device);
	if (state.failures > 0)
		return EXIT_FAILURE;
	make_queues(&state, &options);
	client_hold(&options);
	for (size_t i = 0; i < state.n; i++)
		works(&state, "hsaKmtDestroyQueue", hsaKmtDestroyQueue(state.queues[i]));
	works(&state, "hsaKmtReleaseSystemProperties", hsaKmtReleaseSystemProperties());
	works(&state, "hsaKmtCloseKFD", hsaKmtCloseKFD());
	return state.failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
