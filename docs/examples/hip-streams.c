/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Creates two HIP streams within one lease:
 *
 *	cc hip-streams.c $(pkg-config --cflags --libs gpuarb gpuarb-hip) -o hip-streams
 *
 * The first stream has all CUs of the lease, the second stream half of them. The program copies
 * memory with both.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <gpuarb.h>
#include <gpuarb-hip.h>

#define BYTES 65536
#define WORDS 32

static int failed(const char *what, hipError_t error)
{
	fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
	return -1;
}

/* The first half of the CUs of the lease, rounded up to pairs. */
static size_t lower_half(struct gpuarb_lease *lease, uint32_t half[WORDS])
{
	unsigned left = (gpuarb_lease_cus(lease, 0) / 2 + 1) & ~1U;
	const uint32_t *mask;
	size_t words;

	mask = gpuarb_lease_cu_mask(lease, 0, &words);
	memset(half, 0, WORDS * sizeof(*half));
	for (size_t bit = 0; bit < words * 32 && bit < WORDS * 32 && left > 0; bit++)
		if (mask[bit / 32] >> bit % 32 & 1) {
			half[bit / 32] |= 1U << bit % 32;
			left--;
		}
	return words < WORDS ? words : WORDS;
}

/* Writes memory with one stream and reads it back with the other. */
static int work(hipStream_t first, hipStream_t second)
{
	static unsigned char bytes[BYTES];
	void *memory = NULL;
	hipError_t error;

	error = hipMalloc(&memory, sizeof(bytes));
	if (error != hipSuccess)
		return failed("hipMalloc", error);

	memset(bytes, 42, sizeof(bytes));
	error = hipMemcpyAsync(memory, bytes, sizeof(bytes), hipMemcpyHostToDevice, first);
	if (error == hipSuccess)
		error = hipStreamSynchronize(first);
	memset(bytes, 0, sizeof(bytes));
	if (error == hipSuccess)
		error = hipMemcpyAsync(bytes, memory, sizeof(bytes), hipMemcpyDeviceToHost, second);
	if (error == hipSuccess)
		error = hipStreamSynchronize(second);
	(void)hipFree(memory);
	if (error != hipSuccess)
		return failed("hipMemcpyAsync", error);
	printf("came back: %d\n", bytes[BYTES - 1]);
	return 0;
}

/* Creates the streams, works with them, and destroys them. */
static int run(struct gpuarb_lease *lease)
{
	hipStream_t all, some;
	uint32_t half[WORDS];
	size_t words;
	hipError_t error;
	int r, device;

	r = gpuarb_hip_device(lease, 0, &device);
	if (r < 0)
		return r;
	error = hipSetDevice(device);
	if (error != hipSuccess)
		return failed("hipSetDevice", error);

	printf("%u CUs of GPU %s, HIP's device %d\n", gpuarb_lease_cus(lease, 0),
	       gpuarb_lease_gpu(lease, 0), device);
	r = gpuarb_hip_stream_create(lease, 0, &all);
	if (r < 0)
		return r;
	words = lower_half(lease, half);
	r = gpuarb_hip_stream_create_within(lease, 0, half, words, &some);
	if (r >= 0) {
		r = work(all, some);
		gpuarb_hip_stream_destroy(lease, some);
	}
	gpuarb_hip_stream_destroy(lease, all);
	return r;
}

int main(void)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	struct gpuarb *gpuarb = NULL;
	int r;

	want.cus = 16;
	want.streams = 2;
	r = gpuarb_open(&gpuarb);
	if (r >= 0)
		r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
	if (r >= 0)
		r = run(lease);
	if (r < 0)
		fprintf(stderr, "%s\n", gpuarb_last_error(gpuarb));

	gpuarb_lease_close(lease);
	gpuarb_close(gpuarb);
	return r < 0 ? 1 : 0;
}
