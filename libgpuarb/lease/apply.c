/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/apply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libgpuarb/lease/environment.h"
#include "libgpuarb/lease/lease-handle.h"
#include "libgpuarb/lease/visible.h"

static void mask_of(const struct gpuarb_partition *partition, struct mask *ret)
{
	ret->words = partition->cu_mask_words;
	memcpy(ret->word, partition->cu_mask, ret->words * sizeof(*ret->word));
}

static int check_lease(const struct apply *apply)
{
	if (strcmp(apply->lease->state, "waiting") == 0 ||
	    strcmp(apply->lease->state, "ending") == 0 || apply->lease->n_partitions == 0)
		return fail(apply->gpuarb, -EBADFD, "lease %" PRIu64 " is %s, not granted",
			    apply->lease->id, apply->lease->state);

	for (size_t i = 0; i < apply->lease->n_partitions; i++) {
		const struct gpuarb_partition *partition = &apply->lease->partitions[i];
		struct mask mask;

		if (partition->kfd_gpu_id == 0)
			return fail(apply->gpuarb, -EOPNOTSUPP,
				    "GPU %s is simulated and has no queues", partition->gpu);
		if (partition->cu_mask_words > MASK_WORDS)
			return fail(apply->gpuarb, -EOPNOTSUPP,
				    "the mask for GPU %s has more than the %u bits that KFD "
				    "supports",
				    partition->gpu, MASK_WORDS * 32);
		mask_of(partition, &mask);
		if (mask_empty(&mask))
			return fail(apply->gpuarb, -EBADFD,
				    "lease %" PRIu64 " has no CUs on GPU %s at the moment",
				    apply->lease->id, partition->gpu);
	}
	return 0;
}

static const char *value_of(const struct apply *apply, const char *name)
{
	const char *value = apply->get(apply->userdata, name);

	return value && *value ? value : NULL;
}

/* Whether the variables are those of gpuarb_lease_environment() for this lease. */
static bool of_this_lease(const struct apply *apply, const char *masks)
{
	const char *lease = value_of(apply, "GPUARB_LEASE");
	char number[24];
	struct mask mask;

	snprintf(number, sizeof(number), "%" PRIu64, apply->lease->id);
	if (!lease || strcmp(lease, number) != 0)
		return false;
	for (size_t i = 0; i < apply->lease->n_partitions; i++)
		if (!environment_mask(masks, i, &mask))
			return false;
	return true;
}

/* The runtime masks queues by itself when these variables are set. -EEXIST, noted: they are not of
 * this lease. */
static int check_inherited(const struct apply *apply)
{
	const char *masks = value_of(apply, "HSA_CU_MASK");
	const char *global = value_of(apply, "ROC_GLOBAL_CU_MASK");

	if (!global && (!masks || of_this_lease(apply, masks)))
		return 0;
	return fail(apply->gpuarb, -EEXIST,
		    "%s=%s is set, and lease %" PRIu64
		    " would replace that mask: start the program "
		    "without the variable, and do not ask for a lease inside another one",
		    global ? "ROC_GLOBAL_CU_MASK" : "HSA_CU_MASK", global ? global : masks,
		    apply->lease->id);
}

/* The mask that the runtime gave to the queues of partition i. */
static void inherited_mask(const struct apply *apply, size_t i, struct mask *ret)
{
	const char *masks = value_of(apply, "HSA_CU_MASK");

	/* A queue without a mask has all CUs. */
	if (!masks || !environment_mask(masks, i, ret)) {
		memset(ret->word, 0xff, sizeof(ret->word));
		ret->words = MASK_WORDS;
	}
}

static int refresh(const struct apply *apply)
{
	struct queue_list list;
	int r;

	r = queues_read(apply->sys, apply->pid, &list);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		return fail(apply->gpuarb, r,
			    "cannot read the queues of this process in "
			    "%s/class/kfd/kfd/proc/%d: %s",
			    apply->sys, (int)apply->pid, strerror(-r));

	r = mask_cache_refresh(apply->mask_cache, &list, apply->lease->partitions,
			       apply->lease->n_partitions);
	free(list.queues);
	return r;
}

