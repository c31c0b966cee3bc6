/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Places partitions on an empty GPU with the daemon's own arbiter, one after the other: the result
 * is what gpuarbd grants to the same requests in that order.
 */

#include "client/rt/set.h"
#include "core/mask/cuset.h"
#include "core/mask/gpu-info.h"
#include "core/policy/result.h"

/* The request for one partition; the command line of `run` is made from it. */
struct rt_ask {
	unsigned least;   /* the fewest effective CUs; 0: do not place it */
	unsigned cus;     /* the CUs to aim at */
	unsigned engines; /* number of shader engines; 0: any */
};

struct rt_place {
	struct rt_ask ask;
	struct cuset set;
	unsigned cus, effective; /* 0: not placed */
	uint32_t engines;        /* one bit each */
};

struct rt_layout {
	struct rt_place places[RT_PARTITIONS_MAX]; /* by partition */
	size_t order[RT_PARTITIONS_MAX];           /* in which the leases are requested */
	size_t n;
	bool any_order;    /* they fit in any order */
	char why[512];     /* they do not fit: the refusal of the arbiter */
	enum reason lacks; /* the reason of that refusal */
};

/*
 * Places all partitions whose least[] is not 0: with whole shader engines if the partition shares
 * none, else with the fewest CUs, and with few shader engines in total. Tries up to RT_ORDERS_MAX
 * orders, the largest partitions first. The daemon places one lease after the other, so a placement
 * can exist that no order leads to. 0; -ENOSPC with `why`; -ENOMEM.
 */
#define RT_ORDERS_MAX 720U
int rt_fit(const struct gpu_info *gpu, const struct rt_set *set, const unsigned *least,
	   struct rt_layout *ret);

/* The most effective CUs of one partition that is alone on the GPU. */
unsigned rt_fit_most(const struct gpu_info *gpu);
