/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Why one GPU, or policy, refuses a request: facts, and the one place that makes sentences of
 * them. core/decide fills the facts; the bus sends them as keys; gpuarbctl fills the same
 * structure from those keys.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/gpu-info.h"
#include "core/policy/class.h"

enum reason {
	REASON_CUS,
	REASON_SHADER_ENGINES,
	REASON_SHAPE,
	REASON_QUEUES,
	REASON_PROCESSES,
	REASON_SDMA,
	REASON_SDMA_XGMI,
	REASON_VRAM,
	REASON_COOPERATIVE,
	REASON_QUOTA,
	REASON_POLICY,
	REASON_DRAIN,
	REASON_UNMANAGED,
	REASON_OVERSUBSCRIBED,
	REASON_ABSENT,
	REASON_FLOOR,    /* the GPU has it, and policy keeps it for another tenant */
	REASON_MASK,     /* the CU masks of the GPU are unknown */
	REASON_UNMASKED, /* queues cover the CUs that no lease grants them */
	REASON_EXCLUSIVE, /* leases and processes that cannot pause, or a lease that they pause for */
	REASON_GRAPHICS, /* a process draws, or it is unknown whether one does */
	REASON_RESET,    /* its driver resets it */
	REASONS,
};

/* What the numbers of a refusal count. */
enum resource {
	RESOURCE_NONE, /* there are no numbers */
	/* Those of a budget: budget.h. */
	RESOURCE_QUEUES,
	RESOURCE_PROCESSES,
	RESOURCE_SDMA_QUEUES,
	RESOURCE_SDMA_XGMI_QUEUES,
	RESOURCE_VRAM, /* bytes */
	RESOURCE_COOPERATIVE_QUEUES,
	/* The others. */
	RESOURCE_CUS,
	RESOURCE_SHADER_ENGINES,
	RESOURCE_LEASES,
	RESOURCE_GPUS,
	RESOURCE_CLASS, /* enum lease_class */
	RESOURCE_PRIORITY,
	RESOURCE_EXCLUSIVE, /* enum exclusive */
	RESOURCE_DURATION,  /* seconds */
	RESOURCES,
};

#define REFUSAL_TENANT 128U
#define REFUSAL_LEASES 8U
#define REFUSAL_PROCESSES 4U

/* What names a process; as a member, it can be copied as a whole. uid (uid_t) -1, command "": unknown. */
#define PROCESS_NAME \
	pid_t pid;   \
	uid_t uid;   \
	char command[16]
struct process_name {
	PROCESS_NAME;
};
#define NAMED_PROCESS                    \
	union {                          \
		struct process_name who; \
		struct {                 \
			PROCESS_NAME;    \
		};                       \
	}

/* A process that uses a GPU on which it has no lease, or draws on it. */
struct unmanaged_process {
	NAMED_PROCESS;
	unsigned queues;
};

struct refusal {
	char gpu[GPU_NAME_MAX]; /* "any": every GPU; "": not about GPUs */
	enum reason reason;
	enum resource resource;
	bool retry;  /* the same may be granted here later */
	bool others; /* other GPUs refuse, too */

	uint64_t asked, free;
	uint64_t total;    /* what the GPU has in all for leases; 0: not told */
	uint64_t reserved; /* queue slots that reserve-queues keeps from leases */

	/* A bound: the request key, or the tenant key, whose value `limit` is. */
	const char *key; /* a literal: "max-cus"; NULL: none */
	uint64_t limit, held;
	char tenant[REFUSAL_TENANT]; /* whose bound it is; "": none */
	bool by_default;             /* asked: by default-vram of the tenant */
	uid_t uid;                   /* the user that holds `held` under the tenant */

	/* Amounts of fit_resource that this check would pass: of CUs the next below and above what
	 * was asked. With retry: on the GPU as it is now, else on an empty one. Of CUs that a quota leaves: now, or
	 * on an empty one if none fit now. */
	uint64_t fits[2];
	size_t n_fits;
	enum resource fit_resource;

	/* Leases that have of the resource on this GPU, the largest share first, and processes
	 * without a lease: as many as have a place here, and how many there are. */
	uint64_t leases[REFUSAL_LEASES];
	size_t n_leases;
	struct unmanaged_process processes[REFUSAL_PROCESSES];
	size_t n_processes;

	int user_queues; /* of the graphics driver that compute; -1: it is unknown whether there are some */

	char preempt[REFUSAL_TENANT]; /* with preempt = revoke of it there would be room; "" */
	uint64_t behind;              /* a waiting lease that ranks before the request; 0: none */
};

extern const char *const reason_names[];           /* by enum reason; NULL after the last */
const char *resource_name(enum resource resource); /* "" for RESOURCE_NONE */

/* -EINVAL: there is none of this name. */
int reason_from_name(const char *name);
int resource_from_name(const char *name);

/* Replaces the amounts that would fit; 0: none. */
void refusal_set_fits(struct refusal *refusal, enum resource resource, uint64_t below,
		      uint64_t above);

/* key: a literal. tenant: "" for a bound of the request itself. */
void refusal_set_bound(struct refusal *refusal, const char *key, uint64_t limit,
		       const char *tenant);

/* Names one more process or lease, if there is a place. */
void refusal_add_process(struct refusal *refusal, const struct unmanaged_process *process);
void refusal_add_lease(struct refusal *refusal, uint64_t lease);

#define REFUSAL_TEXT 384U

#define REFUSAL_USER 40U

/* Looks up the name of a user; false: it has none. */
typedef bool (*refusal_user_t)(uid_t uid, char ret[static REFUSAL_USER]);

/* "3 asked, 2 of 24 free; held by lease 5": what follows the GPU and the reason. user: NULL where a
 * look-up must not be waited for; users are numbers then. */
void refusal_line(const struct refusal *refusal, refusal_user_t user,
		  char ret[static REFUSAL_TEXT]);

/* What would fit, and what is in the way; never empty. */
void refusal_hint(const struct refusal *refusal, char ret[static REFUSAL_TEXT]);

/* "30 CUs on 0000:03:00.0; other GPUs refuse too": what a waiting lease waits for. It has no
 * number that changes while the lease waits. */
void refusal_wait(const struct refusal *refusal, char ret[static REFUSAL_TEXT]);
