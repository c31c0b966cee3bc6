/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One holder's right to parts of one or more GPUs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/base.h"
#include "core/mask/cuset.h"
#include "core/mask/geometry.h"
#include "core/policy/class.h"
#include "core/policy/request.h"
#include "core/policy/result.h"

#define LEASE_BOUND_MAX 64U   /* bound processes of one lease */
#define LEASE_HOLDERS_MAX 16U /* holder pairs of one lease */

/* So many later requests may be granted on a GPU that a waiting lease could use; then
 * nothing is granted there before it but to higher classes. */
#define LEASE_PASSES_MAX 16U

/* How often that is saved: each time it has been passed so often more. A restart counts what
 * was not saved as if it had been. A power of two. */
#define LEASE_PASSES_SAVED 4U

struct budget {
	unsigned queues, processes, sdma_queues, cooperative;
	uint64_t vram;
};

/* One lease's share of one GPU. */
struct partition {
	unsigned gpu;          /* index among the arbiter's GPUs */
	struct cuset cus;      /* granted: what the mask says */
	struct cuset occupied; /* cus, and those that left the mask in a generation that is
				  * not acknowledged yet */

	/* Of an adaptable lease: what it never gives up, of cus-min CUs or more, and all that
	 * the GPU is charged; what it has beyond that is borrowed. */
	struct cuset base;
	struct cuset before; /* what it had when it first gave way; empty: it has it all */
	bool adaptable;

	/* Of its queues, as the hardware has them: descriptors.c. */
	unsigned queues_before; /* what used.queues was at the look before */
	bool judged;            /* they were looked at since the last of them came, or changed */
	bool verified;          /* they have no CU beyond cus */
	pid_t wide;             /* one of this process has; 0: none */
	uint16_t priorities_seen, priorities_before; /* as bits; 0: not looked at */
	unsigned count;                              /* CUs granted */
	unsigned asked;                              /* the aim, or cus-max where that was asked */
	unsigned effective;                          /* E */
	struct budget granted;
	struct budget charged; /* at least granted; more until acknowledged */
	struct budget used;    /* what its processes had when last looked at */
	unsigned streams;
	unsigned priority;
	enum isolation isolation; /* never the default */
	bool alone;
	bool any_shape; /* shape=any was asked: E may be less than the CUs */
};

/* A process of a lease. */
struct lease_process {
	pid_t pid;
	uint64_t start_time;
};
#define LEASE_PROCESSES_MAX 1024U

struct lease {
	uint64_t id;         /* never used again */
	uint64_t generation; /* counts changes of the partitions, from 1 */
	uint64_t acknowledged;
	enum lease_state state;
	enum lease_class class;
	char name[REQUEST_TEXT];
	char tenant[REQUEST_TEXT];
	char token[REQUEST_TEXT];
	char unit[REQUEST_TEXT];
	char reason[REQUEST_TEXT]; /* why it is as it is; "" while there is nothing to say */
	enum result_kind cause;    /* ending: the error that this is to who waited for it */
	bool revoked;              /* ending: not by who holds it, nor for want of holders */
	bool never_granted;        /* activating: it was never granted */
	bool idle;                 /* revoking, ending: it was not active, and has no CU to give
				    * back: what others borrowed of it stays theirs */
	bool ack_unverified;       /* acknowledged; that it is true has to be seen: descriptors.c */
	bool false_acknowledged;   /* it was seen not to be true */
	uid_t owner;
	pid_t pid;              /* of who asked; a hint; 0: unknown */
	uint64_t deadline_usec; /* waiting: to be granted; revoking, or lending: to give back;
				 * activating: to be given back; UINT64_MAX: none */
	uint64_t give_up_usec;  /* fresh: it ends if it is not granted by then */
	uint64_t disturbances;  /* mask changes of others that took its queues off the GPU */

	/* What was done to make it give back, and when the next is due: enforce.c. */
	enum enforce_step enforce_step;
	uint64_t enforce_step_usec; /* UINT64_MAX: nothing is */
	bool frozen;

	uint64_t grown_usec;   /* when it was last looked at for growing */
	uint64_t was_verified; /* partitions, as bits, before the look that is being taken */
	bool adaptable;

	/* With a token, what a repetition must equal; while it waits, what is to be granted;
	 * else NULL. Kept by request_keep(). */
	struct request *request;
	struct partition *partitions;
	size_t n_partitions; /* 0 while it waits */

	/* While it waits. */
	uint64_t candidates; /* GPUs that could ever take a want of it, as bits */
	unsigned passed;     /* later requests that were granted on one of them */
	bool over_quota;     /* its own quota is what stops it: it is not passed, bars nobody */

	/* What keeps it alive. */
	unsigned n_holders;
	pid_t bound[LEASE_BOUND_MAX];
	size_t n_bound;

	unsigned users; /* processes of this lease that had queues when last looked at */
	bool excessive; /* they had more than its budgets */

	/* What became of it since the daemon last carried changes out: arbiter.c's list. */
	unsigned touched; /* enum touch, as bits */
	struct lease *touched_next;
};

enum touch {
	TOUCH_ADDED = 1 << 0,   /* tell the bus */
	TOUCH_CHANGED = 1 << 1, /* save, tell the bus and its holders */
	TOUCH_ENDING = 1 << 2,  /* save, tell the bus and its holders; look at the hardware */
	TOUCH_REMOVED = 1 << 3, /* out of the ledger: forget its file, holders, object */
	TOUCH_SAVE = 1 << 5,    /* save it: more is known of its processes */
	TOUCH_REASON = 1 << 4,  /* a waiting lease's reason: tell the bus, nobody else */
	TOUCH_DRIFT = 1 << 6,   /* it has become excessive, or no longer is: tell the log */
	TOUCH_ACTIVE = 1 << 7,  /* it was activating, and is granted: tell the log */
};

/* The CUs that nobody else can be granted: those that the ledger is charged. */
static inline const struct cuset *partition_claim(const struct partition *partition)
{
	return partition->adaptable ? &partition->base : &partition->occupied;
}

/* Does it borrow CUs beyond what it is charged? */
static inline bool lease_borrows(const struct lease *lease)
{
	return lease->adaptable && lease->n_partitions > 0;
}

int lease_new(size_t n_partitions, struct lease **ret);
struct lease *lease_free(struct lease *lease);
DEFINE_CLEANUP(struct lease *, lease_free)

bool lease_alive(const struct lease *lease); /* has a holder or a bound process */
bool lease_is_bound(const struct lease *lease, pid_t pid);
uint64_t lease_gpus(const struct lease *lease); /* those of its partitions, as bits */

/* The partition on the GPU with this index; NULL. */
struct partition *lease_partition_on(const struct lease *lease, unsigned gpu);

/* A copy of the lease, with its request if it has a token, and with room for partitions.
 * -ENOMEM. */
int lease_next_version(const struct lease *lease, size_t n_partitions, struct lease **ret);

/* Copies the reason; a longer one is cut between two UTF-8 characters, as the bus requires. */
void lease_set_reason(struct lease *lease, const char *reason);

/* Tier and gaps are facts about how a partition is kept: see gpuarb(7) and README. */
const char *partition_tier(const struct partition *partition);

/* Changes the mask of a partition. CUs that leave the mask stay occupied. */
void partition_set_mask(struct partition *partition, const struct geometry *geometry,
			const struct cuset *cus);
