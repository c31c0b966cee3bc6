/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One queue of one process over a piece of memory that stands for the client's, and the calls
 * of the core that packet processors make. */

#include "kfdsim/packet/packet.h"

#define RIG_MEMORY 0x700000000000ULL /* the client's address of the first byte */
#define RIG_SIZE (48U << 20)
#define RIG_RING RIG_MEMORY
#define RIG_READ (RIG_MEMORY + 0x10000)
#define RIG_WRITE (RIG_MEMORY + 0x10008)
#define RIG_SIGNALS (RIG_MEMORY + 0x11000) /* 64 bytes each */
#define RIG_MAILBOXES (RIG_MEMORY + 0x12000)
#define RIG_DATA (RIG_MEMORY + 0x100000)

struct rig {
	struct sim sim;
	struct sim_process process;
	struct sim_gpu *gpu;
	struct sim_queue queue;
	uint8_t *memory;
	uint64_t arena[512];
	uint64_t written; /* packets or bytes */
	uint64_t now_ns, next_ns;

	uint32_t raised[8]; /* event ids, in order */
	unsigned n_raised;
	int timing_answer;  /* of timing_dispatch() */
	unsigned timed;     /* how often it was called */
	uint64_t model_now; /* what timing_now() answers */
	uint64_t timed_key;
	struct timing_kernel kernel;
	struct timing_ran ran[8]; /* what timing_ran() answers */
	size_t n_ran;
};

/* ring_size in bytes. One rig at a time. */
void rig_start(struct rig *rig, enum sim_queue_type type, uint64_t ring_size);
void rig_stop(struct rig *rig);

void *rig_at(struct rig *rig, uint64_t address);
uint64_t rig_read64(struct rig *rig, uint64_t address);
void rig_write64(struct rig *rig, uint64_t address, uint64_t value);

void rig_ring(struct rig *rig, uint64_t doorbell);
bool rig_work(struct rig *rig); /* at rig->now_ns */

/* Signal i with a value, a mailbox and event i + 1 where mailed; returns its handle. */
uint64_t rig_signal(struct rig *rig, unsigned i, int64_t value, bool mailed);
int64_t rig_value(struct rig *rig, unsigned i);

/* AQL: the next packet, 64 bytes, zero but for the header's type and the completion signal;
 * rings nothing. */
uint8_t *rig_packet(struct rig *rig, unsigned type, uint64_t completion);
uint8_t *rig_dispatch(struct rig *rig, uint32_t grid, uint16_t group, uint64_t completion);

/* SDMA: appends words, rings and works once. */
bool rig_sdma(struct rig *rig, const uint32_t *words, unsigned n);
#define RIG_SDMA(rig, ...)                               \
	rig_sdma(rig, (const uint32_t[]){ __VA_ARGS__ }, \
		 sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
#define LOW(address) ((uint32_t)(address))
#define HIGH(address) ((uint32_t)((uint64_t)(address) >> 32))
