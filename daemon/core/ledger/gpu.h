/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One GPU: what it has, what leases are charged, what the last scan observed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/codec.h"
#include "core/mask/driver-event.h"
#include "core/mask/gpu-info.h"
#include "core/policy/budget.h"

struct lease;
struct partition;

#define GPU_UNMANAGED_MAX 64U /* unmanaged processes listed by name; all are counted */

/* A process that has the GPU open through the graphics driver (DRM) instead of KFD. */
struct gpu_client {
	NAMED_PROCESS;
	uint64_t start_time;
	uint64_t lease; /* that the process belongs to; 0: none */
	bool draws; /* it has used the graphics or compute rings of DRM, which have no CU mask */
	struct gpu_engines {
		uint64_t gfx, compute, dma; /* nanoseconds since it opened the GPU */
	} busy;
	struct gpu_shares {
		double gfx, compute, dma; /* of the time since the observation before; 0 to 1 */
	} shares;
	uint64_t vram, gtt; /* bytes that are resident */
};

/* What the last observation of DRM clients found on a GPU. */
struct gpu_graphics {
	enum { GRAPHICS_UNKNOWN, GRAPHICS_NONE, GRAPHICS_DRAWN } state;
	struct gpu_client *clients; /* all of them: those that draw first, then by memory */
	size_t n_clients;
	uint64_t vram; /* of all processes that have no lease and are unknown to KFD */
};

extern const char *const graphics_state_names[];

/* What the last scan observed on a GPU. */
struct gpu_observed {
	struct unmanaged_process processes[GPU_UNMANAGED_MAX]; /* most queues first */
	size_t n_processes;
	size_t n_idle; /* follow these: they have the device open, and use nothing of the GPU */
	struct budget unmanaged; /* used by all unmanaged processes */
	struct budget used;      /* used by all processes */
	struct budget excess;    /* used by leases beyond their budgets */
	bool oversubscribed;
};

/* The place of a lease among those that wait: ledger/waiting-queue.h. */
struct rank {
	enum lease_class class;
	uint64_t turn, id;
};

struct gpu {
	struct gpu_info info;
	struct codec codec;
	bool masks_known;        /* else only all CUs can be granted, whose mask has every bit */
	struct cuset all;        /* CUs that a mask can reach */
	unsigned cus;            /* how many */
	unsigned reserve_queues; /* queue slots that no lease is granted */
	bool named_only;         /* a want for any GPU is not placed here: policy */
	bool draining;           /* gets no new grants */
	uint64_t
		reset_until_usec; /* the driver resets it: no new grants until it says that this has
				    * ended, or until this time; 0: no reset */

	/* An index keeps its meaning while a lease or the bus refers to it. */
	bool absent;   /* the GPU is gone or replaced: nothing is granted there */
	bool shown;    /* set by the daemon: there is an object on the bus */
	bool replaced; /* another GPU since the daemon made the object; it clears this */

	/* The first waiting lease that bars this GPU; rank.id 0: none. */
	struct {
		struct rank rank;
		uint64_t since_usec; /* barred without a break; 0: since just now, or not */
		uint64_t open_usec;  /* no lease bars the GPU before; 0: any may */
	} barrier;

	/* Charged to leases: sums that gpu_charge() and gpu_discharge() keep. */
	struct cuset taken;  /* CUs of partitions that do not share */
	struct cuset shared; /* CUs of partitions with isolation=shared */
	struct budget charged;
	unsigned n_partitions, n_realtime, n_exclusive;
	unsigned rt_exclusive[CUSET_ENGINES]; /* realtime partitions in the engine that exclude */
	unsigned rt_tolerant[CUSET_ENGINES]; /* … or (isolation=cu) tolerate other realtime ones */
	unsigned alone[CUSET_ENGINES];       /* partitions that exclude all others */

	struct gpu_observed observed;
	struct gpu_graphics graphics;

	/* User queues of the graphics driver that compute, which no CU mask limits. */
	struct gpu_user_queues {
		bool counted; /* else it is unknown whether there are some */
		unsigned compute;
	} user_queues;

	struct cuset outside; /* CUs that queues cover to which no lease grants them: cover.h */

	/* Little of its memory is left, or leases were promised more than others leave: gpu_judge_vram(). */
	bool vram_pressure;

	/* Pipes and queue slots of each, as kfd/hqds showed them; 0: it was not read, info has those of
	 * a table. */
	unsigned pipes_observed, queues_per_pipe_observed;

