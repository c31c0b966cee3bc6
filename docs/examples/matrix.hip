/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Multiplies matrices within a lease:
 *
 *	hipcc --offload-arch=gfx906 --offload-arch=gfx90a matrix.hip \
 *		$(pkg-config --cflags --libs gpuarb gpuarb-hip) -o matrix
 *	./matrix 30
 *
 * reserves 30 CUs, and multiplies on a stream that has only these CUs.
 */

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <gpuarb.h>
#include <gpuarb-hip.h>

constexpr int size = 1024, tile = 16;
constexpr size_t bytes = sizeof(float) * size * size;

__global__ void multiply(const float *a, const float *b, float *c)
{
	__shared__ float left[tile][tile], right[tile][tile];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
	float sum = 0;

	for (int k = 0; k < size; k += tile) {
		left[y][x] = a[row * size + k + x];
		right[y][x] = b[(k + y) * size + column];
		__syncthreads();
		for (int i = 0; i < tile; i++)
			sum += left[y][i] * right[i][x];
		__syncthreads();
	}
	c[row * size + column] = sum;
}

/* Ends the program if a call of HIP failed. */
static void check(hipError_t error, const char *what)
{
	if (error == hipSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
	exit(1);
}

static int run(gpuarb_lease *lease, float *ret)
{
	std::vector<float> a(size * size, 1.0f), b(size * size, 2.0f), c(size * size);
	float *da, *db, *dc;
	hipStream_t stream;
	int r, device;

	r = gpuarb_hip_device(lease, 0, &device);
	if (r < 0)
		return r;
	check(hipSetDevice(device), "hipSetDevice");
	r = gpuarb_hip_stream_create(lease, 0, &stream);
	if (r < 0)
		return r;

	check(hipMalloc(&da, bytes), "hipMalloc");
	check(hipMalloc(&db, bytes), "hipMalloc");
	check(hipMalloc(&dc, bytes), "hipMalloc");
	check(hipMemcpyAsync(da, a.data(), bytes, hipMemcpyHostToDevice, stream), "copy");
	check(hipMemcpyAsync(db, b.data(), bytes, hipMemcpyHostToDevice, stream), "copy");
	multiply<<<dim3(size / tile, size / tile), dim3(tile, tile), 0, stream>>>(da, db, dc);
	check(hipGetLastError(), "multiply");
	check(hipMemcpyAsync(c.data(), dc, bytes, hipMemcpyDeviceToHost, stream), "copy");
	check(hipStreamSynchronize(stream), "hipStreamSynchronize");
	*ret = c[0];

	check(hipFree(da), "hipFree");
	check(hipFree(db), "hipFree");
	check(hipFree(dc), "hipFree");
	return gpuarb_hip_stream_destroy(lease, stream);
}

int main(int argc, char *argv[])
{
	gpuarb_want want = GPUARB_WANT_INIT;
	gpuarb_lease *lease = nullptr;
	gpuarb *arbiter = nullptr;
	float result = 0;

	want.cus = argc > 1 ? static_cast<uint32_t>(strtoul(argv[1], nullptr, 10)) : 16;
	want.streams = 1;

	int r = gpuarb_open(&arbiter);
	if (r >= 0)
		r = gpuarb_reserve(arbiter, &want, 1, nullptr, &lease);
	if (r >= 0)
		r = run(lease, &result);
	if (r < 0)
		fprintf(stderr, "%s\n", gpuarb_last_error(arbiter));
	else
		printf("%u CUs of GPU %s: %g, expected %d\n", gpuarb_lease_cus(lease, 0),
		       gpuarb_lease_gpu(lease, 0), static_cast<double>(result), 2 * size);

	gpuarb_lease_close(lease);
	gpuarb_close(arbiter);
	return r < 0 ? 1 : 0;
}