static bool half_pair(const struct mask *mask)
{
	for (size_t i = 0; i < mask->words; i++)
		if ((mask->word[i] ^ mask->word[i] >> 1) & 0x55555555)
			return true;
	return false;
}

static int fail_disjoint(const struct apply *apply, const struct mask_cache_entry *entry,
			 uint32_t xcc)
{
	const char *gpu = apply->lease->partitions[entry->partition].gpu;

	if (xcc == entry->xccs)
		return fail(apply->gpuarb, -ERANGE,
			    "the mask of queue %" PRIu32 " has none of the CUs of lease %" PRIu64
			    " on GPU %s: use another mask or none",
			    entry->queue.id, apply->lease->id, gpu);
	return fail(apply->gpuarb, -ERANGE,
		    "the mask of queue %" PRIu32 " within lease %" PRIu64
		    " has no CU on XCC %" PRIu32
		    " of GPU %s, which would run unmasked: use another mask or none",
		    entry->queue.id, apply->lease->id, xcc, gpu);
}

/* Sets the next state of a queue: the CUs of the lease, or those of them in the own mask. */
static int narrow(const struct apply *apply, struct mask_cache_entry *entry, bool override_own)
{
	const struct gpuarb_partition *partition = &apply->lease->partitions[entry->partition];
	struct mask grant;
	uint32_t xcc = 0;
	int r;

	mask_of(partition, &grant);
	r = mask_narrow(&grant, &entry->own, entry->xccs, &entry->next.mask, &xcc);
	if (r < 0 && !override_own)
		return fail_disjoint(apply, entry, xcc);
	if (r < 0)
		entry->next.mask = grant;
	entry->next.has_turn = true;
	entry->next.paused = partition->paused;
	entry->next.priority = partition->priority;
	return 0;
}

static int fail_refused(const struct apply *apply, const struct mask_cache_entry *entry, int error)
{
	const char *gpu = apply->lease->partitions[entry->partition].gpu, *why;

	switch (error) {
	case -EACCES:
		why = "the queue was reset with its GPU: destroy it and create another";
		break;
	case -EBUSY: why = "a debugger has set masks on this GPU: end its session"; break;
	case -EINVAL:
		why = "KFD rejects the mask: compare 'gpuarbctl gpus' with the topology of this "
		      "kernel";
		break;
	case -EFAULT:
		why = "KFD lists the queue but does not know it, as after exec: try again";
		break;
	case -EOPNOTSUPP:
		why = "libgpuarb did not see how the program created the queue, so it cannot pause "
		      "it: load libgpuarb before the C library, not by dlopen()";
		break;
	case -EIO:
	case -ETIME: why = "the GPU did not preempt its queues: see the kernel log"; break;
	default: why = strerror(-error);
	}
	return fail(apply->gpuarb, error, "cannot change queue %" PRIu32 " on GPU %s: %s",
		    entry->queue.id, gpu, why);
}

/* Gives the queues before end the masks that they had. The first failure is the one to report; a
 * queue that cannot have its mask again is set the next time, whatever it has then. */
static void restore(const struct apply *apply, int fd, const struct mask_cache_entry *end)
{
	for (struct mask_cache_entry *entry = apply->mask_cache->entries; entry < end; entry++) {
		struct mask before = entry->now.mask;

		if (entry->next.mask.words == 0)
			continue;
		if (before.words == 0)
			inherited_mask(apply, entry->partition, &before);
		if (apply->driver->set_mask(apply->driver->userdata, fd, entry->queue.id, &before) <
		    0)
			entry->now.mask.words = 0;
	}
}

