/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "dbus/record.h"
#include "libgpuarb/internal.h"

static const char *const states[] = {
	[GPUARB_RECORD_WAITING] = "waiting",       [GPUARB_RECORD_GRANTED] = "granted",
	[GPUARB_RECORD_INACTIVE] = "inactive",     [GPUARB_RECORD_ACTIVATING] = "activating",
	[GPUARB_RECORD_REVOKING] = "revoking",     [GPUARB_RECORD_ENDING] = "ending",
};

static bool ends(const char *text, size_t room)
{
	return memchr(text, '\0', room);
}

/* Whether the sizes that it names are there. */
static bool holds_together(const struct gpuarb_record *record, size_t size)
{
	size_t rest;

	if (record->header_size < sizeof(*record) || record->header_size > size ||
	    record->partition_size < sizeof(struct gpuarb_record_partition))
		return false;

	rest = size - record->header_size;
	return record->n_partitions <= rest / record->partition_size &&
	       record->state < ARRAY_SIZE(states) && ends(record->reason, sizeof(record->reason));
}

static bool same_mask(const struct gpuarb_partition *partition,
		      const struct gpuarb_record_partition *from)
{
	return partition->cu_mask_words == from->n_words &&
	       memcmp(partition->cu_mask, from->cu_mask, from->n_words * sizeof(uint32_t)) == 0;
}

/* What records do not carry, if the partition is still on the same GPU. */
static void start_from(const struct gpuarb_lease_info *whole, size_t i,
		       const struct gpuarb_record_partition *from, struct gpuarb_partition *ret)
{
	*ret = (struct gpuarb_partition){ .tier = "" };
	if (i >= whole->n_partitions || strcmp(whole->partitions[i].gpu, from->gpu) != 0)
		return;

	*ret = whole->partitions[i];
	if (!same_mask(ret, from)) {
		ret->shader_engines = NULL;
		ret->n_shader_engines = 0;
	}
}

static int read_partition(const struct gpuarb_record_partition *from, struct pool *pool,
			  struct gpuarb_partition *partition)
{
	partition->gpu = pool_string(pool, from->gpu);
	partition->cu_mask = pool_copy(pool, from->cu_mask, from->n_words, sizeof(uint32_t));
	partition->cu_mask_words = from->n_words;
	partition->cus = from->cus;
	partition->effective_cus = from->effective_cus;
	partition->queues = from->queues;
	partition->streams = from->streams;
	partition->processes = from->processes;
	partition->priority = from->priority;
	return partition->gpu && partition->cu_mask ? 0 : -ENOMEM;
}

static int read_all(const unsigned char *data, const struct gpuarb_record *record,
		    const struct gpuarb_lease_info *whole, struct pool *pool,
		    struct gpuarb_lease_info *info)
{
	struct gpuarb_partition *partitions =
		pool_alloc(pool, record->n_partitions, sizeof(*partitions));

	if (!partitions)
		return -ENOMEM;

	for (size_t i = 0; i < record->n_partitions; i++) {
		struct gpuarb_record_partition from;
		int r;

		memcpy(&from, data + record->header_size + i * record->partition_size,
		       sizeof(from));
		if (from.n_words > GPUARB_RECORD_WORDS || !ends(from.gpu, sizeof(from.gpu)))
			return -EPROTO;
		start_from(whole, i, &from, &partitions[i]);
		r = read_partition(&from, pool, &partitions[i]);
		if (r < 0)
			return r;
	}
	info->partitions = partitions;
	info->n_partitions = record->n_partitions;
	return 0;
}

int record_read(const void *data, size_t size, const struct gpuarb_lease_info *whole,
		struct pool *pool, struct gpuarb_lease_info *ret)
{
	struct gpuarb_lease_info info = *whole;
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
	if (!holds_together(&record, size))
		return -EPROTO;

	r = read_all(data, &record, whole, pool, &info);
	if (r < 0)
		return r;

	info.generation = record.generation;
	info.deadline = record.deadline_usec;
	info.state = states[record.state];
	info.reason = pool_string(pool, record.reason);
	if (!info.reason)
		return -ENOMEM;
	*ret = info;
	return 1;
}
