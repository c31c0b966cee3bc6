/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What needs neither HIP nor a lease. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MASK_WORDS 32U   /* 1024 bits are all that KFD looks at */
#define QUEUES_MAX 1024U /* queue ids of one process (KFD_MAX_NUM_OF_QUEUES_PER_PROCESS) */

struct mask {
	uint32_t word[MASK_WORDS];
	size_t words;
};

struct queue_set {
	uint32_t ids[QUEUES_MAX]; /* ascending */
	size_t n;
};

enum level { LEVEL_LOW, LEVEL_NORMAL, LEVEL_HIGH };

/* The class that KFD's priorities have in the hardware (pipe_priority_map in kfd_mqd_manager.c). */
enum level level_of(uint32_t kfd_priority);

/* Bits that both have; false if there are none. Words beyond MASK_WORDS are left out. */
bool mask_and(const uint32_t *a, size_t a_words, const uint32_t *b, size_t b_words,
	      struct mask *ret);

/* One bit for each pair of CUs; false if a pair is not whole. */
bool mask_to_wgps(const struct mask *mask, struct mask *ret);

/* What a lease gives on one GPU, and what one process has of it. */
struct budget {
	uint32_t queues, processes, streams; /* as in struct gpuarb_partition */
	size_t used;                         /* the process's compute queues */
	size_t masked;                       /* its streams that were made here */
};

/* How many more streams fit: each process has its share of the queues, and ROCr takes one of
 * them with the first stream. A lease that counts streams has no room for more of them. */
unsigned streams_left(const struct budget *budget);

/* The queues that are in after and not in before. */
void queues_new(const struct queue_set *before, const struct queue_set *after,
		struct queue_set *ret);

/*
 * Which of the new queues is the stream's: the only one, or of the first two of a process the
 * second, since ROCr makes its own before. False if that cannot be told.
 */
bool queue_of_stream(const struct queue_set *before, const struct queue_set *fresh, uint32_t *ret);

struct pci_address {
	uint32_t domain, bus, device;
	uint32_t partition; /* of the card, by "/N"; 0 for a card that has none */
};

/* "0000:03:00.0", "0000:03:00.0/2"; false for anything else. The function is checked and then
 * ignored: HIP says 0 whatever it is. */
bool pci_parse(const char *name, struct pci_address *ret);

/*
 * The index of the wanted one among HIP's devices. Those at one address are in the order of
 * their partitions if nothing reordered them. -ENODEV: not there. -EOPNOTSUPP: cannot be told.
 */
int device_choose(const struct pci_address *wanted, const struct pci_address *devices, size_t n,
		  bool reordered);