/* 1: set. 0: the queue is gone. */
static int set_one(const struct apply *apply, int fd, struct mask_cache_entry *entry, bool again)
{
	struct queue_state now = entry->now;
	int r;

	if (again)
		now.mask.words = 0;
	r = queue_state_set(apply->driver, fd, entry->queue.id, &now, &entry->next);
	now.mask = entry->now.mask;
	entry->now = now;
	if (r == -EFAULT && !queue_exists(apply->sys, apply->pid, entry->queue.id))
		return 0;
	return r < 0 ? r : 1;
}

static int fail_priority(const struct apply *apply, const struct mask_cache_entry *entry)
{
	return fail(apply->gpuarb, -EOPNOTSUPP,
		    "the queues have their masks, but queue %" PRIu32 " on GPU %s cannot get "
		    "priority %" PRIu32 ": libgpuarb did not see how the program created it",
		    entry->queue.id, apply->lease->partitions[entry->partition].gpu,
		    entry->next.priority);
}

/* Sets the next states of all queues that have one; masks of all or of none. again: masks also
 * where they are right. Returns the number of queues. */
static int set_all(const struct apply *apply, int fd, bool again)
{
	struct mask_cache_entry *entries = apply->mask_cache->entries,
				*end = entries + apply->mask_cache->n;
	const struct mask_cache_entry *no_priority = NULL;
	int r, n = 0;

	for (struct mask_cache_entry *entry = entries; entry < end; entry++) {
		if (entry->next.mask.words == 0)
			continue;
		r = set_one(apply, fd, entry, again);
		if (r == -ENODATA) {
			no_priority = entry;
			r = 1;
		}
		if (r < 0) {
			/* With these two errors the mask may have been written. */
			restore(apply, fd, r == -EIO || r == -ETIME ? entry + 1 : entry);
			return fail_refused(apply, entry, r);
		}
		n += r;
	}
	for (struct mask_cache_entry *entry = entries; entry < end; entry++)
		if (entry->next.mask.words > 0)
			entry->now.mask = entry->next.mask;
	return no_priority && !apply->ignore_priority ? fail_priority(apply, no_priority) : n;
}

static int fail_open(const struct apply *apply, int error)
{
	return fail(apply->gpuarb, error, "cannot open /dev/kfd again: %s", strerror(-error));
}

static int set_masks(const struct apply *apply, bool again)
{
	_cleanup_(close_fd) int fd = apply->driver->open(apply->driver->userdata);

	return fd < 0 ? fail_open(apply, fd) : set_all(apply, fd, again);
}

/* Finds all queues and their next masks. Returns the number of queues. */
static int prepare(const struct apply *apply)
{
	int r;

	r = check_lease(apply);
	if (r >= 0)
		r = check_inherited(apply);
	if (r >= 0)
		r = refresh(apply);
	for (size_t i = 0; r >= 0 && i < apply->mask_cache->n; i++)
		r = narrow(apply, &apply->mask_cache->entries[i], apply->override_own);
	return r < 0 ? r : (int)apply->mask_cache->n;
}

/* Opening the device makes this a KFD process, so it is opened only for a queue. */
int apply_all(const struct apply *apply)
{
	int r = prepare(apply);

	return r <= 0 ? r : set_masks(apply, true);
}

int apply_missing(const struct apply *apply)
{
	int r = prepare(apply), n = 0;

	for (size_t i = 0; r > 0 && i < apply->mask_cache->n; i++) {
		struct mask_cache_entry *entry = &apply->mask_cache->entries[i];

		if (queue_state_same(&entry->now, &entry->next))
			entry->next.mask.words = 0;
		else
			n++;
	}
	return r <= 0 ? r : n == 0 ? 0 : set_masks(apply, false);
}

int apply_queue(const struct apply *apply, uint32_t queue)
{
	int r = prepare(apply);

	for (size_t i = 0; r > 0 && i < apply->mask_cache->n; i++)
		if (apply->mask_cache->entries[i].queue.id != queue)
			apply->mask_cache->entries[i].next.mask.words = 0;
	return r <= 0 ? r : set_masks(apply, true);
}

/* ---- single queues ---------------------------------------------------------------------- */

