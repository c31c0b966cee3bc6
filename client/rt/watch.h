/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Compares what happens on the GPUs with what a plan assumes, by snapshots of the daemon. Each pair of
 * snapshots has a number of events between them, and the plan allows so many in the time from before
 * the earlier one to after the later one. More are a violation for certain; fewer can be one that
 * snapshots do not show.
 */

#include "client/rt/task-plan.h"
#include "libgpuarb/gpuarb.h"

enum rt_assumption {
	RT_DISTURBANCES,  /* preemptions for masks of other leases */
	RT_ACTIVATIONS,   /* of other leases: granted or activated */
	RT_QUEUE_CHANGES, /* compute queues of other programs */
	RT_CUS,           /* effective CUs of the lease */
	RT_PIPES,         /* queues of others on pipes with a queue of the lease */
	RT_NEIGHBOURS,    /* leases and programs that share the memory of its GPU */
	RT_ASSUMPTIONS,
};
extern const char *const rt_assumption_names[RT_ASSUMPTIONS];

struct rt_violation {
	enum rt_assumption assumption;
	const char *partition;    /* of the plan */
	const char *gpu;          /* its name, not that in the set */
	uint64_t lease;           /* of this partition, or the last that it had */
	uint64_t bound, observed; /* bound: the most; of RT_CUS the least */
	uint64_t within_usec; /* the time in which it was observed; 0: RT_CUS and those after it */
};

struct rt_watch;

/* The plan must outlive it. -ENOMEM. */
int rt_watch_new(const struct rt_plan *plan, struct rt_watch **ret);
struct rt_watch *rt_watch_free(struct rt_watch *watch);
DEFINE_CLEANUP(struct rt_watch *, rt_watch_free)

/* Whether the partition has had a lease: it is not watched before. */
bool rt_watch_had_lease(const struct rt_watch *watch, size_t partition);

/* Whether queues came, went or changed their lease between the last two snapshots. */
bool rt_watch_moved(const struct rt_watch *watch);

/* Forgets what was seen but for which leases there were: snapshots are missing. */
void rt_watch_forget(struct rt_watch *watch);

/* Queues of others on pipes with a queue of the lease that the tenant has on this GPU. RT_UNSET: it has
 * no lease, or no queue. */
uint64_t rt_pipe_neighbours(const struct gpuarb_view *view, const struct gpuarb_slots *slots,
			    const char *tenant, const char *gpu);

/* Compares the queue slots of a GPU of the plan. True: *ret is a violation. */
bool rt_watch_pipes(const struct rt_watch *watch, const struct gpuarb_view *view,
		    const struct gpuarb_slots *slots, size_t gpu, struct rt_violation *ret);

/* Compares a snapshot that was taken between these two times. True: *ret is a violation. -ENOMEM. */
int rt_watch_compare(struct rt_watch *watch, const struct gpuarb_view *view, uint64_t begin,
		     uint64_t end, struct rt_violation *ret);