	/* Events of the driver since the daemon was started. */
	uint64_t driver_events[DRIVER_EVENT_KINDS];

	/* CUs that adaptable leases occupy beyond what they are charged, and when they may
	 * borrow more: change/share/growth.c. */
	struct {
		struct cuset borrowed;
		struct cuset late;   /* of leases that do not return CUs in time */
		uint64_t grow_usec;  /* the next round of growth; 0: none; UINT64_MAX: not fixed */
		uint64_t grown_usec; /* when a mask last grew */
		uint64_t divided_usec; /* the last round of growth */
		uint64_t join_usec;    /* when promised masks that are free are granted;
				      * UINT64_MAX: none is */
	} lend;

	/* CUs to be taken before others, while moves are planned in a copy of the ledger; NULL. */
	const struct cuset *prefer;

	bool changed; /* since the daemon last published it */
};

void gpu_init(struct gpu *gpu, const struct gpu_info *info, unsigned reserve_queues);

/* Charges or discharges a partition of a lease of this class. gpu_discharge() leaves the CUs of a
 * shared partition in gpu->shared, because other partitions may share them:
 * ledger_recount_shared(). */
void gpu_charge(struct gpu *gpu, const struct partition *partition, enum lease_class lease_class);
void gpu_discharge(struct gpu *gpu, const struct partition *partition,
		   enum lease_class lease_class);

/* Adds to the set all CUs of the engines that it has CUs of: what a lease that excludes others
 * from its engines needs. */
void gpu_add_engines(const struct gpu *gpu, struct cuset *set);

/* Engines that no realtime lease can be granted now, as bits. */
uint32_t gpu_engines_closed(const struct gpu *gpu);

/* CUs that no lease claims, and those of them that none borrows. */
unsigned gpu_cus_unclaimed(const struct gpu *gpu);
unsigned gpu_cus_free(const struct gpu *gpu);

struct budget gpu_all(const struct gpu_info *info);  /* what the GPU has */
struct budget gpu_for_leases(const struct gpu *gpu); /* the same without what is reserved */
struct budget gpu_free(const struct gpu *gpu);       /* of that: neither charged nor used beyond */

/* The same for a new budget of a partition, which may be promised what it uses. NULL: of none. */
struct budget gpu_free_beside(const struct gpu *gpu, const struct partition *own);

/* What of a resource is granted, used beyond the grants, and used without a lease. */
uint64_t gpu_promised(const struct gpu *gpu, enum resource resource);

/* What a DRM client uses of the memory that is counted: VRAM, or GTT where that is the memory of the machine
 * (system_memory); never both, as KFD's memory is in one of them. */
uint64_t gpu_drm_memory(const struct gpu *gpu, uint64_t vram, uint64_t gtt);

/* Rounded up: programs change what they use all the time, and few changes are told. */
uint64_t gpu_round_vram(uint64_t bytes);

/* Judges from what was observed whether memory runs short. It does when more than 15/16 of it are in use,
 * until less than 7/8 are, and while a promise cannot be kept because others use its memory. */
void gpu_judge_vram(struct gpu *gpu);

/* What a CU mask does not isolate on the GPU, as words of the bus contract: as gpu_info_gaps(), without
 * "graphics" where it was observed that no process draws. Returns how many. */
size_t gpu_gaps(const struct gpu *gpu, const char *ret[static GPU_GAPS]);

/* Names the unmanaged processes with the most queues in a refusal. */
void gpu_name_processes(const struct gpu *gpu, struct refusal *refusal);

/* Names the DRM clients without a lease that use VRAM, and the unmanaged processes, in a refusal. */
void gpu_name_vram_users(const struct gpu *gpu, struct refusal *refusal);

/* ---- invariants of partitions and leases ------------------------------------------------- */

/* Can an empty GPU have this partition? Its cus, count and effective must agree. 0, or -EINVAL and
 * in buf why not. */
int gpu_check_partition(const struct gpu *gpu, const struct partition *p, char *buf, size_t size);

/* What two partitions of one GPU share although their classes forbid it: "CUs", "a shader engine";
 * NULL: nothing. */
const char *partition_conflict(enum lease_class a, const struct partition *p, enum lease_class b,
			       const struct partition *q);

/* Do the queues of the lease use its CUs? Not before it is granted, nor while it lends them. */
bool lease_is_active(const struct lease *lease);
