/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/record-read.h"

#include <errno.h>
#include <string.h>

#include "dbus/record.h"

static const char *const states[] = {
	[GPUARB_RECORD_WAITING] = "waiting",   [GPUARB_RECORD_GRANTED] = "granted",
	[GPUARB_RECORD_INACTIVE] = "inactive", [GPUARB_RECORD_ACTIVATING] = "activating",
	[GPUARB_RECORD_REVOKING] = "revoking", [GPUARB_RECORD_ENDING] = "ending",
};

static bool is_terminated(const char *text, size_t room)
{
	return memchr(text, '\0', room);
}

/* Whether the datagram is as long as its header says, and the header is well-formed. */
static bool record_valid(const struct gpuarb_record *record, size_t size)
{
	size_t rest;

	if (record->header_size < sizeof(*record) || record->header_size > size ||
	    record->partition_size < sizeof(struct gpuarb_record_partition))
		return false;

	rest = size - record->header_size;
	return record->n_partitions <= rest / record->partition_size &&
	       record->state < ARRAY_SIZE(states) &&
	       is_terminated(record->reason, sizeof(record->reason));
}

static bool partition_valid(const struct gpuarb_record_partition *from)
{
	return from->n_words <= GPUARB_RECORD_WORDS &&
	       is_terminated(from->gpu, sizeof(from->gpu)) &&
	       is_terminated(from->tier, sizeof(from->tier)) &&
	       is_terminated(from->gaps, sizeof(from->gaps));
}

static int read_engines(uint32_t engines, struct arena *arena, struct gpuarb_partition *partition)
{
	uint32_t *list = arena_alloc(arena, 32, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;

	for (uint32_t engine = 0; engine < 32; engine++)
		if (engines & UINT32_C(1) << engine)
			list[n++] = engine;
	partition->shader_engines = list;
	partition->n_shader_engines = n;
	return 0;
}

/* Names separated by blanks. */
static int read_gaps(const char *text, struct arena *arena, struct gpuarb_partition *partition)
{
	char *copy = arena_string(arena, text), *rest = NULL;
	const char **list = arena_alloc(arena, strlen(text) / 2 + 1, sizeof(*list));
	size_t n = 0;

	if (!copy || !list)
		return -ENOMEM;

	for (char *p = strtok_r(copy, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
		list[n++] = p;
	partition->gaps = list;
	partition->n_gaps = n;
	return 0;
}

static int read_partition(const struct gpuarb_record_partition *from, struct arena *arena,
			  struct gpuarb_partition *ret)
{
	int r;

	*ret = (struct gpuarb_partition){
		.gpu = arena_string(arena, from->gpu),
		.kfd_gpu_id = from->kfd_gpu_id,
		.cu_mask = arena_copy(arena, from->cu_mask, from->n_words, sizeof(uint32_t)),
		.cu_mask_words = from->n_words,
		.cus = from->cus,
		.cus_asked = from->cus_asked,
		.effective_cus = from->effective_cus,
		.queues = from->queues,
		.streams = from->streams,
		.processes = from->processes,
		.sdma_queues = from->sdma_queues,
		.vram = from->vram,
		.priority = from->priority,
		.paused = (from->flags & GPUARB_RECORD_PAUSED) != 0,
		.tier = arena_string(arena, from->tier),
	};
	if (!ret->gpu || !ret->cu_mask || !ret->tier)
		return -ENOMEM;

	r = read_engines(from->shader_engines, arena, ret);
	return r < 0 ? r : read_gaps(from->gaps, arena, ret);
}

static int read_all(const unsigned char *data, const struct gpuarb_record *record,
		    struct arena *arena, struct gpuarb_lease_info *info)
{
	struct gpuarb_partition *partitions = arena_alloc(arena, record->n_partitions,
							  sizeof(*partitions));

	if (!partitions)
		return -ENOMEM;

	for (size_t i = 0; i < record->n_partitions; i++) {
		struct gpuarb_record_partition from;
		int r;

		memcpy(&from, data + record->header_size + i * record->partition_size,
		       sizeof(from));
		if (!partition_valid(&from))
			return -EPROTO;
		r = read_partition(&from, arena, &partitions[i]);
		if (r < 0)
			return r;
	}
	info->partitions = partitions;
	info->n_partitions = record->n_partitions;
	return 0;
}

int record_read(const void *data, size_t size, struct arena *arena, struct gpuarb_lease_info *ret,
		uint32_t *ret_cause)
{
	struct gpuarb_lease_info info = { .id = 0 };
	struct gpuarb_record record;
	int r;

	if (size < sizeof(record.version))
		return -EPROTO;
	memcpy(&record.version, data, sizeof(record.version));
	if (record.version != GPUARB_RECORD_VERSION)
		return 0;

	if (size < sizeof(record))
		return -EPROTO;
	memcpy(&record, data, sizeof(record));
	if (!record_valid(&record, size))
		return -EPROTO;

	r = read_all(data, &record, arena, &info);
	if (r < 0)
		return r;

	info.id = record.lease;
	info.generation = record.generation;
	info.deadline = record.deadline_usec;
	info.state = states[record.state];
	info.reason = arena_string(arena, record.reason);
	if (!info.reason)
		return -ENOMEM;
	*ret = info;
	*ret_cause = record.cause;
	return 1;
}
