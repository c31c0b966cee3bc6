/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/record.h"

_Static_assert(GPUARB_RECORD_WORDS == DEAL_WORDS, "a record takes any mask");
_Static_assert((int)GPUARB_RECORD_ENDING == (int)STATE_ENDING, "same order of states");

static void fill_partition(const struct arbiter *arbiter, const struct partition *p,
			   struct gpuarb_record_partition *ret)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];

	memcpy(ret->gpu, gpu->info.name, sizeof(ret->gpu));
	ret->cus = p->count;
	ret->effective_cus = p->effective;
	ret->queues = p->granted.queues;
	ret->streams = p->streams;
	ret->processes = p->granted.processes;
	ret->priority = p->priority;
	ret->n_words = (uint32_t)deal_words(&gpu->deal);
	deal_encode(&gpu->deal, &p->cus, ret->cu_mask);
}

int record_new(const struct arbiter *arbiter, const struct lease *lease, void **ret,
	       size_t *ret_size)
{
	size_t size = sizeof(struct gpuarb_record) +
		      lease->n_partitions * sizeof(struct gpuarb_record_partition);
	struct gpuarb_record *record = calloc(1, size);
	struct gpuarb_record_partition *partitions;

	if (!record)
		return -ENOMEM;
	record->version = GPUARB_RECORD_VERSION;
	record->header_size = sizeof(*record);
	record->partition_size = sizeof(*partitions);
	record->n_partitions = (uint32_t)lease->n_partitions;
	record->lease = lease->id;
	record->generation = lease->generation;
	record->deadline_usec = lease->deadline_usec;
	record->state = (uint32_t)lease->state;
	memcpy(record->reason, lease->reason, sizeof(record->reason));

	partitions = (struct gpuarb_record_partition *)(record + 1);
	for (size_t i = 0; i < lease->n_partitions; i++)
		fill_partition(arbiter, &lease->partitions[i], &partitions[i]);
	*ret = record;
	*ret_size = size;
	return 0;
}
