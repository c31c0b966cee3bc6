/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A HIP program with a real kernel, launched again and again. Emulated, it does not run, but it
 * takes its time: by the signal of each launch, so the emulator's own and no clock of this
 * machine.
 *
 *	--blocks N      of each launch (1024)
 *	--threads N     of a block (1024)
 *	--launches N    one after the other has ended (1)
 *	--mask HEX      on a stream with this mask, up to 64 bits; else a plain one
 *
 * Prints "launch N: NSEC" for each.
 */

#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

#include <getopt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

struct options {
	unsigned blocks = 1024, threads = 1024, launches = 1;
	uint64_t mask = 0;
};

__global__ void spin(unsigned *memory)
{
	unsigned x = blockIdx.x * blockDim.x + threadIdx.x;

	for (unsigned i = 0; i < 1000; i++)
		x = x * 1664525 + 1013904223;
	if (x == 0)
		*memory = x;
}

static void check(hipError_t error, const char *what)
{
	if (error == hipSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, hipGetErrorName(error));
	exit(1);
}

static void take(options *options, int argc, char *argv[])
{
	static const option known[] = {
		{ "blocks", required_argument, nullptr, 'b' },
		{ "threads", required_argument, nullptr, 't' },
		{ "launches", required_argument, nullptr, 'l' },
		{ "mask", required_argument, nullptr, 'm' },
		{},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, nullptr)) != -1) {
		uint64_t value = c == '?' ? 0 : strtoull(optarg, nullptr, 0);

		if (c == 'b')
			options->blocks = static_cast<unsigned>(value);
		else if (c == 't')
			options->threads = static_cast<unsigned>(value);
		else if (c == 'l')
			options->launches = static_cast<unsigned>(value);
		else if (c == 'm')
			options->mask = value;
		else
			exit(2);
	}
}

static hipStream_t make_stream(uint64_t mask)
{
	const uint32_t words[] = { static_cast<uint32_t>(mask),
				   static_cast<uint32_t>(mask >> 32) };
	hipStream_t stream;

	if (mask == 0)
		check(hipStreamCreate(&stream), "hipStreamCreate");
	else
		check(hipExtStreamCreateWithCUMask(&stream, 2, words),
		      "hipExtStreamCreateWithCUMask");
	return stream;
}

static void launch(const options &options, unsigned *memory, hipStream_t stream, unsigned n)
{
	hipEvent_t from, until;
	float msec = 0;

	check(hipEventCreate(&from), "hipEventCreate");
	check(hipEventCreate(&until), "hipEventCreate");
	hipExtLaunchKernelGGL(spin, dim3(options.blocks), dim3(options.threads), 0, stream, from,
			      until, 0, memory);
	check(hipGetLastError(), "hipExtLaunchKernel");
	check(hipStreamSynchronize(stream), "hipStreamSynchronize");
	check(hipEventElapsedTime(&msec, from, until), "hipEventElapsedTime");
	printf("launch %u: %.0f\n", n, static_cast<double>(msec) * 1e6);
	fflush(stdout);
	check(hipEventDestroy(from), "hipEventDestroy");
	check(hipEventDestroy(until), "hipEventDestroy");
}

int main(int argc, char *argv[])
{
	options options;
	unsigned *memory;

	take(&options, argc, argv);
	check(hipMalloc(&memory, sizeof(*memory)), "hipMalloc");
	hipStream_t stream = make_stream(options.mask);
	for (unsigned i = 0; i < options.launches; i++)
		launch(options, memory, stream, i);
	check(hipStreamDestroy(stream), "hipStreamDestroy");
	check(hipFree(memory), "hipFree");
	return 0;
}
