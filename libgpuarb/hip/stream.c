/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* HIP streams with the mask and priority of a lease. This library uses libgpuarb through its public
 * header only. */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/gpuarb.h"
#include "libgpuarb/hip/gpuarb-hip.h"
#include "libgpuarb/hip/hip-device.h"
#include "libgpuarb/hip/stream-plan.h"

/* From this version on a bit of HIP's mask is a WGP on gfx10 and later; in 5.2 it was a CU. After a
 * wrong guess HIP fails and the other form is tried; KFD gets the exact mask by
 * gpuarb_lease_mask_queue(). */
#define HIP_VERSION_OF_WGPS 50700000

/* A stream that this library made. */
struct hip_stream {
	hipStream_t stream;
	size_t partition;
	uint32_t gpu;     /* KFD's id */
	enum level level; /* other than normal: HIP may put other streams on its queue */
	bool own;         /* has a mask of its own */
	bool found;       /* its queue is known, or there is no way to find it */
	bool idle;        /* destroyed, and kept because HIP would keep its queue */
	uint32_t queue;   /* with found: KFD's id, unless queues cannot be found */
	struct mask mask; /* at its creation */
};

/* The streams of a lease, attached to it. */
struct hip_lease {
	struct hip_lease *next; /* that was closed, too */
	struct hip_stream *streams;
	size_t n;
};

/* Closed leases with idle streams: the next lease of this process on the GPU of a stream gets it. */
static struct hip_lease *left_over;
static pthread_mutex_t left_over_lock = PTHREAD_MUTEX_INITIALIZER;

/* A stream that is being made. */
struct creation {
	struct gpuarb_lease *lease;
	struct hip_lease *hip;
	const struct gpuarb_partition *partition;
	size_t i; /* the index of the partition */
	int device;
	enum level level;
	bool wgps;        /* the GPU masks CUs in pairs */
	bool blind;       /* the queues of this process cannot be found */
	bool own;         /* the program passed a mask */
	struct mask mask; /* for the queue, in KFD's bits */
	struct queue_ids before, after, new_queues;
};

/* Lists the queues of this process. -EOPNOTSUPP: they cannot be found. */
static int list_queues(const struct creation *creation, struct queue_ids *ret)
{
	int r = gpuarb_lease_queue_ids(creation->lease, creation->i, ret->ids, QUEUES_MAX);

	ret->n = r < 0 ? 0 : (size_t)r < QUEUES_MAX ? (size_t)r : QUEUES_MAX;
	return r < 0 ? r : 0;
}

/*
 * Whether the mask that HIP sets can be relied on without finding the queue: HIP passes it on
 * unchanged, and the device certainly is the GPU of the lease.
 */
static bool may_be_blind(const struct creation *creation)
{
	return creation->level == LEVEL_NORMAL && !creation->wgps &&
	       !strchr(creation->partition->gpu, '/') && !hip_variable("ROC_GLOBAL_CU_MASK");
}

/* The number of streams on partition i that are not idle; with own: that have a mask of their own. */
static size_t count_streams(const struct hip_lease *hip, size_t i, bool own)
{
	size_t n = 0;

	for (size_t k = 0; hip && k < hip->n; k++)
		n += hip->streams[k].partition == i && !hip->streams[k].idle &&
		     (!own || hip->streams[k].own);
	return n;
}

static size_t count_idle(const struct hip_lease *hip, size_t i)
{
	size_t n = 0;

	for (size_t k = 0; hip && k < hip->n; k++)
		n += hip->streams[k].partition == i && hip->streams[k].idle;
	return n;
}

/* The idle stream that can be used again for the stream that is being made; NULL: none. */
static struct hip_stream *find_idle(const struct creation *creation)
{
	for (size_t k = 0; k < creation->hip->n; k++) {
		struct hip_stream *stream = &creation->hip->streams[k];

		if (stream->idle && stream->partition == creation->i &&
		    stream->level == creation->level &&
		    (!creation->blind || mask_equal(&stream->mask, &creation->mask)))
			return stream;
	}
	return NULL;
}

