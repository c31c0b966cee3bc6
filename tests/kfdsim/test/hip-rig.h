/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A lease of the shipped daemon, HIP streams in it, and the emulated driver's record of them. */

#include <inttypes.h>
#include <json-c/json.h>
#include <unistd.h>

#include "check.h"
#include "libgpuarb/gpuarb.h"
#include "libgpuarb/hip/gpuarb-hip.h"

#define STATE "/sys/kernel/debug/kfdsim/state"

struct stage {
	pid_t pid; /* of this process, as the driver knows it */
	struct gpuarb *gpuarb;
	struct gpuarb_lease *lease;
	struct json_object *state; /* what the queues point into */
};

/* ---- a lease ---------------------------------------------------------------------------- */

static inline void start(struct stage *stage, const struct gpuarb_want *wants, size_t n)
{
	int r;

	*stage = (struct stage){ .pid = getpid() };
	CHECK(gpuarb_open(&stage->gpuarb) == 0);
	r = gpuarb_reserve(stage->gpuarb, wants, n, NULL, &stage->lease);
	if (r < 0)
		fprintf(stderr, "%s\n", gpuarb_last_error(stage->gpuarb));
	CHECK(r == 0);
}

static inline struct gpuarb_want want_of(const char *gpu, uint32_t cus, uint32_t queues)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;

	want.gpu = gpu;
	want.cus = cus;
	want.queues = queues;
	return want;
}

static inline void end(struct stage *stage)
{
	json_object_put(stage->state);
	gpuarb_lease_close(stage->lease);
	gpuarb_close(stage->gpuarb);
}

static inline hipStream_t create(struct stage *stage, size_t i)
{
	hipStream_t stream = NULL;
	int r = gpuarb_hip_stream_create(stage->lease, i, &stream);

	if (r < 0)
		fprintf(stderr, "%d: %s\n", r, gpuarb_last_error(stage->gpuarb));
	CHECK(r == 0 && stream);
	return stream;
}

static inline void refused(struct stage *stage, int error, const char *word)
{
	hipStream_t stream = NULL;
	int r = gpuarb_hip_stream_create(stage->lease, 0, &stream);

	fprintf(stderr, "%d: %s\n", r, gpuarb_last_error(stage->gpuarb));
	CHECK(r == error && !stream && strstr(gpuarb_last_error(stage->gpuarb), word));
}

/* ---- the driver's record ---------------------------------------------------------------- */

static inline struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	CHECK(json_object_object_get_ex(object, key, &value));
	return value;
}

/* This process's record, read anew. */
static inline struct json_object *own_record(struct stage *stage)
{
	struct json_object *processes;

	json_object_put(stage->state);
	stage->state = json_object_from_file(STATE);
	CHECK(stage->state);
	processes = member(stage->state, "processes");
	for (size_t i = 0; i < json_object_array_length(processes); i++) {
		struct json_object *process = json_object_array_get_idx(processes, i);

		if (json_object_get_int(member(process, "pid")) == stage->pid)
			return process;
	}
	CHECK(!"there is no record of this process");
	return NULL;
}

static inline const char *text(struct json_object *object, const char *key)
{
	const char *value = json_object_get_string(member(object, key));

	return value ? value : "";
}

/* The k-th compute queue of this process on the partition's GPU that is alive, or NULL. */
static inline struct json_object *queue(struct stage *stage, size_t i, size_t k)
{
	struct json_object *queues = member(own_record(stage), "queues");

	for (size_t n = 0; n < json_object_array_length(queues); n++) {
		struct json_object *found = json_object_array_get_idx(queues, n);

		if (json_object_get_boolean(member(found, "alive")) &&
		    strcmp(text(found, "type"), "compute") == 0 &&
		    strcmp(text(found, "gpu"), gpuarb_lease_gpu(stage->lease, i)) == 0 && k-- == 0)
			return found;
	}
	return NULL;
}

static inline size_t count_queues(struct stage *stage, size_t i)
{
	size_t n = 0;

	while (queue(stage, i, n))
		n++;
	return n;
}

/* "0x…" with as few digits as possible, as the record has masks. */
static inline void print_mask(const uint32_t *mask, size_t words, char buf[300])
{
	size_t length;

	while (words > 1 && mask[words - 1] == 0)
		words--;
	length = (size_t)sprintf(buf, "0x%" PRIx32, mask[words - 1]);
	while (--words > 0)
		length += (size_t)sprintf(buf + length, "%08" PRIx32, mask[words - 1]);
}

static inline bool has_mask(struct json_object *found, const uint32_t *mask, size_t words)
{
	char wanted[300];

	print_mask(mask, words, wanted);
	if (strcmp(text(found, "mask"), wanted) == 0)
		return true;
	fprintf(stderr, "queue %s has %s, not %s\n", text(found, "id"), text(found, "mask"),
		wanted);
	return false;
}

/* Every queue on the partition's GPU has its mask, and there are n. */
static inline void check_masks(struct stage *stage, size_t i, size_t n)
{
	size_t words, have = count_queues(stage, i);
	const uint32_t *mask = gpuarb_lease_cu_mask(stage->lease, i, &words);

	if (have != n)
		fprintf(stderr, "%zu queues, not %zu\n", have, n);
	CHECK(have == n);
	for (size_t k = 0; k < n; k++)
		CHECK(has_mask(queue(stage, i, k), mask, words));
}
