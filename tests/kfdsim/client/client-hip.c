/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A HIP program: streams, with masks and without, and memory. Prints a line for everything that it has done,
 * and ends with 1 if any of it failed, with 2 where the command line is wrong.
 *
 *	--device N      of the GPUs that HIP sees (0)
 *	--streams N     plain streams
 *	--masked HEX    one with this mask, any number of digits; may be repeated
 *	--high          one of high priority
 *	--copy          memory there and back
 *	--work          a packet through each stream, and wait for it
 *	--hold          then print "ready" and wait until standard input ends; each line that comes there makes
 *	                a plain stream more, and "ready" again
 */

#include <hip/hip_runtime_api.h>

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS 64U
#define BYTES (1U << 20)
#define MASKS 16U
#define WORDS 32U

struct mask {
	uint32_t words[WORDS];
	unsigned n; /* words */
};

struct options {
	unsigned device, streams;
	struct mask masks[MASKS];
	size_t n_masks;
	bool high, copy, work, hold;
};

__attribute__((noreturn)) static void usage(const char *what)
{
	fprintf(stderr,
		"%s; wanted: [--device N] [--streams N] [--masked HEX]... [--high] "
		"[--copy] [--work] [--hold]\n",
		what);
	exit(2);
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end != '\0' || value > 1024)
		usage(text);
	return (unsigned)value;
}

/* "0x3ff00ff00ff": the last eight digits are the first word. */
static void take_mask(struct options *options, const char *text)
{
	const char *digits = strncmp(text, "0x", 2) == 0 ? text + 2 : text;
	size_t length = strlen(digits), n = (length + 7) / 8;
	struct mask *mask = &options->masks[options->n_masks];
	char word[9];

	if (options->n_masks == MASKS || length == 0 || n > WORDS ||
	    strspn(digits, "0123456789abcdefABCDEF") != length)
		usage(text);
	for (size_t i = 0; i < n; i++) {
		size_t end = length - 8 * i, start = end > 8 ? end - 8 : 0;

		memcpy(word, digits + start, end - start);
		word[end - start] = '\0';
		mask->words[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	mask->n = (unsigned)n;
	options->n_masks++;
}

static void take_options(struct options *options, int argc, char *argv[])
{
	static const struct option table[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "streams", required_argument, NULL, 's' },
		{ "masked", required_argument, NULL, 'm' },
		{ "high", no_argument, NULL, 'p' },
		{ "copy", no_argument, NULL, 'c' },
		{ "work", no_argument, NULL, 'w' },
		{ "hold", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
		switch (option) {
		case 'd': options->device = number(optarg); break;
		case 's': options->streams = number(optarg); break;
		case 'm': take_mask(options, optarg); break;
		case 'p': options->high = true; break;
		case 'c': options->copy = true; break;
		case 'w': options->work = true; break;
		case 'h': options->hold = true; break;
		default: usage("no such option");
		}
	if (optind < argc)
		usage(argv[optind]);
}

static bool step(const struct options *options)
{
	char c = '\0';

	if (!options->hold)
		return false;
	puts("ready");
	fflush(stdout);
	while (c != '\n')
		if (read(STDIN_FILENO, &c, 1) != 1)
			return false;
	return true;
}

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

static void show_device(struct state *state, const struct options *options)
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

static void make_streams(struct state *state, const struct options *options)
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
	struct options options = { 0 };
	struct state state = { 0 };

	take_options(&options, argc, argv);
	show_device(&state, &options);
	if (state.failures > 0)
		return EXIT_FAILURE;
	make_streams(&state, &options);
	if (options.work)
		work(&state);
	if (options.copy)
		copy(&state);
	while (step(&options))
		one_more(&state);
	for (size_t i = 0; i < state.n; i++)
		works(&state, "hipStreamDestroy", hipStreamDestroy(state.streams[i]));
	return state.failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
