/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Streams of a lease. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/hip/hip.h"

/* From here on a bit of HIP's mask is a WGP on gfx10 and later; in 5.2 it was a CU. A wrong
 * guess costs a second try: KFD gets the right mask from gpuarb_lease_mask_queue(). */
#define HIP_VERSION_OF_WGPS 60000000

/* ---- asking HIP ------------------------------------------------------------------------- */

static int refused(const struct creation *creation, const char *call, hipError_t error)
{
	const char *mask = hip_variable("HSA_CU_MASK");

	if (error != hipErrorOutOfMemory)
		return hip_failed(creation->lease, call, error);
	(void)hipGetLastError();
	if (mask)
		return hip_fail(creation->lease, -EEXIST,
				"HIP made no stream on GPU %s (%s): HSA_CU_MASK=%s is in the "
				"environment, and HIP fails where ROCr would have to take CUs "
				"from a stream's mask: ask for a mask inside it, or start the "
				"program without it",
				creation->partition->gpu, hipGetErrorName(error), mask);
	return hip_fail(creation->lease, -EBUSY,
			"HIP got no queue on GPU %s (%s): KFD refused one, or its mask; the "
			"kernel's log may say why",
			creation->partition->gpu, hipGetErrorName(error));
}

static int create_masked(const struct creation *creation, hipStream_t *ret)
{
	struct mask masks[2] = { creation->mask, creation->mask };
	int version = 0, tries = creation->wgps ? 2 : 1;
	hipError_t error = hipErrorOutOfMemory;

	if (creation->wgps) {
		(void)hipRuntimeGetVersion(&version);
		mask_to_wgps(&creation->mask, &masks[version < HIP_VERSION_OF_WGPS]);
	}
	for (int i = 0; i < tries && error == hipErrorOutOfMemory; i++)
		error = hipExtStreamCreateWithCUMask(ret, (uint32_t)masks[i].words, masks[i].word);
	return error == hipSuccess ? 0 : refused(creation, "hipExtStreamCreateWithCUMask", error);
}

static int create_with_level(const struct creation *creation, hipStream_t *ret)
{
	int priority, least = 0, greatest = 0;
	hipError_t error;

	error = hipDeviceGetStreamPriorityRange(&least, &greatest);
	priority = creation->level == LEVEL_LOW ? least : greatest;
	if (error == hipSuccess)
		error = hipStreamCreateWithPriority(ret, hipStreamDefault, priority);
	return error == hipSuccess ? 0 : refused(creation, "hipStreamCreateWithPriority", error);
}

/* On the lease's device, which is the calling thread's only for so long. */
static int create_stream(const struct creation *creation, hipStream_t *ret)
{
	int r, device = 0;
	hipError_t error;

	error = hipGetDevice(&device);
	if (error == hipSuccess)
		error = hipSetDevice(creation->device);
	if (error != hipSuccess)
		return hip_failed(creation->lease, "hipSetDevice", error);

	r = creation->level == LEVEL_NORMAL ? create_masked(creation, ret)
					    : create_with_level(creation, ret);
	(void)hipSetDevice(device);
	return r;
}

static int create_and_settle(struct creation *creation, hipStream_t *ret)
{
	struct hip_stream stream = {
		.partition = creation->i,
		.own = creation->own,
		.pooled = creation->level != LEVEL_NORMAL,
	};
	int r;

	r = create_stream(creation, &stream.stream);
	if (r < 0)
		return r;
	if (!creation->blind) {
		r = queue_look(creation, &creation->after);
		if (r >= 0) {
			queues_new(&creation->before, &creation->after, &creation->fresh);
			r = queue_settle(creation, &stream);
		}
	}
	if (r < 0) {
		(void)hipStreamDestroy(stream.stream);
		return r;
	}
	creation->hip->streams[creation->hip->n++] = stream;
	*ret = stream.stream;
	return 0;
}

/* ---- a lease's streams ---------------------------------------------------------------- */

static void forget(void *data)
{
	struct hip_lease *hip = data;

	free(hip->streams);
	free(hip);
}

/* With room for one more stream. */
static int remember(struct gpuarb_lease *lease, struct hip_lease **ret)
{
	struct hip_lease *hip = gpuarb_lease_attached(lease);
	struct hip_stream *streams;

	if (!hip) {
		hip = calloc(1, sizeof(*hip));
		if (!hip)
			return hip_no_memory(lease);
		gpuarb_lease_attach(lease, hip, forget);
	}
	streams = realloc(hip->streams, (hip->n + 1) * sizeof(*streams));
	if (!streams)
		return hip_no_memory(lease);
	hip->streams = streams;
	*ret = hip;
	return 0;
}