/* queues: of this process; negative if unknown: then ROCr's and those of this library's streams.
 * reused: how many of them new streams can use again. */
static void get_budget(const struct hip_lease *hip, const struct gpuarb_partition *partition,
		       size_t i, int queues, size_t reused, struct budget *ret)
{
	*ret = (struct budget){
		.queues = partition->queues,
		.processes = partition->processes ? partition->processes : 1,
		.streams = partition->streams,
		.masked = count_streams(hip, i, false),
	};
	ret->used = queues >= 0 ? (size_t)queues : 1 + ret->masked + count_idle(hip, i);
	ret->used -= reused < ret->used ? reused : ret->used;
}

/* -EDQUOT: the budget of the lease is used up. */
static int check_budget(const struct creation *creation)
{
	const struct gpuarb_partition *partition = creation->partition;
	uint64_t id = gpuarb_lease_id(creation->lease);
	struct budget budget;

	get_budget(creation->hip, partition, creation->i,
		   creation->blind ? -EOPNOTSUPP : (int)creation->before.n,
		   find_idle(creation) != NULL, &budget);
	if (streams_left(&budget) > 0)
		return 0;
	if (budget.streams > 0 && budget.masked >= budget.streams)
		return hip_fail(creation->lease, -EDQUOT,
				"lease %" PRIu64 " has %" PRIu32 " streams per process on GPU %s, "
				"and this process has made all of them: destroy a stream, or "
				"ask for %zu streams",
				id, budget.streams, partition->gpu, budget.masked + 1);
	return hip_fail(
		creation->lease, -EDQUOT,
		"lease %" PRIu64 " has %" PRIu32 " queues on GPU %s for %" PRIu32
		" processes; this process has %zu queues, and a stream needs another one%s: "
		"destroy a stream, or ask for %" PRIu64 " queues",
		id, budget.queues, partition->gpu, budget.processes, budget.used,
		budget.used ? "" : ", besides that of ROCr",
		(uint64_t)budget.processes * ((budget.used ? budget.used : 1) + 1));
}

/* The stream has no new queue, so HIP put it on an existing one: masks every queue on the GPU. */
static int mask_shared_queue(const struct creation *creation)
{
	const char *gpu = creation->partition->gpu;
	size_t streams = count_streams(creation->hip, creation->i, false);
	int r;

	if (creation->level == LEVEL_NORMAL || creation->after.n == 0)
		return hip_fail(creation->lease, -ENODEV,
				"HIP device %d is not GPU %s: the queue of the stream is on "
				"another GPU",
				creation->device, gpu);
	if (creation->own || count_streams(creation->hip, creation->i, true) > 0 ||
	    (streams == 0 && strchr(gpu, '/')))
		return hip_fail(
			creation->lease, -EBUSY,
			"HIP has no queue on GPU %s for this stream alone, and a stream "
			"with a mask of its own needs one: raise GPU_MAX_HW_QUEUES, destroy "
			"a stream, or ask for normal priority",
			gpu);

	/* -EOPNOTSUPP: all have their masks, and HIP gave the queue a priority of its own. */
	r = gpuarb_lease_apply(creation->lease);
	return r < 0 && r != -EOPNOTSUPP ? r : 0;
}

/* Masks the queue of the stream, and other queues that appeared meanwhile. */
static int mask_new_queues(const struct creation *creation, struct hip_stream *stream)
{
	const struct queue_ids *new_queues = &creation->new_queues;
	int r;

	if (new_queues->n == 0)
		return mask_shared_queue(creation);
	stream->found = queue_of_stream(&creation->before, new_queues, &stream->queue);
	if (creation->own && !stream->found)
		return hip_fail(creation->lease, -EAGAIN,
				"%zu other queues were made on GPU %s at the same time, so the "
				"queue of the stream is unknown: try again",
				new_queues->n - 1, creation->partition->gpu);

	for (size_t k = 0; k < new_queues->n; k++) {
		bool own = creation->own && new_queues->ids[k] == stream->queue;

		r = gpuarb_lease_mask_queue(creation->lease, creation->i, new_queues->ids[k],
					    own ? creation->mask.word : NULL,
					    own ? creation->mask.words : 0);
		/* HSA_CU_MASK is set. The mask of the stream is within it, otherwise HIP would have
		 * failed. */
		if (r == -EEXIST && may_be_blind(creation))
			continue;
		if (r < 0)
			return r;
	}
	return 0;
}