/* Finds the queues, for partition i of the lease. */
static int refresh_partition(const struct apply *apply, size_t i)
{
	int r = check_lease(apply);

	if (r < 0)
		return r;
	if (i < apply->lease->n_partitions)
		return refresh(apply);
	return fail(apply->gpuarb, -EINVAL,
		    "lease %" PRIu64 " has %zu partitions: there is no partition %zu",
		    apply->lease->id, apply->lease->n_partitions, i);
}

int apply_queue_ids(const struct apply *apply, size_t i, uint32_t *ids, size_t max)
{
	size_t n = 0;
	int r;

	r = refresh_partition(apply, i);
	if (r < 0)
		return r;

	for (size_t k = 0; k < apply->mask_cache->n; k++)
		if (apply->mask_cache->entries[k].partition == i) {
			if (n < max)
				ids[n] = apply->mask_cache->entries[k].queue.id;
			n++;
		}
	return (int)n;
}

/* Reads what the GPU requires of masks: whether CUs are masked in pairs, and its XCCs. */
static int read_gpu(const struct apply *apply, struct mask_cache_entry *entry, bool *ret_pairs)
{
	struct topology topology;
	const struct topology_gpu *gpu;
	int r;

	r = topology_read(apply->sys, apply->dev, &topology);
	if (r == -ENOMEM)
		return r;
	gpu = r < 0 ? NULL : topology_find(&topology, entry->queue.kfd_gpu_id);
	if (gpu) {
		*ret_pairs = gpu->gfx_target >= 100000; /* from gfx10 on, as in pqm_update_mqd() */
		entry->xccs = gpu->xccs;
	}
	if (r >= 0)
		free(topology.gpus);
	return gpu ? 0
		   : fail(apply->gpuarb, -ENODEV,
			  "the topology of KFD does not list GPU %s (id %" PRIu32 ") exactly once",
			  apply->lease->partitions[entry->partition].gpu, entry->queue.kfd_gpu_id);
}

static int read_own(const struct apply *apply, struct mask_cache_entry *entry, const uint32_t *mask,
		    size_t words)
{
	bool pairs = false;
	int r;

	if (words == 0 || words > MASK_WORDS)
		return fail(apply->gpuarb, -EINVAL,
			    "a mask of %zu words is invalid: it has 1 to %u words", words,
			    MASK_WORDS);

	r = read_gpu(apply, entry, &pairs);
	if (r < 0)
		return r;
	memcpy(entry->own.word, mask, words * sizeof(*mask));
	entry->own.words = words;
	if (pairs && half_pair(&entry->own))
		return fail(apply->gpuarb, -EINVAL,
			    "the mask of queue %" PRIu32 " has one CU of a pair alone: on GPU %s "
			    "bits 2n and 2n + 1 must be equal",
			    entry->queue.id, apply->lease->partitions[entry->partition].gpu);
	return 0;
}

static int find_queue(const struct apply *apply, size_t i, uint32_t queue,
		      struct mask_cache_entry **ret)
{
	int r = refresh_partition(apply, i);

	if (r < 0)
		return r;
	*ret = mask_cache_find(apply->mask_cache, i, queue);
	return *ret ? 0
		    : fail(apply->gpuarb, -ENOENT,
			   "this process has no compute queue %" PRIu32 " on GPU %s", queue,
			   apply->lease->partitions[i].gpu);
}

int apply_pause(const struct apply *apply, size_t i, uint32_t queue, bool paused)
{
	struct mask_cache_entry *entry;
	struct queue_state next;
	_cleanup_(close_fd) int fd = -1;
	int r;

	r = find_queue(apply, i, queue, &entry);
	if (r < 0)
		return r;
	fd = apply->driver->open(apply->driver->userdata);
	if (fd < 0)
		return fail_open(apply, fd);
	next = entry->now;
	next.has_turn = true;
	next.paused = paused || apply->lease->partitions[i].paused;
	next.priority = apply->lease->partitions[i].priority;
	r = queue_state_turn(apply->driver, fd, queue, &entry->now, &next);
	return r < 0 && r != -ENODATA ? fail_refused(apply, entry, r) : 0;
}

