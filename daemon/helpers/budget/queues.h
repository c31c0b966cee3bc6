/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The maps of queues.bpf.c, which stay in the kernel when gpuarb-budget ends: one with another layout loads
 * the programs anew.
 */

#include <linux/types.h>

/* No user fills a map: budgets are leases, calls are at most twice as many as the budgets have queues,
 * which GPUs limit, and the address spaces are KFD processes, which have a PASID of 16 bits each. */
#define BUDGETS_MAX 4096
#define CALLS_MAX 16384
#define SPACES_MAX 65536

/* Of one cgroup. gpuarb-budget alone writes it. */
struct queue_budget {
	__u64 lease;
	__s32 limit;  /* queues of all processes in the cgroup and below, of all types */
	__s32 before; /* queues among them that are older than the budget */
};

/* Of the same cgroup. The programs in the kernel alone write it, after gpuarb-budget has made it. */
struct queue_use {
	__s32 queues; /* that were created since there is a budget, and calls in flight that create one */
	__s32 in_flight; /* calls that create or destroy a queue */
	__u64 changes;   /* of both numbers, ever */
	__u64 refused;   /* calls */
};

/* The queues of an address space. */
struct queue_space {
	__u64 cgroup; /* that was charged */
	__s32 queues;
	__s32 destroys; /* calls in flight that destroy one */
};
