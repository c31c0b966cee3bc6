/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A lease that this program holds. */

#include "libgpuarb/connection/handle.h"
#include "libgpuarb/lease/kfd-sysfs.h"

DEFINE_CLEANUP(struct gpuarb_lease *, gpuarb_lease_close)

/* Room for one record; a longer one is invalid. */
#define RECORD_MAX 65536U

struct agent;
struct apply;

/*
 * What the lease calls of its agent, which is built on top of it (libgpuarb/agent/agent.c). All
 * functions may be called from the thread of the program.
 */
struct agent_calls {
	/* Stops the thread, waits for its end, and frees the agent. */
	void (*stop)(struct agent *agent);

	/* Whether all queues have the masks of this generation. */
	bool (*has_applied)(struct agent *agent, uint64_t generation);

	/* With kfd_lock(): describes the newest state of the lease; failures are to be noted in
	 * gpuarb. */
	void (*describe)(const struct agent *agent, struct gpuarb *gpuarb, struct apply *ret);

	/* With kfd_lock(): all queues have the masks of this state now. */
	void (*applied)(struct agent *agent);
};

#define LEASE_PARTITIONS 64U /* that gpuarbd arbitrates */

/* What a record tells beside struct gpuarb_lease_info. */
struct record_facts {
	uint32_t cause;                           /* of the end: enum gpuarb_record_cause */
	bool alone;                               /* on all GPUs */
	bool resetting;                           /* one of its GPUs is being reset */
	uint64_t resets;                          /* of its GPUs */
	uint32_t disturbed_cus[LEASE_PARTITIONS]; /* of each partition */
};

struct gpuarb_lease {
	struct gpuarb *gpuarb;
	int fd;         /* the holder */
	int process_fd; /* bind this process when the lease is granted; -1: none */

	struct gpuarb_lease_info info;
	struct arena arena; /* what info points to */
	uint64_t asked;     /* the partitions that the request asked for; 0: all */
	struct record_facts facts;
	uint64_t heard;        /* the generation of the last record */
	uint64_t acknowledged; /* the last generation that the program did; 0: none */

	bool terms_known; /* the answer to Reserve has told them */
	struct terms terms;
	bool capped; /* by this process: lease-cap.c */

	struct mask_cache mask_cache; /* masks of the queues of this process */
	struct agent *agent;          /* NULL: none */
	const struct agent_calls *agent_calls;
	void *attached;
	void (*attached_done)(void *data);
	unsigned char record[RECORD_MAX]; /* buffer for one datagram */
};

/* Reads all properties of the lease from the daemon. */
int lease_refresh(struct gpuarb_lease *lease);

/* The same for a lease that may have ended: then the failure is the one that the holder reports. */
int lease_update(struct gpuarb_lease *lease);

/* gpuarb_lease_dispatch() within another public function. */
int lease_dispatch(struct gpuarb_lease *lease, gpuarb_lease_changed_t callback, void *userdata);

bool lease_is(const struct gpuarb_lease *lease, const char *state);
bool lease_pending(const struct gpuarb_lease *lease); /* "waiting" or "activating" */
bool lease_usable(const struct gpuarb_lease *lease);  /* "granted" or "inactive" */

/* Waits while the lease is pending, at most until the deadline; results of gpuarb_lease_wait(). */
int lease_wait_until(struct gpuarb_lease *lease, uint64_t deadline);

/* Binds the process of the reservation, if there is one and it is not bound yet. */
int lease_bind_process(struct gpuarb_lease *lease);

/*
 * Reads one record. Of *ret it fills the members that a holder can ask for. Returns 1; 0 for a record of an unknown version, which the caller
 * skips; -EPROTO or -ENOMEM.
 */
int record_read(const void *data, size_t size, struct arena *arena, struct gpuarb_lease_info *ret,
		struct record_facts *ret_facts);
