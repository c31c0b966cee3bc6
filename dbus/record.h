/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a holder carries: one record a datagram, host byte order, always the whole state.
 * A reader skips records of a version that it does not know and takes n_partitions
 * entries of partition_size bytes from header_size on, so both may grow.
 */

#include <stdint.h>

#define GPUARB_RECORD_VERSION 1U
#define GPUARB_RECORD_WORDS 32U

enum gpuarb_record_state {
	GPUARB_RECORD_WAITING,
	GPUARB_RECORD_GRANTED,
	GPUARB_RECORD_INACTIVE,
	GPUARB_RECORD_ACTIVATING,
	GPUARB_RECORD_REVOKING,
	GPUARB_RECORD_ENDING, /* the last record: the lease is gone */
};

/* Of an ending lease: what this is to a program that waited for it. */
enum gpuarb_record_cause {
	GPUARB_RECORD_ENDED,         /* given up, released, or its holders are gone */
	GPUARB_RECORD_TIMED_OUT,     /* its deadline passed while it waited */
	GPUARB_RECORD_NEVER_FITS,    /* it waited, and can never be granted now */
	GPUARB_RECORD_NOT_PERMITTED, /* policy does not allow it any more */
	GPUARB_RECORD_NO_SUCH_GPU,   /* a GPU of it is gone, or another by now */
	GPUARB_RECORD_SHUTDOWN,      /* the daemon stopped */
};

struct gpuarb_record {
	uint32_t version;
	uint32_t header_size;
	uint32_t partition_size;
	uint32_t n_partitions;
	uint64_t lease;
	uint64_t generation;
	uint64_t deadline_usec; /* CLOCK_BOOTTIME; UINT64_MAX: none */
	uint32_t state;         /* enum gpuarb_record_state */
	uint32_t cause;         /* enum gpuarb_record_cause; 0 while it is not ending */
	char reason[128];
};

/* All that the bus says of it. */
struct gpuarb_record_partition {
	char gpu[32];
	char tier[16];
	char gaps[96]; /* names, a blank between them */
	uint64_t vram;
	uint32_t kfd_gpu_id;
	uint32_t cus, cus_asked, effective_cus;
	uint32_t shader_engines; /* as bits */
	uint32_t queues, streams, processes, sdma_queues, priority;
	uint32_t reserved;
	uint32_t n_words;
	uint32_t cu_mask[GPUARB_RECORD_WORDS]; /* KFD bit order */
};
