/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Masks the queues of a process with the CUs of a lease. */

#include <sys/types.h>

#include "libgpuarb/connection/handle.h"
#include "libgpuarb/lease/kfd-sysfs.h"

struct apply {
	struct gpuarb *gpuarb; /* failures are noted here */

	const struct gpuarb_lease_info *lease;
	struct mask_cache *mask_cache;
	/* a queue whose own mask has no CU of the lease gets the mask of the lease; otherwise that
	 * is -ERANGE */
	bool override_own;
	bool ignore_priority; /* a priority that cannot be set is no failure */

	/* The process. */
	const char *sys, *dev;
	pid_t pid;
	const struct driver *driver;
	const char *(*get)(void *userdata, const char *name); /* getenv() */
	void *userdata;

	struct kfd_held held; /* by gpuarb_lease_apply() and the like */
};

/* Fills the members of the process with those of this one, and zeroes the others. -EOPNOTSUPP,
 * noted in gpuarb: its queues cannot be found. */
int apply_this_process(struct gpuarb *gpuarb, struct apply *ret);

/* gpuarb_lease_apply(), gpuarb_lease_queue_ids(), gpuarb_lease_mask_queue(), gpuarb_lease_pause_queue(). */
int apply_all(const struct apply *apply);
int apply_queue_ids(const struct apply *apply, size_t i, uint32_t *ids, size_t max);
int apply_own(const struct apply *apply, size_t i, uint32_t queue, const uint32_t *mask,
	      size_t words);
int apply_pause(const struct apply *apply, size_t i, uint32_t queue, bool paused);

/* apply_all() for queues that do not have their mask and turn yet. Without such queues the driver is
 * not opened. */
int apply_missing(const struct apply *apply);

/* apply_all() for this queue alone. */
int apply_queue(const struct apply *apply, uint32_t queue);
