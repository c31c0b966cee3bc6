/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that keeps its queues while its lease changes: libhsakmt makes them, libgpuarb
 * masks them, on two GPUs, of which number 0 is 0000:03:00.0. What it prints is what the driver
 * should have been told: a JSON array with [id, mask, …] for each queue in the order in which
 * they were made.
 *
 *	client-apply none     no queue, no /dev/kfd
 *	client-apply follow   a lease that is resized, and a mask of its own for one queue
 *	client-apply back     a lease on both GPUs; the third queue is refused
 */

#include HSAKMT_HEADER

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check-cond.h"
#include "libgpuarb/gpuarb.h"

#define QUEUES 16U
#define RING 65536U
#define WORDS 32U
#define CONTROL "/sys/kernel/debug/kfdsim/control"
#define STATE "/sys/kernel/debug/kfdsim/state"

struct queue {
	HSA_QUEUEID handle;
	uint32_t id;
	uint64_t pointers[2]; /* read, write */
	char history[8][WORDS * 8 + 4];
	size_t n;
};

struct state {
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease;
	HSAuint32 nodes[2];
	struct queue queues[QUEUES];
	size_t n;
};

#define IS(a, b)                                                                                \
	do {                                                                                    \
		long long is_ = (a), wanted_ = (b);                                             \
		if (is_ != wanted_) {                                                           \
			fprintf(stderr, "%s:%d: %s is %lld: %s\n", __FILE__, __LINE__, #a, is_, \
				gpuarb_last_error(state->gpuarb));                              \
			abort();                                                                \
		}                                                                               \
	} while (0)

static void open_gpus(struct state *state)
{
	HsaSystemProperties system;
	HsaNodeProperties node;
	size_t n = 0;

	CHECK(hsaKmtOpenKFD() == HSAKMT_STATUS_SUCCESS);
	CHECK(hsaKmtAcquireSystemProperties(&system) == HSAKMT_STATUS_SUCCESS);
	for (HSAuint32 i = 0; i < system.NumNodes; i++) {
		CHECK(hsaKmtGetNodeProperties(i, &node) == HSAKMT_STATUS_SUCCESS);
		if (node.NumFComputeCores > 0 && n < 2)
			state->nodes[n++] = i;
	}
	CHECK(n == 2);
}

/* The driver gives the lowest id that is free. */
static struct queue *make(struct state *state, unsigned gpu, HSA_QUEUE_TYPE type, uint32_t id)
{
	HsaMemFlags flags = { .ui32 = { .HostAccess = 1, .ExecuteAccess = 1 } };
	struct queue *queue = &state->queues[state->n++];
	HsaQueueResource resource = { .Queue_read_ptr_aql = &queue->pointers[0],
				      .Queue_write_ptr_aql = &queue->pointers[1] };
	void *ring = NULL;

	CHECK(state->n <= QUEUES);
	CHECK(hsaKmtAllocMemory(0, RING, flags, &ring) == HSAKMT_STATUS_SUCCESS);
	CHECK(hsaKmtMapMemoryToGPU(ring, RING, NULL) == HSAKMT_STATUS_SUCCESS);
	CHECK(hsaKmtCreateQueue(state->nodes[gpu], type, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, RING,
				NULL, &resource) == HSAKMT_STATUS_SUCCESS);
	queue->handle = resource.QueueId;
	queue->id = id;
	return queue;
}

/* From now on the driver has been told this of it, too: the lease's mask on partition i, and of
 * that only the low bits. */
static void told(struct state *state, struct queue *queue, size_t i, uint32_t low)
{
	char *text = queue->history[queue->n++];
	size_t words;
	const uint32_t *mask = gpuarb_lease_cu_mask(state->lease, i, &words);
	uint32_t only[WORDS] = { 0 };

	CHECK(queue->n <= sizeof(queue->history) / sizeof(queue->history[0]));
	CHECK(mask && words <= WORDS);
	memcpy(only, mask, words * sizeof(*mask));
	if (low) {
		only[0] &= low;
		words = 1;
	}
	while (words > 1 && only[words - 1] == 0)
		words--;
	text += sprintf(text, "0x%" PRIx32, only[words - 1]);
	while (--words > 0)
		text += sprintf(text, "%08" PRIx32, only[words - 1]);
}

static void told_all(struct queue *queue)
{
	char *text = queue->history[queue->n++];

	CHECK(queue->n <= sizeof(queue->history) / sizeof(queue->history[0]));
	strcpy(text, "0x");
	memset(text + 2, 'f', WORDS * 8);
	text[2 + WORDS * 8] = '\0';
}

static void print(const struct state *state)
{
	for (size_t i = 0; i < state->n; i++) {
		const struct queue *queue = &state->queues[i];

		printf("%s[%" PRIu32, i > 0 ? "," : "[", queue->id);
		for (size_t k = 0; k < queue->n; k++)
			printf(",\"%s\"", queue->history[k]);
		printf("]");
	}
	printf(state->n > 0 ? "]\n" : "[]\n");
}

static void reserve(struct state *state, size_t n)
{
	struct gpuarb_want wants[2] = { GPUARB_WANT_INIT, GPUARB_WANT_INIT };

	IS(gpuarb_open(&state->gpuarb), 0);
	for (size_t i = 0; i < n; i++) {
		wants[i].gpu = i == 0 ? "0000:03:00.0" : "0000:04:00.0";
		wants[i].cus = 30;
		wants[i].queues = 8;
	}
	IS(gpuarb_reserve(state->gpuarb, wants, n, NULL, &state->lease), 0);
}

