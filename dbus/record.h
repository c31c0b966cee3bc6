/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The records that a holder receives: one in each datagram, in host byte order, always with the
 * whole state of the lease. A reader skips records of an unknown version. n_partitions entries of
 * partition_size bytes follow the first header_size bytes, so both structs can grow.
 */

#include <stddef.h>
#include <stdint.h>

#define GPUARB_RECORD_VERSION 1U
#define GPUARB_RECORD_WORDS 32U

enum gpuarb_record_state {
	GPUARB_RECORD_WAITING,
	GPUARB_RECORD_GRANTED,
	GPUARB_RECORD_INACTIVE,
	GPUARB_RECORD_ACTIVATING,
	GPUARB_RECORD_REVOKING,
	GPUARB_RECORD_ENDING, /* the last record: the lease has ended */
};

/* Why a lease ended, for a program that waits for it to be granted. */
enum gpuarb_record_cause {
	GPUARB_RECORD_ENDED,         /* released, revoked, or its holders are gone */
	GPUARB_RECORD_TIMED_OUT,     /* its deadline passed while it waited */
	GPUARB_RECORD_NEVER_FITS,    /* it waited, and can never be granted any more */
	GPUARB_RECORD_NOT_PERMITTED, /* policy does not allow it any more */
	GPUARB_RECORD_NO_SUCH_GPU,   /* its GPU was removed or replaced */
	GPUARB_RECORD_SHUTDOWN,      /* the daemon stopped */
};

enum gpuarb_record_flag {
	/* The queues of the lease on this GPU have to be off the run list: queue_percentage 0. The
	 * holder acknowledges when they are. */
	GPUARB_RECORD_PAUSED = 1 << 0,

	/* No queue of others covers a CU of the lease on this GPU. Not set where gpuarbd cannot read
	 * the masks of queues. */
	GPUARB_RECORD_ALONE = 1 << 1,

	/* The driver resets this GPU, so that no program gets queues there; or a program of the lease that has lost its
	 * queues by a reset has not ended. */
	GPUARB_RECORD_RESETTING = 1 << 2,
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

/* The keys of a partition on the bus. */
struct gpuarb_record_partition {
	char gpu[32];
	char tier[16];
	char gaps[96]; /* words, separated by blanks */
	uint64_t vram;
	uint32_t kfd_gpu_id;
	uint32_t cus, cus_asked, effective_cus;
	uint32_t shader_engines; /* bits */
	uint32_t queues, streams, processes, sdma_queues, priority;
	uint32_t flags; /* bits of enum gpuarb_record_flag; a reader ignores unknown ones */
	uint32_t n_words;
	uint32_t cu_mask[GPUARB_RECORD_WORDS]; /* KFD bit order */
	uint32_t sdma_xgmi_queues;             /* absent in records of gpuarb 0.1 */

	/* CUs of the lease on this GPU (realtime: of its shader engines) that intruders cover. Absent in
	 * records of gpuarb 0.1. */
	uint32_t disturbed_cus;

	/* How often the driver has reset a GPU of the lease, the same in each partition: a program loses its queues.
	 * Absent in records of gpuarb 0.1. */
	uint32_t resets;
};

/* The size of a partition in records of gpuarb 0.1. */
#define GPUARB_RECORD_PARTITION_0_1 offsetof(struct gpuarb_record_partition, sdma_xgmi_queues)
