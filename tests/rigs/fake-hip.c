/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake-hip.h"

struct fake_hip fake;

struct gpuarb_lease {
	int unused;
};

static struct gpuarb_lease the_lease;

void fake_end(void)
{
	if (fake.attached && fake.done)
		fake.done(fake.attached);
	fake.attached = NULL;
}

void fake_start(void)
{
	static uint32_t starts;

	fake_end();
	unsetenv("HSA_CU_MASK");
	unsetenv("ROC_GLOBAL_CU_MASK");
	unsetenv("ROCR_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
	fake = (struct fake_hip){
		.devices = 1,
		.version = 50221153,
		.major = 9,
		.addresses = { "0000:03:00.0" },
		.arena = 4,
		.lands_on = -1,
		.state = "granted",
		.partitions = 1,
		.mask = { 0xffffffff, 0x0fffffff },
		.partition = { .gpu = "0000:03:00.0",
			       .kfd_gpu_id = 13261 + starts++, /* no streams are left of it */
			       .cu_mask_words = 2,
			       .cus = 60,
			       .queues = 4,
			       .processes = 1,
			       .priority = 7 },
	};
	fake.partition.cu_mask = fake.mask;
}

struct gpuarb_lease *fake_lease(void)
{
	return &the_lease;
}

const struct fake_queue *fake_masked(uint32_t mask)
{
	const struct fake_queue *found = NULL;

	for (int i = 0; i < FAKE_QUEUES; i++) {
		if (!fake.queues[i].there || fake.queues[i].mask[0] != mask)
			continue;
		if (found)
			return NULL;
		found = &fake.queues[i];
	}
	return found;
}

/* ---- HIP -------------------------------------------------------------------------------- */

static hipError_t fate(const char *call)
{
	return fake.fails && strcmp(fake.fails, call) == 0 ? fake.error : hipSuccess;
}

static int make_queue(int device, int priority, bool pooled)
{
	int id = 0;

	while (fake.queues[id].there)
		id++;
	if (id == FAKE_QUEUES - 1)
		abort();
	fake.queues[id] = (struct fake_queue){ true, device, priority, pooled, 0, { 0 } };
	memset(fake.queues[id].mask, 0xff, sizeof(fake.queues[id].mask));
	return id;
}

/* The runtime's own comes before the first one. */
static hipStream_t make_stream(int priority, bool pooled)
{
	int device = fake.lands_on >= 0 ? fake.lands_on : fake.current, n = 0, id = -1;
	bool first = true;

	for (int i = 0; i < FAKE_QUEUES; i++) {
		const struct fake_queue *queue = &fake.queues[i];

		first &= !queue->there || queue->device != device;
		if (queue->there && queue->pooled && queue->priority == priority) {
			n++;
			id = i;
		}
	}
	if (first)
		make_queue(device, 0, false);
	if (!pooled || n < fake.arena)
		id = make_queue(device, priority, pooled);
	for (; fake.unmanaged_processes > 0; fake.unmanaged_processes--)
		make_queue(device, 0, false);
	fake.streams++;
	return (hipStream_t)(uintptr_t)(0x1000 + id);
}

hipError_t hipGetDeviceCount(int *count)
{
	*count = fake.devices;
	return fate("hipGetDeviceCount");
}

hipError_t hipDeviceGetPCIBusId(char *name, int size, int device)
{
	snprintf(name, (size_t)size, "%s", fake.addresses[device]);
	return fate("hipDeviceGetPCIBusId");
}

hipError_t hipGetDevice(int *device)
{
	*device = fake.current;
	return hipSuccess;
}

hipError_t hipSetDevice(int device)
{
	if (fate("hipSetDevice") == hipSuccess)
		fake.current = device;
	return fate("hipSetDevice");
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t, int)
{
	*value = fake.major;
	return fate("hipDeviceGetAttribute");
}

hipError_t hipRuntimeGetVersion(int *version)
{
	*version = fake.version;
	return hipSuccess;
}

hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 1;
	*greatest = -1;
	return hipSuccess;
}

/* The mask as KFD gets it; false for half a pair, or a CU that the GPU (80 of them) has not. */
static bool widen(const uint32_t *mask, uint32_t words, uint32_t *ret)
{
	memset(ret, 0, FAKE_WORDS * sizeof(*ret));
	for (uint32_t bit = 0; bit < words * 32; bit++) {
		if (!(mask[bit / 32] >> bit % 32 & 1))
			continue;
		if (fake.wgp_bits && bit >= 40)
			return false;
		if (fake.wgp_bits)
			ret[bit / 16] |= 3U << bit * 2 % 32;
		else
			ret[bit / 32] |= 1U << bit % 32;
	}
	for (int i = 0; i < FAKE_WORDS && fake.major >= 10; i++)
		if ((ret[i] ^ ret[i] >> 1) & 0x55555555)
			return false;
	return true;
}

