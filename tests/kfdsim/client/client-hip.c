/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A HIP program: streams, with masks and without, and memory. Options: client.h. */

#include <hip/hip_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/client/client.h"

#define STREAMS 64U
#define BYTES (1U << 20)

struct state {
	hipStream_t streams[STREAMS];
	size_t n;
	unsigned failures;
};

static bool works(struct state *state, const char *what, hipError_t error)
{
	printf("%s: %s\n", what, hipGetErrorName(error));
	if (error != hipSuccess)
		state->failures++;
	return error == hipSuccess;
}

static void show_device(struct state *state, const struct client_options *options)
{
	char place[32] = "";
	hipDeviceProp_t properties;
	int n = 0;

	if (!works(state, "hipGetDeviceCount", hipGetDeviceCount(&n)))
		return;
	for (int i = 0; i < n; i++)
		if (hipGetDeviceProperties(&properties, i) == hipSuccess &&
		    hipDeviceGetPCIBusId(place, sizeof(place), i) == hipSuccess)
			printf("device %d: %s %s, %d CUs\n", i, place, properties.gcnArchName,
			       properties.multiProcessorCount);
	works(state, "hipSetDevice", hipSetDevice((int)options->device));
}

static void make_streams(struct state *state, const struct client_options *options)
{
	hipStream_t stream;

	for (unsigned i = 0; i < options->streams && state->n < STREAMS; i++)
		if (works(state, "hipStreamCreate", hipStreamCreate(&stream)))
			state->streams[state->n++] = stream;
	for (size_t i = 0; i < options->n_masks && state->n < STREAMS; i++)
		if (works(state, "hipExtStreamCreateWithCUMask",
			  hipExtStreamCreateWithCUMask(&stream, options->masks[i].n,
						       options->masks[i].words)))
			state->streams[state->n++] = stream;
	if (options->high && state->n < STREAMS &&
	    works(state, "hipStreamCreateWithPriority",
		  hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, -1)))
		state->streams[state->n++] = stream;
}

/* A marker in each: a barrier packet goes through its queue. */
static void work(struct state *state)
{
	hipEvent_t event;

	if (!works(state, "hipEventCreate", hipEventCreate(&event)))
		return;
	for (size_t i = 0; i < state->n; i++) {
		works(state, "hipEventRecord", hipEventRecord(event, state->streams[i]));
		works(state, "hipStreamSynchronize", hipStreamSynchronize(state->streams[i]));
	}
	works(state, "hipEventDestroy", hipEventDestroy(event));
}

static void one_more(struct state *state)
{
	hipStream_t stream;

	if (state->n < STREAMS && works(state, "hipStreamCreate", hipStreamCreate(&stream)))
		state->streams[state->n++] = stream;
	work(state);
}

static void copy_through(struct state *state, uint8_t *to, const uint8_t *from)
{
	void *device[2] = { NULL, NULL };

	if (works(state, "hipMalloc", hipMalloc(&device[0], BYTES)) &&
	    works(state, "hipMalloc", hipMalloc(&device[1], BYTES))) {
		works(state, "hipMemcpy to",
		      hipMemcpy(device[0], from, BYTES, hipMemcpyHostToDevice));
		works(state, "hipMemcpy from",
		      hipMemcpy(to, device[0], BYTES, hipMemcpyDeviceToHost));
		if (memcmp(to, from, BYTES) != 0) {
			puts("copy: what came back is not what was sent");
			state->failures++;
		} else {
			puts("copy: the same");
		}
	}
	(void)hipFree(device[0]);
	(void)hipFree(device[1]);
}

static void copy(struct state *state)
{
	uint8_t *from = malloc(BYTES), *to = calloc(1, BYTES);

	if (!from || !to)
		abort();
	for (size_t i = 0; i < BYTES; i++)
		from[i] = (uint8_t)(i * 7 + (i >> 8));
	copy_through(state, to, from);
	free(from);
	free(to);
}

int main(int argc, char *argv[])
{
	struct client_options options = { 0 };
	struct state state = { 0 };

	client_options(&options, argc, argv);
	show_device(&state, &options);
	if (state.failures > 0)
		return EXIT_FAILURE;
	make_streams(&state, &options);
	if (options.work)
		work(&state);
	if (options.copy)
		copy(&state);
	while (client_step(&options))
		one_more(&state);
	for (size_t i = 0; i < state.n; i++)
		works(&state, "hipStreamDestroy", hipStreamDestroy(state.streams[i]));
	return state.failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
