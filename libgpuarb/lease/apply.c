/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libgpuarb/lease/apply.h"

static void mask_of(const struct gpuarb_partition *partition, struct mask *ret)
{
	ret->words = partition->cu_mask_words;
	memcpy(ret->word, partition->cu_mask, ret->words * sizeof(*ret->word));
}

/* ---- before anything is changed --------------------------------------------------------- */

static int check_lease(const struct apply *apply)
{
	if (strcmp(apply->state, "waiting") == 0 || strcmp(apply->state, "ending") == 0 ||
	    apply->n == 0)
		return fail(apply->gpuarb, -EBADFD, "lease %" PRIu64 " is %s, not granted",
			    apply->lease, apply->state);

	for (size_t i = 0; i < apply->n; i++) {
		const struct gpuarb_partition *partition = &apply->partitions[i];
		struct mask mask;

		if (partition->kfd_gpu_id == 0)
			return fail(apply->gpuarb, -EOPNOTSUPP,
				    "GPU %s is simulated and has no queues", partition->gpu);
		if (partition->cu_mask_words > MASK_WORDS)
			return fail(apply->gpuarb, -EOPNOTSUPP,
				    "the mask on GPU %s has more than %u bits, which KFD does not "
				    "look at",
				    partition->gpu, MASK_WORDS * 32);
		mask_of(partition, &mask);
		if (mask_empty(&mask))
			return fail(apply->gpuarb, -EBADFD, "the lease has no CU on GPU %s now",
				    partition->gpu);
	}
	return 0;
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
			    "cannot read this process's queues in %s/class/kfd/kfd/proc/%d: %s",
			    apply->sys, (int)apply->pid, strerror(-r));

	r = mask_cache_refresh(apply->mask_cache, &list, apply->partitions, apply->n);
	free(list.queues);
	return r;
}

/* ---- the mask that a queue is to have --------------------------------------------------- */

static bool half_pair(const struct mask *mask)
{
	for (size_t i = 0; i < mask->words; i++)
		if ((mask->word[i] ^ mask->word[i] >> 1) & 0x55555555)
			return true;
	return false;
}

static int no_room(const struct apply *apply, const struct mask_cache_entry *entry, uint32_t xcc)
{
	const char *gpu = apply->partitions[entry->partition].gpu;

	if (xcc == entry->xccs)
		return fail(apply->gpuarb, -ERANGE,
			    "the own mask of queue %" PRIu32 " has no CU that lease %" PRIu64
			    " has on GPU %s: give it another one or none",
			    entry->queue.id, apply->lease, gpu);
	return fail(apply->gpuarb, -ERANGE,
		    "the own mask of queue %" PRIu32 " and that of lease %" PRIu64
		    " leave XCC %" PRIu32
		    " of GPU %s no CU, and what is dispatched would never end: give it "
		    "another one or none",
		    entry->queue.id, apply->lease, xcc, gpu);
}

/* What the lease has, and of that what the program wants. */
static int narrow(const struct apply *apply, struct mask_cache_entry *entry, bool yields)
{
	struct mask grant;
	uint32_t xcc = 0;

	mask_of(&apply->partitions[entry->partition], &grant);
	if (mask_narrow(&grant, &entry->own, entry->xccs, &entry->next, &xcc) >= 0)
		return 0;
	if (!yields)
		return no_room(apply, entry, xcc);
	entry->next = grant;
	return 0;
}

/* ---- setting ---------------------------------------------------------------------------- */

static int refused(const struct apply *apply, const struct mask_cache_entry *entry, int error)
{
	const char *gpu = apply->partitions[entry->partition].gpu, *why;

	switch (error) {
	case -EACCES: why = "it was reset: destroy it and make another one"; break;
	case -EBUSY: why = "a debugger has masks of its own there: end its session"; break;
	case -EINVAL:
		why = "KFD takes the mask for invalid: are gpuarbd and this kernel of one mind "
		      "about the GPU?";
		break;
	case -EFAULT: why = "KFD shows it but does not know it, as after exec: try again"; break;
	case -EIO:
	case -ETIME: why = "the GPU does not let go of its queues: see the kernel's log"; break;
	default: why = strerror(-error);
	}
	return fail(apply->gpuarb, error, "cannot mask queue %" PRIu32 " on GPU %s: %s",
		    entry->queue.id, gpu, why);
}

/* Gives the entries before end what they had. What fails here has been said to fail. */
static void take_back(const struct apply *apply, int fd, const struct mask_cache_entry *end)
{
	for (struct mask_cache_entry *entry = apply->mask_cache->entries; entry < end; entry++) {
		struct mask before = entry->now;

		if (entry->next.words == 0)
			continue;
		if (before.words == 0)
			inherited_of(apply, entry->partition, &before);
		apply->driver->set_mask(apply->driver->userdata, fd, entry->queue.id, &before);
	}
}

/* 1: done. 0: the queue is gone. */
static int set_one(const struct apply *apply, int fd, const struct mask_cache_entry *entry)
{
	int r = apply->driver->set_mask(apply->driver->userdata, fd, entry->queue.id, &entry->next);

	if (r == -EFAULT && !queues_there(apply->sys, apply->pid, entry->queue.id))
		return 0;
	return r < 0 ? r : 1;
}

