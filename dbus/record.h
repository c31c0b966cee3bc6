/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What a holder carries: one record a datagram, host byte order, always the whole state.
 * A reader skips records of a version that it does not know and takes n_partitions
 * entries of partition_size bytes from header_size on, so both may grow.
 */

#include <stdint.h>

#define GPUARB_RECORD_VERSION 1U
#define GPUARB_RECORD_WORDS   32U

enum gpuarb_record_state {
	GPUARB_RECORD_WAITING,
	GPUARB_RECORD_GRANTED,
	GPUARB_RECORD_INACTIVE,
	GPUARB_RECORD_ACTIVATING,
	GPUARB_RECORD_REVOKING,
	GPUARB_RECORD_ENDING, /* the last record: the lease is gone */
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
	uint32_t reserved;
	char reason[128];
};

struct gpuarb_record_partition {
	char gpu[32];
	uint32_t cus, effective_cus;
	uint32_t queues, streams, processes, priority;
	uint32_t n_words;
	uint32_t cu_mask[GPUARB_RECORD_WORDS]; /* KFD bit order */
};