static int read_pairs(struct creation *creation)
{
	struct mask wgps;
	int major = 0;
	hipError_t error;

	error = hipDeviceGetAttribute(&major, hipDeviceAttributeComputeCapabilityMajor,
				      creation->device);
	if (error != hipSuccess)
		return hip_failed(creation->lease, "hipDeviceGetAttribute", error);
	creation->wgps = major >= 10;
	if (creation->wgps && !mask_to_wgps(&creation->mask, &wgps))
		return hip_fail(creation->lease, -EINVAL,
				"GPU %s has its CUs in pairs: bits 2n and 2n + 1 of a mask go "
				"together",
				creation->partition->gpu);
	return 0;
}

static int read_mask(struct creation *creation, const uint32_t *own, size_t words)
{
	const struct gpuarb_partition *partition = creation->partition;
	const uint32_t *mask = partition->cu_mask;
	size_t n = partition->cu_mask_words;

	if (!mask_and(mask, n, mask, n, &creation->mask))
		return hip_fail(creation->lease, -EBADFD,
				"lease %" PRIu64 " has no CU on GPU %s now",
				gpuarb_lease_id(creation->lease), partition->gpu);
	if (own && !mask_and(mask, n, own, words, &creation->mask))
		return hip_fail(creation->lease, -ERANGE,
				"the stream's mask has no CU that lease %" PRIu64 " has on GPU %s",
				gpuarb_lease_id(creation->lease), partition->gpu);
	creation->own = own;
	creation->level = level_of(partition->priority);
	return 0;
}

static int create(struct creation *creation, const uint32_t *own, size_t words, hipStream_t *ret)
{
	int r;

	r = hip_partition(creation->lease, creation->i, &creation->partition);
	if (r >= 0)
		r = read_mask(creation, own, words);
	if (r >= 0)
		r = remember(creation->lease, &creation->hip);
	if (r >= 0)
		r = hip_find_device(creation->lease, creation->partition, &creation->device);
	if (r >= 0)
		r = read_pairs(creation);
	if (r < 0)
		return r;

	r = queue_look(creation, &creation->before);
	creation->blind = r == -EOPNOTSUPP && queue_may_be_blind(creation);
	if (r >= 0 || creation->blind)
		r = queue_budget(creation);
	return r < 0 ? r : create_and_settle(creation, ret);
}

static int create_anew(struct gpuarb_lease *lease, size_t i, const uint32_t *own, size_t words,
		       hipStream_t *ret)
{
	struct creation *creation;
	int r;

	creation = calloc(1, sizeof(*creation));
	if (!creation)
		return hip_no_memory(lease);
	creation->lease = lease;
	creation->i = i;
	r = create(creation, own, words, ret);
	free(creation);
	return r;
}

GPUARB_EXPORT int gpuarb_hip_stream_create(struct gpuarb_lease *lease, size_t i, hipStream_t *ret)
{
	return lease && ret ? create_anew(lease, i, NULL, 0, ret) : -EINVAL;
}

GPUARB_EXPORT int gpuarb_hip_stream_create_within(struct gpuarb_lease *lease, size_t i,
						  const uint32_t *mask, size_t words,
						  hipStream_t *ret)
{
	return lease && mask && ret ? create_anew(lease, i, mask, words, ret) : -EINVAL;
}

GPUARB_EXPORT int gpuarb_hip_stream_destroy(struct gpuarb_lease *lease, hipStream_t stream)
{
	struct hip_lease *hip = lease ? gpuarb_lease_attached(lease) : NULL;
	struct hip_stream gone;
	hipError_t error;
	size_t k = 0;

	if (!lease)
		return -EINVAL;
	while (hip && k < hip->n && hip->streams[k].stream != stream)
		k++;
	if (!hip || k == hip->n)
		return hip_fail(lease, -EINVAL, "this stream was not made with lease %" PRIu64,
				gpuarb_lease_id(lease));

	gone = hip->streams[k];
	hip->streams[k] = hip->streams[--hip->n];
	error = hipStreamDestroy(stream);

	/* HIP may keep the queue for another stream of this priority. */
	if (gone.own && gone.pooled)
		(void)gpuarb_lease_mask_queue(lease, gone.partition, gone.queue, NULL, 0);
	return error == hipSuccess ? 0 : hip_failed(lease, "hipStreamDestroy", error);
}

GPUARB_EXPORT int gpuarb_hip_streams(struct gpuarb_lease *lease, size_t i, unsigned *ret)
{
	const struct gpuarb_partition *partition;
	struct budget budget;
	int r;

	if (!lease || !ret)
		return -EINVAL;

	r = hip_partition(lease, i, &partition);
	if (r < 0)
		return r;
	r = gpuarb_lease_queue_ids(lease, i, NULL, 0);
	if (r < 0 && r != -EOPNOTSUPP)
		return r;
	hip_budget(gpuarb_lease_attached(lease), partition, i, r, &budget);
	*ret = streams_left(&budget);
	return 0;
}
