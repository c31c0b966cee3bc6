/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One GPU's ledger: what it has, what is charged, what others were seen to use. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/codec.h"
#include "core/mask/gpu-info.h"
#include "core/ledger/lease.h"

#define GPU_UNMANAGED_MAX 64U /* unmanaged processes told by name; all of them are counted */

/* A process without a lease that uses the GPU. */
struct unmanaged_process {
	pid_t pid;
	uid_t uid; /* (uid_t) -1: unknown */
	char command[16];
	unsigned queues;
};

struct gpu {
	struct gpu_info info;
	struct codec codec;
	struct cuset all;
	unsigned cus; /* CUs that a mask can reach */
	unsigned reserve_queues;
	bool draining;

	/* A GPU's place among the arbiter's stays its own while anything refers to it. */
	bool absent;   /* nothing is granted there: it is gone, or is another GPU by now */
	bool shown;    /* the bus knows of it: the daemon's, as the next */
	bool replaced; /* it has become another GPU since the bus was told of this place */

	/* The waiting lease that has been passed LEASE_PASSES_MAX times and ranks first among
	 * those that could use this GPU; 0: none. */
	uint64_t barrier;
	enum lease_class barrier_class;

	/* Charged to leases: sums that gpu_charge() and gpu_discharge() keep. */
	struct cuset taken;  /* CUs of partitions that do not share */
	struct cuset shared; /* CUs of partitions with isolation=shared */
	struct budget charged;
	unsigned n_partitions, n_realtime, n_shared;
	unsigned rt_exclusive[CUSET_ENGINES]; /* realtime partitions in the engine that */
	unsigned rt_tolerant[CUSET_ENGINES];  /* exclude, or (isolation=cu) tolerate others */
	unsigned alone[CUSET_ENGINES];        /* … whose tenant wants nobody else there */

	/* Last seen. */
	struct unmanaged_process unmanaged_processes[GPU_UNMANAGED_MAX];
	size_t n_unmanaged_processes;
	struct budget unmanaged; /* all of theirs */
	struct budget seen;      /* what all processes had, leases included */
	struct budget excess;    /* what leases had beyond their budgets */
	bool oversubscribed;

	/* What adaptable leases have beyond what they are charged, and when they may have more:
	 * lend.c, grow.c. */
	struct cuset borrowed;
	bool may_grow;
	uint64_t grow_usec;  /* the next look; UINT64_MAX: not settled yet */
	uint64_t grown_usec; /* the last time that masks grew */

	bool changed; /* since the daemon last told the bus */
};

void gpu_init(struct gpu *gpu, const struct gpu_info *info, unsigned reserve_queues);

/* lease_class decides how the partition's engines count. A shared partition's CUs can be
 * taken out only by recounting: gpu_discharge() leaves them, gpu_recount_shared() is told
 * of each one that stays. */
void gpu_charge(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class);
void gpu_discharge(struct gpu *gpu, const struct partition *partition,
		   enum lease_class lease_class);

/* Adds to the set all CUs of the engines that it has CUs of: what a lease that excludes others
 * from its engines needs. */
void gpu_add_engines(const struct gpu *gpu, struct cuset *set);

/* CUs in nobody's mask, nor kept for an inactive lease; budgets not charged, seen or reserved (never below zero). */
unsigned gpu_cus_free(const struct gpu *gpu);
unsigned gpu_queues_free(const struct gpu *gpu);
unsigned gpu_processes_free(const struct gpu *gpu);
unsigned gpu_sdma_free(const struct gpu *gpu);
uint64_t gpu_vram_free(const struct gpu *gpu);
