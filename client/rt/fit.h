/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Where partitions come to lie on an empty GPU, by asking core's arbiter for each of them one
 * after the other: what gpuarbd would grant to the same requests in that order.
 */

#include "client/rt/set.h"
#include "core/mask/cuset.h"
#include "core/mask/gpu-info.h"
#include "core/policy/result.h"

/* What is asked for one partition; `run` is to ask the same. */
struct rt_ask {
	unsigned least;   /* effective CUs without which it does not pass; 0: leave it out */
	unsigned cus;     /* the aim */
	unsigned engines; /* over so many shader engines; 0: over any number */
};

struct rt_place {
	struct rt_ask ask;
	struct cuset set;
	unsigned cus, effective; /* 0: it was left out */
	uint32_t engines;        /* as bits */
};

struct rt_layout {
	struct rt_place places[RT_PARTITIONS_MAX]; /* by partition */
	size_t order[RT_PARTITIONS_MAX];           /* of being asked for */
	size_t n;
	bool any_order;    /* they fit in whatever order they start */
	char why[320];     /* they do not fit: what the arbiter said of the last, and of which */
	size_t failed;     /* that one */
	enum reason lacks; /* what it was refused for */
};

/*
 * Places all partitions whose least[] is not 0. Whole shader engines for those that share none,
 * else the fewest CUs; few engines in all. 0; -ENOSPC and why; -ENOMEM. Orders are tried, the
 * largest partitions first, RT_ORDERS_MAX of them at most: the daemon places one lease after the
 * other, so there may be a way that no order leads to.
 */
#define RT_ORDERS_MAX 720U
int rt_fit(const struct gpu_info *gpu, const struct rt_set *set, const unsigned *least,
	   struct rt_layout *ret);

/* The most effective CUs that one partition can have, alone on the GPU. */
unsigned rt_fit_most(const struct gpu_info *gpu);