hipError_t hipExtStreamCreateWithCUMask(hipStream_t *stream, uint32_t words, const uint32_t *mask)
{
	uint32_t wide[FAKE_WORDS];
	hipError_t error = fate("hipExtStreamCreateWithCUMask");

	fake.creations++;
	if (error != hipSuccess)
		return error;
	if (fake.oom > 0 || !widen(mask, words, wide)) {
		fake.oom -= fake.oom > 0;
		return hipErrorOutOfMemory;
	}
	*stream = make_stream(0, false);
	memcpy(fake.queues[(uintptr_t)*stream - 0x1000].mask, wide, sizeof(wide));
	return hipSuccess;
}

hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned, int priority)
{
	hipError_t error = fate("hipStreamCreateWithPriority");

	fake.creations++;
	if (error == hipSuccess)
		*stream = make_stream(priority, true);
	return error;
}

hipError_t hipStreamSynchronize(hipStream_t)
{
	return fate("hipStreamSynchronize");
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
	struct fake_queue *queue = &fake.queues[(uintptr_t)stream - 0x1000];

	fake.streams--;
	queue->there = queue->pooled || fake.keeps;
	return fate("hipStreamDestroy");
}

hipError_t hipGetLastError(void)
{
	return hipSuccess;
}

const char *hipGetErrorString(hipError_t error)
{
	return error == hipErrorOutOfMemory ? "out of memory" : "something else";
}

const char *hipGetErrorName(hipError_t error)
{
	return error == hipErrorOutOfMemory ? "hipErrorOutOfMemory" : "hipErrorSomething";
}

/* ---- the lease -------------------------------------------------------------------------- */

int gpuarb_lease_fail(struct gpuarb_lease *, int error, const char *sentence)
{
	snprintf(fake.sentence, sizeof(fake.sentence), "%s", sentence);
	return error;
}

int gpuarb_lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t, void *)
{
	return fake.gone < 0 ? gpuarb_lease_fail(lease, fake.gone, "lease 7 has ended") : 0;
}

uint64_t gpuarb_lease_id(const struct gpuarb_lease *)
{
	return 7;
}

const char *gpuarb_lease_state(const struct gpuarb_lease *)
{
	return fake.state;
}

size_t gpuarb_lease_partitions(const struct gpuarb_lease *)
{
	return fake.partitions;
}

const struct gpuarb_partition *gpuarb_lease_partition(const struct gpuarb_lease *, size_t i)
{
	return i < fake.partitions ? &fake.partition : NULL;
}

void gpuarb_lease_attach(struct gpuarb_lease *, void *data, void (*done)(void *data))
{
	fake.attached = data;
	fake.done = done;
}

void *gpuarb_lease_attached(const struct gpuarb_lease *)
{
	return fake.attached;
}

int gpuarb_lease_queue_ids(struct gpuarb_lease *lease, size_t, uint32_t *ids, size_t max)
{
	size_t n = 0;

	if (fake.blind)
		return gpuarb_lease_fail(lease, -EOPNOTSUPP, "in a PID namespace");
	if (fake.look_fails_after && ++fake.looks > (unsigned)fake.look_fails_after)
		return gpuarb_lease_fail(lease, -EIO, "cannot read");
	for (uint32_t id = 0; id < FAKE_QUEUES; id++) {
		if (!fake.queues[id].there || fake.queues[id].device != fake.lease_device)
			continue;
		if (n < max)
			ids[n] = id;
		n++;
	}
	return (int)n;
}

int gpuarb_lease_mask_queue(struct gpuarb_lease *lease, size_t, uint32_t queue,
			    const uint32_t *mask, size_t words)
{
	struct fake_queue *found = &fake.queues[queue];

	if (!found->there)
		return gpuarb_lease_fail(lease, -ENOENT, "no such queue");
	if (fake.mask_fails)
		return gpuarb_lease_fail(lease, fake.mask_fails, "cannot mask");
	fake.forgotten += !mask;
	found->masked++;
	memset(found->mask, 0, sizeof(found->mask));
	for (size_t k = 0; k < fake.partition.cu_mask_words; k++)
		found->mask[k] = fake.mask[k] & (mask ? k < words ? mask[k] : 0 : UINT32_MAX);
	return 0;
}

int gpuarb_lease_apply(struct gpuarb_lease *lease)
{
	fake.applied++;
	return fake.apply_fails ? gpuarb_lease_fail(lease, fake.apply_fails, "cannot apply") : 1;
}