int apply_own(const struct apply *apply, size_t i, uint32_t queue, const uint32_t *mask,
	      size_t words)
{
	struct mask_cache_entry *entry, before;
	int r;

	r = find_queue(apply, i, queue, &entry);
	if (r >= 0)
		r = check_inherited(apply);
	if (r < 0)
		return r;
	before = *entry;
	entry->own.words = 0;
	r = mask ? read_own(apply, entry, mask, words) : 0;
	if (r >= 0)
		r = narrow(apply, entry, false);
	if (r >= 0)
		r = set_masks(apply, true);
	if (r == 0)
		r = fail(apply->gpuarb, -ENOENT, "queue %" PRIu32 " on GPU %s was just destroyed",
			 queue, apply->lease->partitions[i].gpu);
	if (r < 0)
		*entry = before;
	return r < 0 ? r : 0;
}

/* ---- this process ------------------------------------------------------------------------ */

int apply_this_process(struct gpuarb *gpuarb, struct apply *ret)
{
	*ret = (struct apply){
		.gpuarb = gpuarb,
		.sys = "/sys",
		.dev = "/dev",
		.pid = getpid(),
		.driver = &kfd_driver,
		.get = visible_variable,
	};
	if (queues_visible())
		return 0;
	return fail(
		gpuarb, -EOPNOTSUPP,
		"process %d is in a PID namespace of its own, or has no /proc: its queues cannot "
		"be found in /sys. Start it with the variables of gpuarb_lease_environment(), "
		"or in the PID namespace of the host",
		(int)getpid());
}

/* While an agent follows the lease, its state is newer than the one that the program dispatched. */
static int enter(struct gpuarb_lease *lease, struct apply *ret)
{
	struct kfd_held held;
	int r = 0;

	kfd_lock(&held);
	if (lease->agent) {
		lease->agent_calls->describe(lease->agent, lease->gpuarb, ret);
	} else {
		r = apply_this_process(lease->gpuarb, ret);
		ret->lease = &lease->info;
		ret->mask_cache = &lease->mask_cache;
	}
	ret->ignore_priority = false;
	ret->held = held;
	return r;
}

static int leave(struct gpuarb_lease *lease, const struct apply *apply, int r, bool all_applied)
{
	if (lease->agent && all_applied)
		lease->agent_calls->applied(lease->agent);
	kfd_unlock(&apply->held);
	return handle_end(lease->gpuarb, r);
}

GPUARB_EXPORT int gpuarb_lease_apply(struct gpuarb_lease *lease)
{
	struct apply apply;
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = enter(lease, &apply);
	if (r >= 0)
		r = apply_all(&apply);
	return leave(lease, &apply, r, r >= 0);
}

GPUARB_EXPORT int gpuarb_lease_queue_ids(struct gpuarb_lease *lease, size_t i, uint32_t *ids,
					 size_t max)
{
	struct apply apply;
	int r;

	HANDLE_BEGIN(lease && (ids || max == 0), lease->gpuarb);
	r = enter(lease, &apply);
	return leave(lease, &apply, r < 0 ? r : apply_queue_ids(&apply, i, ids, max), false);
}

GPUARB_EXPORT int gpuarb_lease_mask_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue,
					  const uint32_t *mask, size_t words)
{
	struct apply apply;
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = enter(lease, &apply);
	apply.ignore_priority = true;
	return leave(lease, &apply, r < 0 ? r : apply_own(&apply, i, queue, mask, words), false);
}

GPUARB_EXPORT int gpuarb_lease_pause_queue(struct gpuarb_lease *lease, size_t i, uint32_t queue,
					   int paused)
{
	struct apply apply;
	int r;

	HANDLE_BEGIN(lease, lease->gpuarb);
	r = enter(lease, &apply);
	return leave(lease, &apply, r < 0 ? r : apply_pause(&apply, i, queue, paused != 0), false);
}
