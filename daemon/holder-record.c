/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "holder-record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dbus/record.h"

_Static_assert(GPUARB_RECORD_WORDS == CODEC_WORDS, "a record takes any mask");
_Static_assert((int)GPUARB_RECORD_ENDING == (int)STATE_ENDING, "same order of states");

/* What an end is to a program that waited; all else is an end like any other. */
static const uint32_t causes[RESULT_KINDS] = {
	[RESULT_TIMED_OUT] = GPUARB_RECORD_TIMED_OUT,
	[RESULT_NEVER_FITS] = GPUARB_RECORD_NEVER_FITS,
	[RESULT_NOT_PERMITTED] = GPUARB_RECORD_NOT_PERMITTED,
	[RESULT_QUOTA_EXCEEDED] = GPUARB_RECORD_NOT_PERMITTED,
	[RESULT_NO_SUCH_TENANT] = GPUARB_RECORD_NOT_PERMITTED,
	[RESULT_NO_SUCH_GPU] = GPUARB_RECORD_NO_SUCH_GPU,
	[RESULT_SHUTDOWN] = GPUARB_RECORD_SHUTDOWN,
};

static void fill_gaps(const struct arbiter *arbiter, const struct partition *p, char *ret,
		      size_t size)
{
	const char *gaps[6];
	size_t n = gpu_info_gaps(&arbiter->gpus[p->gpu].info, gaps), length = 0;

	for (size_t i = 0; i < n && length + 1 + strlen(gaps[i]) < size; i++)
		length += (size_t)snprintf(ret + length, size - length, "%s%s", i > 0 ? " " : "",
					   gaps[i]);
}

static void fill_partition(const struct arbiter *arbiter, const struct partition *p,
			   struct gpuarb_record_partition *ret)
{
	const struct gpu *gpu = &arbiter->gpus[p->gpu];

	memcpy(ret->gpu, gpu->info.name, sizeof(ret->gpu));
	snprintf(ret->tier, sizeof(ret->tier), "%s", partition_tier(p));
	fill_gaps(arbiter, p, ret->gaps, sizeof(ret->gaps));
	ret->vram = p->granted.vram;
	ret->kfd_gpu_id = gpu->info.kfd_gpu_id;
	ret->cus = p->count;
	ret->cus_asked = p->asked;
	ret->effective_cus = p->effective;
	ret->shader_engines = cuset_engines(&p->cus);
	ret->queues = p->granted.queues;
	ret->streams = p->streams;
	ret->processes = p->granted.processes;
	ret->sdma_queues = p->granted.sdma_queues;
	ret->priority = p->priority;
	ret->n_words = (uint32_t)codec_words(&gpu->codec);
	codec_encode(&gpu->codec, &p->cus, ret->cu_mask);
}

static void fill_header(const struct lease *lease, struct gpuarb_record *ret)
{
	ret->version = GPUARB_RECORD_VERSION;
	ret->header_size = sizeof(*ret);
	ret->partition_size = sizeof(struct gpuarb_record_partition);
	ret->n_partitions = (uint32_t)lease->n_partitions;
	ret->lease = lease->id;
	ret->generation = lease->generation;
	ret->deadline_usec = lease->deadline_usec;
	ret->state = (uint32_t)lease->state;
	ret->cause = lease->state == STATE_ENDING ? causes[lease->cause] : 0;
	memcpy(ret->reason, lease->reason, sizeof(ret->reason));
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

	fill_header(lease, record);
	partitions = (struct gpuarb_record_partition *)(record + 1);
	for (size_t i = 0; i < lease->n_partitions; i++)
		fill_partition(arbiter, &lease->partitions[i], &partitions[i]);
	*ret = record;
	*ret_size = size;
	return 0;
}