static int fail_stream(const struct creation *creation, const char *call, hipError_t error)
{
	const char *mask = hip_variable("HSA_CU_MASK");

	if (error != hipErrorOutOfMemory)
		return hip_fail_call(creation->lease, call, error);
	(void)hipGetLastError();
	if (mask)
		return hip_fail(creation->lease, -EEXIST,
				"HIP made no stream on GPU %s (%s), because its mask has CUs "
				"outside of HSA_CU_MASK=%s: use a mask inside of it, or start the "
				"program without the variable",
				creation->partition->gpu, hipGetErrorName(error), mask);
	return hip_fail(creation->lease, -EBUSY,
			"HIP got no queue on GPU %s (%s), because KFD refused the queue or its "
			"mask: see the kernel log",
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
	return error == hipSuccess ? 0
				   : fail_stream(creation, "hipExtStreamCreateWithCUMask", error);
}

static int create_with_level(const struct creation *creation, hipStream_t *ret)
{
	int priority, least = 0, greatest = 0;
	hipError_t error;

	error = hipDeviceGetStreamPriorityRange(&least, &greatest);
	priority = creation->level == LEVEL_LOW ? least : greatest;
	if (error == hipSuccess)
		error = hipStreamCreateWithPriority(ret, hipStreamDefault, priority);
	return error == hipSuccess ? 0
				   : fail_stream(creation, "hipStreamCreateWithPriority", error);
}

/* Makes the stream on the device of the lease, and restores the current device of the thread. */
static int create_stream(const struct creation *creation, hipStream_t *ret)
{
	int r, device = 0;
	hipError_t error;

	error = hipGetDevice(&device);
	if (error == hipSuccess)
		error = hipSetDevice(creation->device);
	if (error != hipSuccess)
		return hip_fail_call(creation->lease, "hipSetDevice", error);

	r = creation->level == LEVEL_NORMAL ? create_masked(creation, ret)
					    : create_with_level(creation, ret);
	(void)hipSetDevice(device);
	return r;
}

/* Gives the stream to the program again, with the mask of the creation. */
static int reuse(const struct creation *creation, struct hip_stream *stream, hipStream_t *ret)
{
	int r;

	if (!creation->blind) {
		r = gpuarb_lease_mask_queue(creation->lease, creation->i, stream->queue,
					    creation->own ? creation->mask.word : NULL,
					    creation->own ? creation->mask.words : 0);
		/* HSA_CU_MASK is set: the stream has the mask of its creation. */
		if (r < 0 && (r != -EEXIST || !may_be_blind(creation) ||
			      !mask_equal(&stream->mask, &creation->mask)))
			return r;
	}
	stream->idle = false;
	stream->own = creation->own;
	*ret = stream->stream;
	return 0;
}

/* Waits for the work of the stream, and keeps it for the next one, if HIP would keep its queue. */
static bool keep(struct hip_stream *stream)
{
	int version = 0;

	(void)hipRuntimeGetVersion(&version);
	if (!stream->found || !hip_keeps_queue(version, stream->level))
		return false;
	stream->idle = hipStreamSynchronize(stream->stream) == hipSuccess;
	if (!stream->idle)
		(void)hipGetLastError();
	return stream->idle;
}

static int create_and_mask(struct creation *creation, hipStream_t *ret)
{
	struct hip_stream stream = {
		.partition = creation->i,
		.gpu = creation->partition->kfd_gpu_id,
		.level = creation->level,
		.own = creation->own,
		.found = creation->blind,
		.mask = creation->mask,
	};
	int r;

	r = create_stream(creation, &stream.stream);
	if (r < 0)
		return r;
	if (!creation->blind) {
		r = list_queues(creation, &creation->after);
		if (r >= 0) {
			queues_new(&creation->before, &creation->after, &creation->new_queues);
			r = mask_new_queues(creation, &stream);
		}
	}
	if (r < 0 && !keep(&stream)) {
		(void)hipStreamDestroy(stream.stream);
		return r;
	}
	creation->hip->streams[creation->hip->n++] = stream;
	if (r < 0)
		return r;
	*ret = stream.stream;
	return 0;
}

/* Makes room for one stream. */
static bool make_room(struct hip_lease *hip)
{
	struct hip_stream *streams = realloc(hip->streams, (hip->n + 1) * sizeof(*streams));

	if (streams)
		hip->streams = streams;
	return streams;
}

/* Keeps the idle streams without memory of its own: they cannot be destroyed. */
static void hip_lease_free(void *data)
{
	struct hip_lease *hip = data;
	size_t n = 0;

	for (size_t k = 0; k < hip->n; k++)
		if (hip->streams[k].idle)
			hip->streams[n++] = hip->streams[k];
	hip->n = n;
	pthread_mutex_lock(&left_over_lock);
	hip->next = left_over;
	left_over = hip;
	pthread_mutex_unlock(&left_over_lock);
}

static void take_streams(struct hip_lease *closed, struct hip_lease *hip, size_t i, uint32_t gpu)
{
	size_t k = 0;

	while (k < closed->n) {
		if (closed->streams[k].gpu != gpu || !make_room(hip)) {
			k++;
			continue;
		}
		hip->streams[hip->n] = closed->streams[k];
		hip->streams[hip->n++].partition = i;
		closed->streams[k] = closed->streams[--closed->n];
	}
}

/* Gives the lease what is left over on the GPU of partition i. */
static void take_left_over(struct hip_lease *hip, size_t i, uint32_t gpu)
{
	struct hip_lease **link = &left_over, *closed;

	pthread_mutex_lock(&left_over_lock);
	while ((closed = *link)) {
		take_streams(closed, hip, i, gpu);
		if (closed->n > 0) {
			link = &closed->next;
			continue;
		}
		*link = closed->next;
		free(closed->streams);
		free(closed);
	}
	pthread_mutex_unlock(&left_over_lock);
}

/* Gets the list of streams, with room for one more. */
static int hip_lease_get(struct gpuarb_lease *lease, size_t i,
			 const struct gpuarb_partition *partition, struct hip_lease **ret)
{
	struct hip_lease *hip = gpuarb_lease_attached(lease);

	if (!hip) {
		hip = calloc(1, sizeof(*hip));
		if (!hip)
			return hip_fail(lease, -ENOMEM, "out of memory");
		gpuarb_lease_attach(lease, hip, hip_lease_free);
	}
	take_left_over(hip, i, partition->kfd_gpu_id);
	if (!make_room(hip))
		return hip_fail(lease, -ENOMEM, "out of memory");
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
		return hip_fail_call(creation->lease, "hipDeviceGetAttribute", error);
	creation->wgps = major >= 10;
	if (creation->wgps && !mask_to_wgps(&creation->mask, &wgps))
		return hip_fail(creation->lease, -EINVAL,
				"the mask has one CU of a pair alone: on GPU %s bits 2n and "
				"2n + 1 must be equal",
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
				"lease %" PRIu64 " has no CUs on GPU %s at the moment",
				gpuarb_lease_id(creation->lease), partition->gpu);
	if (own && !mask_and(mask, n, own, words, &creation->mask))
		return hip_fail(creation->lease, -ERANGE,
				"the mask has none of the CUs of lease %" PRIu64 " on GPU %s",
				gpuarb_lease_id(creation->lease), partition->gpu);
	creation->own = own;
	creation->level = level_of(partition->priority);
	return 0;
}

static int create(struct creation *creation, const uint32_t *own, size_t words, hipStream_t *ret)
{
	struct hip_stream *idle;
	int r;

	r = hip_partition_get(creation->lease, creation->i, &creation->partition);
	if (r >= 0)
		r = read_mask(creation, own, words);
	if (r >= 0)
		r = hip_lease_get(creation->lease, creation->i, creation->partition,
				  &creation->hip);
	if (r >= 0)
		r = hip_device_find(creation->lease, creation->partition, &creation->device);
	if (r >= 0)
		r = read_pairs(creation);
	if (r < 0)
		return r;

	r = list_queues(creation, &creation->before);
	creation->blind = r == -EOPNOTSUPP && may_be_blind(creation);
	if (r >= 0 || creation->blind)
		r = check_budget(creation);
	if (r < 0)
		return r;
	idle = find_idle(creation);
	return idle ? reuse(creation, idle, ret) : create_and_mask(creation, ret);
}

static int create_stream_within(struct gpuarb_lease *lease, size_t i, const uint32_t *own,
				size_t words, hipStream_t *ret)
{
	struct creation *creation;
	int r;

	creation = calloc(1, sizeof(*creation));
	if (!creation)
		return hip_fail(lease, -ENOMEM, "out of memory");
	creation->lease = lease;
	creation->i = i;
	r = create(creation, own, words, ret);
	free(creation);
	return r;
}

GPUARB_EXPORT int gpuarb_hip_stream_create(struct gpuarb_lease *lease, size_t i, hipStream_t *ret)
{
	return lease && ret ? create_stream_within(lease, i, NULL, 0, ret) : -EINVAL;
}

GPUARB_EXPORT int gpuarb_hip_stream_create_within(struct gpuarb_lease *lease, size_t i,
						  const uint32_t *mask, size_t words,
						  hipStream_t *ret)
{
	return lease && mask && ret ? create_stream_within(lease, i, mask, words, ret) : -EINVAL;
}

GPUARB_EXPORT int gpuarb_hip_stream_destroy(struct gpuarb_lease *lease, hipStream_t stream)
{
	struct hip_lease *hip = lease ? gpuarb_lease_attached(lease) : NULL;
	struct hip_stream gone;
	hipError_t error = hipSuccess;
	size_t k = 0;

	if (!lease)
		return -EINVAL;
	while (hip && k < hip->n && (hip->streams[k].stream != stream || hip->streams[k].idle))
		k++;
	if (!hip || k == hip->n)
		return hip_fail(lease, -EINVAL, "the stream was not made with lease %" PRIu64,
				gpuarb_lease_id(lease));

	gone = hip->streams[k];
	if (!keep(&hip->streams[k])) {
		hip->streams[k] = hip->streams[--hip->n];
		error = hipStreamDestroy(stream);
	}

	/* HIP may put another stream of this priority on the queue: it gets the lease's mask. */
	if (gone.own && gone.level != LEVEL_NORMAL)
		(void)gpuarb_lease_mask_queue(lease, gone.partition, gone.queue, NULL, 0);
	return error == hipSuccess ? 0 : hip_fail_call(lease, "hipStreamDestroy", error);
}

GPUARB_EXPORT int gpuarb_hip_streams(struct gpuarb_lease *lease, size_t i, unsigned *ret)
{
	const struct gpuarb_partition *partition;
	struct hip_lease *hip;
	struct budget budget;
	int r;

	if (!lease || !ret)
		return -EINVAL;

	r = hip_partition_get(lease, i, &partition);
	if (r >= 0)
		r = hip_lease_get(lease, i, partition, &hip);
	if (r < 0)
		return r;
	r = gpuarb_lease_queue_ids(lease, i, NULL, 0);
	if (r < 0 && r != -EOPNOTSUPP)
		return r;
	get_budget(hip, partition, i, r, count_idle(hip, i), &budget);
	*ret = streams_left(&budget);
	return 0;
}
