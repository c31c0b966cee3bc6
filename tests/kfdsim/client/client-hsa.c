/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A program of ROCr alone: queues, masks, packets and signals. Options: client.h. */

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/client/client.h"

#define QUEUES 64U
#define NO_PACKET 0x2fU /* no type of a packet */

struct state {
	hsa_queue_t *queues[QUEUES];
	size_t n;
	hsa_agent_t gpu;
	unsigned gpus, device;
	bool found;
	unsigned failures;
};

static bool works(struct state *state, const char *what, hsa_status_t status)
{
	const char *name = "?";

	hsa_status_string(status, &name);
	printf("%s: 0x%x %s\n", what, status, status == HSA_STATUS_SUCCESS ? "" : name);
	if (status != HSA_STATUS_SUCCESS)
		state->failures++;
	return status == HSA_STATUS_SUCCESS;
}

static hsa_status_t see_agent(hsa_agent_t agent, void *userdata)
{
	struct state *state = userdata;
	hsa_device_type_t type;
	char name[64] = "";
	uint32_t cus = 0;

	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type != HSA_DEVICE_TYPE_GPU)
		return HSA_STATUS_SUCCESS;
	hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name);
	hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &cus);
	printf("device %u: %s, %u CUs\n", state->gpus, name, cus);
	if (state->gpus++ == state->device) {
		state->gpu = agent;
		state->found = true;
	}
	return HSA_STATUS_SUCCESS;
}

static hsa_queue_t *make_queue(struct state *state)
{
	hsa_queue_t *queue;

	if (state->n == QUEUES ||
	    !works(state, "hsa_queue_create",
		   hsa_queue_create(state->gpu, 1024, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX,
				    UINT32_MAX, &queue)))
		return NULL;
	state->queues[state->n++] = queue;
	return queue;
}

static void mask_queue(struct state *state, const struct client_mask *mask)
{
	hsa_queue_t *queue = make_queue(state);
	uint32_t seen[CLIENT_WORDS] = { 0 };

	if (!queue)
		return;
	works(state, "hsa_amd_queue_cu_set_mask",
	      hsa_amd_queue_cu_set_mask(queue, mask->n * 32, mask->words));
	works(state, "hsa_amd_queue_cu_get_mask",
	      hsa_amd_queue_cu_get_mask(queue, mask->n * 32, seen));
	printf("mask:");
	for (unsigned i = mask->n; i > 0; i--)
		printf(" %08x", seen[i - 1]);
	printf("\n");
}

static void make_queues(struct state *state, const struct client_options *options)
{
	hsa_queue_t *queue;

	for (unsigned i = 0; i < options->streams; i++)
		make_queue(state);
	for (size_t i = 0; i < options->n_masks; i++)
		mask_queue(state, &options->masks[i]);
	queue = options->high ? make_queue(state) : NULL;
	if (queue)
		works(state, "hsa_amd_queue_set_priority",
		      hsa_amd_queue_set_priority(queue, HSA_AMD_QUEUE_PRIORITY_HIGH));
}

/* A barrier packet that waits for nothing, and a thread that sleeps until it is done. */
static void send_barrier(struct state *state, hsa_queue_t *queue)
{
	uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
	hsa_barrier_and_packet_t *packet = (hsa_barrier_and_packet_t *)queue->base_address +
					   index % queue->size;
	uint16_t header = HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
	hsa_signal_t done;

	if (!works(state, "hsa_signal_create", hsa_signal_create(1, 0, NULL, &done)))
		return;
	memset((char *)packet + sizeof(header), 0, sizeof(*packet) - sizeof(header));
	packet->completion_signal = done;
	__atomic_store_n(&packet->header, header, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
	if (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
				      HSA_WAIT_STATE_BLOCKED) != 0)
		state->failures++;
	hsa_signal_destroy(done);
}

/* What ROCr says of a queue that stopped. */
static void see_error(hsa_status_t status, hsa_queue_t *queue, void *data)
{
	(void)queue;
	__atomic_store_n((hsa_status_t *)data, status, __ATOMIC_RELEASE);
}

/* A packet of no known type: ROCr tells the queue's callback. */
static void break_queue(struct state *state)
{
	static hsa_status_t seen; /* ROCr's thread may write it late */
	hsa_queue_t *queue;
	hsa_barrier_and_packet_t *packet;
	uint64_t index;

	if (!works(state, "hsa_queue_create",
		   hsa_queue_create(state->gpu, 1024, HSA_QUEUE_TYPE_SINGLE, see_error, &seen,
				    UINT32_MAX, UINT32_MAX, &queue)))
		return;
	index = hsa_queue_add_write_index_relaxed(queue, 1);
	packet = (hsa_barrier_and_packet_t *)queue->base_address + index % queue->size;
	memset((char *)packet + sizeof(packet->header), 0,
	       sizeof(*packet) - sizeof(packet->header));
	__atomic_store_n(&packet->header, NO_PACKET, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
	while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) == HSA_STATUS_SUCCESS)
		sched_yield();
	printf("queue error: 0x%x\n", (unsigned)seen);
	works(state, "hsa_queue_destroy", hsa_queue_destroy(queue));
}

int main(int argc, char *argv[])
{
	struct client_options options = { 0 };
	struct state state = { 0 };

	client_options(&options, argc, argv);
	state.device = options.device;
	if (!works(&state, "hsa_init", hsa_init()) ||
	    !works(&state, "hsa_iterate_agents", hsa_iterate_agents(see_agent, &state)))
		return EXIT_FAILURE;
	if (!state.found) {
		printf("no device %u\n", options.device);
		return EXIT_FAILURE;
	}
	make_queues(&state, &options);
	for (size_t i = 0; i < state.n && options.work; i++)
		send_barrier(&state, state.queues[i]);
	if (options.broken)
		break_queue(&state);
	client_hold(&options);
	for (size_t i = 0; i < state.n; i++)
		works(&state, "hsa_queue_destroy", hsa_queue_destroy(state.queues[i]));
	works(&state, "hsa_shut_down", hsa_shut_down());
	return state.failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
