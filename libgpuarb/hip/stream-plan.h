/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Calculations that need neither HIP nor a lease. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_WORDS 32U   /* KFD reads at most 1024 bits */
#define QUEUES_MAX 1024U /* queue ids of one process (KFD_MAX_NUM_OF_QUEUES_PER_PROCESS) */

struct mask {
	uint32_t word[MASK_WORDS];
	size_t words;
};

struct queue_ids {
	uint32_t ids[QUEUES_MAX]; /* ascending */
	size_t n;
};

enum level { LEVEL_LOW, LEVEL_NORMAL, LEVEL_HIGH };

/* The hardware priority of a KFD priority (pipe_priority_map in kfd_mqd_manager.c). */
enum level level_of(uint32_t kfd_priority);

/* The bits that are in both; false if there are none. Ignores words beyond MASK_WORDS. */
bool mask_and(const uint32_t *a, size_t a_words, const uint32_t *b, size_t b_words,
	      struct mask *ret);

bool mask_equal(const struct mask *a, const struct mask *b);

/* One bit for each pair of CUs; false if only one CU of a pair is in the mask. */
bool mask_to_wgps(const struct mask *mask, struct mask *ret);

/* What the lease grants on one GPU, and what this process uses of it. */
struct budget {
	uint32_t queues, processes, streams; /* as in struct gpuarb_partition */
	size_t used;                         /* compute queues of this process */
	size_t masked;                       /* streams that this library made in it */
};

/* How many more streams fit. Each process has its share of the queues, and ROCr takes one of them
 * with the first stream. A lease with a number of streams allows no more streams than that. */
unsigned streams_left(const struct budget *budget);

/* Whether hipStreamDestroy() keeps the queue of a stream with a mask (normal level), or of one with
 * a priority, in that version of HIP. Between versions that were seen: the older behaviour. */
bool hip_keeps_queue(int version, enum level level);

/* The queues that are in after and not in before. */
void queues_new(const struct queue_ids *before, const struct queue_ids *after,
		struct queue_ids *ret);

/*
 * Which of the new queues belongs to the new stream: the only new queue; or the second of the first
 * two queues of a process, because ROCr makes its own queue first. False: unknown.
 */
bool queue_of_stream(const struct queue_ids *before, const struct queue_ids *new_queues,
		     uint32_t *ret);

struct pci_address {
	uint32_t domain, bus, device;
	uint32_t partition; /* of the card, from "/N"; 0 for a card without partitions */
};

/* Parses "0000:03:00.0" or "0000:03:00.0/2"; false for anything else. The function must be valid
 * and is ignored, because HIP reports 0 for every function. */
bool pci_parse(const char *name, struct pci_address *ret);

/*
 * The index of the wanted device among HIP's devices. Devices with one address are in the order of
 * their partitions, unless reordered. -ENODEV: not found. -EOPNOTSUPP: several, in unknown order.
 */
int device_choose(const struct pci_address *wanted, const struct pci_address *devices, size_t n,
		  bool reordered);