/* Sets the next masks of all entries that have one, or of none; returns how many. */
static int set_all(const struct apply *apply, int fd)
{
	struct mask_cache_entry *entries = apply->mask_cache->entries,
				*end = entries + apply->mask_cache->n;
	int r, n = 0;

	for (struct mask_cache_entry *entry = entries; entry < end; entry++) {
		if (entry->next.words == 0)
			continue;
		r = set_one(apply, fd, entry);
		if (r < 0) {
			/* These two come when the mask may be written already. */
			take_back(apply, fd, r == -EIO || r == -ETIME ? entry + 1 : entry);
			return refused(apply, entry, r);
		}
		n += r;
	}
	for (struct mask_cache_entry *entry = entries; entry < end; entry++)
		if (entry->next.words > 0)
			entry->now = entry->next;
	return n;
}

static int carry_out(const struct apply *apply)
{
	int r, fd;

	fd = apply->driver->open(apply->driver->userdata);
	if (fd < 0)
		return fail(apply->gpuarb, fd, "cannot open /dev/kfd, as this process once did: %s",
			    strerror(-fd));
	r = set_all(apply, fd);
	close_fd(&fd);
	return r;
}

/* All queues, with their next masks; returns how many there are. */
static int prepare(const struct apply *apply)
{
	int r;

	r = check_lease(apply);
	if (r >= 0)
		r = inherited_check(apply);
	if (r >= 0)
		r = refresh(apply);
	for (size_t i = 0; r >= 0 && i < apply->mask_cache->n; i++)
		r = narrow(apply, &apply->mask_cache->entries[i], apply->yields);
	return r < 0 ? r : (int)apply->mask_cache->n;
}

/* To open the device is to become a process of KFD: not without a queue to mask. */
int apply_all(const struct apply *apply)
{
	int r = prepare(apply);

	return r <= 0 ? r : carry_out(apply);
}

int apply_missing(const struct apply *apply)
{
	int r = prepare(apply), n = 0;

	for (size_t i = 0; r > 0 && i < apply->mask_cache->n; i++) {
		struct mask_cache_entry *entry = &apply->mask_cache->entries[i];

		if (entry->now.words > 0 && mask_same(&entry->now, &entry->next))
			entry->next.words = 0;
		else
			n++;
	}
	return r <= 0 ? r : n == 0 ? 0 : carry_out(apply);
}

/* ---- single queues ---------------------------------------------------------------------- */

static int check_partition(const struct apply *apply, size_t i)
{
	if (i < apply->n)
		return 0;
	return fail(apply->gpuarb, -EINVAL,
		    "lease %" PRIu64 " has %zu partitions and no number "
		    "%zu",
		    apply->lease, apply->n, i);
}

int apply_queue_ids(const struct apply *apply, size_t i, uint32_t *ids, size_t max)
{
	size_t n = 0;
	int r;

	r = check_lease(apply);
	if (r >= 0)
		r = check_partition(apply, i);
	if (r >= 0)
		r = refresh(apply);
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

/* What the GPU wants of masks: bits in pairs, and one for each XCC. */
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
		*ret_pairs = gpu->gfx_target >= 100000; /* as pqm_update_mqd() has it */
		entry->xccs = gpu->xccs;
	}
	if (r >= 0)
		free(topology.gpus);
	return gpu ? 0
		   : fail(apply->gpuarb, -ENODEV,
			  "KFD's topology does not have GPU %s (%" PRIu32 ") just once",
			  apply->partitions[entry->partition].gpu, entry->queue.kfd_gpu_id);
}

static int read_own(const struct apply *apply, struct mask_cache_entry *entry, const uint32_t *mask,
		    size_t words)
{
	bool pairs = false;
	int r;

	if (words == 0 || words > MASK_WORDS)
		return fail(apply->gpuarb, -EINVAL, "a mask has 1 to %u words, not %zu", MASK_WORDS,
			    words);

	r = read_gpu(apply, entry, &pairs);
	if (r < 0)
		return r;
	memcpy(entry->own.word, mask, words * sizeof(*mask));
	entry->own.words = words;
	if (pairs && half_pair(&entry->own))
		return fail(apply->gpuarb, -EINVAL,
			    "GPU %s has its CUs in pairs: bits 2n and "
			    "2n + 1 of the mask for queue %" PRIu32 " go together",
			    apply->partitions[entry->partition].gpu, entry->queue.id);
	return 0;
}

int apply_own(const struct apply *apply, size_t i, uint32_t queue, const uint32_t *mask,
	      size_t words)
{
	struct mask_cache_entry *entry, before;
	int r;

	r = check_lease(apply);
	if (r >= 0)
		r = check_partition(apply, i);
	if (r >= 0)
		r = inherited_check(apply);
	if (r >= 0)
		r = refresh(apply);
	if (r < 0)
		return r;

	entry = mask_cache_find(apply->mask_cache, i, queue);
	if (!entry)
		return fail(apply->gpuarb, -ENOENT,
			    "this process has no compute queue %" PRIu32 " on GPU %s", queue,
			    apply->partitions[i].gpu);
	before = *entry;
	entry->own.words = 0;
	r = mask ? read_own(apply, entry, mask, words) : 0;
	if (r >= 0)
		r = narrow(apply, entry, false);
	if (r >= 0)
		r = carry_out(apply);
	if (r == 0) /* it went away meanwhile */
		r = fail(apply->gpuarb, -ENOENT, "queue %" PRIu32 " on GPU %s has just gone", queue,
			 apply->partitions[i].gpu);
	if (r < 0)
		*entry = before;
	return r < 0 ? r : 0;
}