static void resize(struct state *state, uint32_t cus)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;

	want.gpu = "0000:03:00.0";
	want.cus = cus;
	want.queues = 8;
	IS(gpuarb_lease_resize(state->lease, &want, 1), 0);
}

/* The next SET_CU_MASK but n - 1 is refused. */
static void refuse(unsigned n, const char *error)
{
	FILE *control = fopen(CONTROL, "we");

	CHECK(control && fprintf(control, "set-cu-mask:%u:%s\n", n, error) > 0);
	CHECK(fclose(control) == 0);
}

/* So many queues that exist are not in the run list. */
static void pauses(struct state *state, int n)
{
	char command[256];

	snprintf(
		command, sizeof(command),
		"test $(jq '[.processes[].queues[] | select(.alive and .type == \"compute\" and (.active | not))]"
		" | length' %s) = %d",
		STATE, n);
	IS(system(command), 0);
}

static void none(struct state *state)
{
	reserve(state, 1);
	IS(gpuarb_lease_apply(state->lease), 0);
	IS(gpuarb_lease_queue_ids(state->lease, 0, NULL, 0), 0);
	CHECK(access("/dev/kfd", R_OK | W_OK) == 0);
}

static void follow(struct state *state)
{
	static const uint32_t low[] = { 0xffff }, outside[] = { 0, 0, 0xff };
	struct queue *a, *b, *c;
	uint32_t ids[4];

	reserve(state, 1);
	open_gpus(state);
	a = make(state, 0, HSA_QUEUE_COMPUTE_AQL, 0);
	b = make(state, 0, HSA_QUEUE_COMPUTE, 1);
	c = make(state, 0, HSA_QUEUE_COMPUTE_AQL, 2);
	make(state, 1, HSA_QUEUE_COMPUTE_AQL, 3); /* not the lease's GPU */
	make(state, 0, HSA_QUEUE_SDMA, 4);

	IS(gpuarb_lease_queue_ids(state->lease, 0, ids, 4), 3);
	CHECK(ids[0] == 0 && ids[1] == 1 && ids[2] == 2);
	IS(gpuarb_lease_apply(state->lease), 3);
	told(state, a, 0, 0), told(state, b, 0, 0), told(state, c, 0, 0);
	IS(gpuarb_lease_mask_queue(state->lease, 0, 1, low, 1), 0);
	told(state, b, 0, low[0]);
	IS(gpuarb_lease_mask_queue(state->lease, 0, 1, outside, 3), -ERANGE);
	IS(gpuarb_lease_mask_queue(state->lease, 0, 3, low, 1), -ENOENT);
	IS(gpuarb_lease_mask_queue(state->lease, 0, 4, low, 1), -ENOENT);

	IS(gpuarb_lease_pause_queue(state->lease, 0, 1, 1), 0);
	pauses(state, 1);
	IS(gpuarb_lease_pause_queue(state->lease, 0, 1, 0), 0);
	pauses(state, 0);
	IS(gpuarb_lease_pause_queue(state->lease, 0, 3, 1), -ENOENT);

	resize(state, 20);
	refuse(2, "EBUSY");
	IS(gpuarb_lease_apply(state->lease), -EBUSY);
	CHECK(strstr(gpuarb_last_error(state->gpuarb), "queue 1 on GPU 0000:03:00.0"));
	told(state, a, 0, 0);
	strcpy(a->history[a->n++], a->history[0]); /* and back */
	IS(gpuarb_lease_apply(state->lease), 3);
	told(state, a, 0, 0), told(state, b, 0, low[0]), told(state, c, 0, 0);
	IS(gpuarb_lease_acknowledge(state->lease), 0);

	CHECK(hsaKmtDestroyQueue(c->handle) == HSAKMT_STATUS_SUCCESS);
	c = make(state, 0, HSA_QUEUE_COMPUTE_AQL, 2); /* the same id again */
	IS(gpuarb_lease_apply(state->lease), 3);
	told(state, a, 0, 0), told(state, b, 0, low[0]), told(state, c, 0, 0);

	setenv("HSA_CU_MASK", "0:0-15", 1);
	IS(gpuarb_lease_apply(state->lease), -EEXIST);
	unsetenv("HSA_CU_MASK");
}

static void back(struct state *state)
{
	reserve(state, 2);
	open_gpus(state);
	for (unsigned i = 0; i < 4; i++)
		make(state, i % 2, HSA_QUEUE_COMPUTE_AQL, i);

	refuse(3, "EIO");
	IS(gpuarb_lease_apply(state->lease), -EIO);
	told(state, &state->queues[0], 0, 0), told_all(&state->queues[0]);
	told(state, &state->queues[1], 1, 0), told_all(&state->queues[1]);
	told_all(&state->queues[2]); /* it may have had it */

	IS(gpuarb_lease_apply(state->lease), 4);
	for (unsigned i = 0; i < 4; i++)
		told(state, &state->queues[i], i % 2, 0);
}

int main(int argc, char *argv[])
{
	static struct state state;
	const char *how = argc == 2 ? argv[1] : "";

	if (strcmp(how, "none") == 0)
		none(&state);
	else if (strcmp(how, "follow") == 0)
		follow(&state);
	else if (strcmp(how, "back") == 0)
		back(&state);
	else
		return 2;
	print(&state);
	gpuarb_lease_close(state.lease);
	gpuarb_close(state.gpuarb);
	return EXIT_SUCCESS;
}
