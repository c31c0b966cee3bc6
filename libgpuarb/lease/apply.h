/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Masks for the queues that a process has. Everything here is decided from arguments;
 * lease-apply.c brings this process's own.
 */

#include <sys/types.h>

#include "libgpuarb/lease/environment.h"
#include "libgpuarb/lease/mask.h"

/* ---- kfd-mask.c: asking the driver ------------------------------------------------------ */

struct driver {
	void *userdata;

	/* A new fd of /dev/kfd, which acts on the queues of the process that opened it. */
	int (*open)(void *userdata);
	int (*set_mask)(void *userdata, int fd, uint32_t queue, const struct mask *mask);
};

extern const struct driver kfd_driver;

/* ---- queues.c: the queues that KFD shows ------------------------------------------------ */

struct queue {
	uint32_t id, kfd_gpu_id;
	uint64_t inode; /* of its directory: another one's where the id was given again */
};

struct queue_list {
	struct queue *queues;
	size_t n;
};

/* The compute queues of a process in SYS/class/kfd/kfd/proc/PID/queues, by id; none where
 * there is no such process. ret->queues is the caller's to free. A negative errno. */
int queues_read(const char *sys, pid_t pid, struct queue_list *ret);

bool queues_there(const char *sys, pid_t pid, uint32_t id);

/* Whether the numbers of processes here are those that KFD has: in the first PID namespace. */
bool queues_visible(void);

/* ---- book.c: what this library knows of their masks ------------------------------------- */

struct mask_cache_entry {
	struct queue queue;
	size_t partition; /* on whose GPU it is */

	struct mask own;  /* what the program wants of it */
	uint32_t xccs;    /* with it: how many XCCs the GPU has, each of which needs a bit */
	struct mask now;  /* what was set here last */
	struct mask next; /* about to be set */
};

/* Has the queues of the list that are on the partitions' GPUs from now on. What was known of
 * those that are gone, or whose id is another one's now, is forgotten. -ENOMEM: unchanged. */
int mask_cache_refresh(struct mask_cache *mask_cache, const struct queue_list *list,
		       const struct gpuarb_partition *partitions, size_t n);

struct mask_cache_entry *mask_cache_find(struct mask_cache *mask_cache, size_t partition,
					 uint32_t id);

/* ---- apply.c ---------------------------------------------------------------------------- */

struct apply {
	struct gpuarb *gpuarb; /* the failure is noted there */
	uint64_t lease;
	const char *state;
	const struct gpuarb_partition *partitions;
	size_t n;
	struct mask_cache *mask_cache;
	bool yields; /* a queue whose own mask the lease does not meet any more has the lease's */

	const char *sys, *dev;
	pid_t pid;
	const struct driver *driver;

	/* getenv() of the program. */
	const char *(*get)(void *userdata, const char *name);
	void *userdata;
};

/* gpuarb_lease_apply(), gpuarb_lease_queue_ids(), gpuarb_lease_mask_queue(). */
int apply_all(const struct apply *apply);

/* The first of queues alone that do not have their mask yet: nothing is done without one. */
int apply_missing(const struct apply *apply);
int apply_queue_ids(const struct apply *apply, size_t i, uint32_t *ids, size_t max);
int apply_own(const struct apply *apply, size_t i, uint32_t queue, const uint32_t *mask,
	      size_t words);

/* ---- inherited.c ------------------------------------------------------------------------ */

/*
 * The mask of GPU i in a value of HSA_CU_MASK as gpuarb_lease_environment() writes it; false
 * for one that it did not write.
 */
bool inherited_mask(const char *value, size_t i, struct mask *ret);

/*
 * What queues have that were never masked here. -EEXIST, noted: something else than this lease
 * masks them, by the environment. Else ret is the mask of partition i, or all ones.
 */
int inherited_check(const struct apply *apply);
void inherited_of(const struct apply *apply, size_t i, struct mask *ret);
