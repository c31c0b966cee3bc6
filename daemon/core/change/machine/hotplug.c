/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "core/change/arbiter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NO_SLOT UINT_MAX

/* The slots (indexes in arbiter->gpus) of the GPUs in a new list; decided before anything changes. */
struct moves {
	unsigned slot[REQUEST_WANTS];
	uint64_t kept;  /* slots whose GPU is unchanged (bits) */
	uint64_t taken; /* kept slots and those of new GPUs (bits) */
	size_t n_slots;
};

/* The slot of an unchanged GPU. */
static unsigned find_same(const struct arbiter *arbiter, const struct moves *moves,
			  const struct gpu_info *info)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		if (!arbiter->gpus[i].absent && !(moves->kept & bit_u64(i)) &&
		    gpu_info_same(&arbiter->gpus[i].info, info))
			return i;
	return NO_SLOT;
}

/* A slot that no lease refers to and that had a GPU of this name; "": any name. */
static unsigned find_free(const struct arbiter *arbiter, const struct moves *moves,
			  const char *name)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++)
		if (!(moves->taken & bit_u64(i)) && arbiter->gpus[i].n_partitions == 0 &&
		    (!name[0] || strcmp(arbiter->gpus[i].info.name, name) == 0))
			return i;
	return NO_SLOT;
}

/* The next slot, or one that another GPU had. */
static unsigned find_other(const struct arbiter *arbiter, struct moves *moves)
{
	if (moves->n_slots < REQUEST_WANTS)
		return (unsigned)moves->n_slots++;
	return find_free(arbiter, moves, "");
}

static void take_slots(const struct arbiter *arbiter, const struct gpu_info *gpus, size_t n,
		       bool by_name, struct moves *moves)
{
	for (size_t i = 0; i < n; i++) {
		if (moves->slot[i] != NO_SLOT)
			continue;
		moves->slot[i] = by_name ? find_free(arbiter, moves, gpus[i].name)
					 : find_other(arbiter, moves);
		if (moves->slot[i] != NO_SLOT)
			moves->taken |= bit_u64(moves->slot[i]);
	}
}

/* Unchanged GPUs keep their slots, others take the slot of their name, the rest any free one.
 * -E2BIG: some GPUs have NO_SLOT until leases have ended. */
static int plan_moves(const struct arbiter *arbiter, const struct gpu_info *gpus, size_t n,
		      struct moves *moves)
{
	moves->kept = 0;
	moves->n_slots = arbiter->n_gpus;
	for (size_t i = 0; i < n; i++) {
		moves->slot[i] = find_same(arbiter, moves, &gpus[i]);
		if (moves->slot[i] != NO_SLOT)
			moves->kept |= bit_u64(moves->slot[i]);
	}
	moves->taken = moves->kept;
	take_slots(arbiter, gpus, n, true, moves);
	take_slots(arbiter, gpus, n, false, moves);
	for (size_t i = 0; i < n; i++)
		if (moves->slot[i] == NO_SLOT)
			return -E2BIG;
	return 0;
}

/* ---- GPUs that are gone ------------------------------------------------------------ */

static bool is_listed(const struct gpu_info *gpus, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(gpus[i].name, name) == 0)
			return true;
	return false;
}

static void end_leases(struct arbiter *arbiter, unsigned slot, const char *reason)
{
	FOR_EACH_LEASE(lease, arbiter) {
		if (!(lease_gpus(lease) & bit_u64(slot)))
			continue;
		if (lease->state == STATE_ENDING)
			ledger_touch(arbiter, lease, TOUCH_CHANGED); /* saved without this GPU */
		else
			arbiter_end(arbiter, lease, RESULT_NO_SUCH_GPU, reason);
	}
}

static void remove_gpu(struct arbiter *arbiter, unsigned slot, bool listed)
{
	struct gpu *gpu = &arbiter->gpus[slot];
	char reason[REQUEST_TEXT];

	gpu->absent = true;
	gpu->changed = true;
	snprintf(reason, sizeof(reason), "%s %s", gpu->info.name,
		 listed ? "has changed: its leases ended with it" : "is gone");
	end_leases(arbiter, slot, reason);
}

/* ---- new GPUs ---------------------------------------------------------------------- */

/* An administrator drains a name: it stays drained when another GPU gets it. */
static bool is_drained(const struct arbiter *arbiter, const char *name)
{
	bool draining = false;

	FOR_EACH_GPU(gpu, arbiter)
		if (strcmp(gpu->info.name, name) == 0)
			draining = gpu->draining;
	return draining;
}

static void add(struct arbiter *arbiter, unsigned slot, const struct gpu_info *info)
{
	bool draining = is_drained(arbiter, info->name);
	struct gpu *gpu = &arbiter->gpus[slot];
	bool shown = gpu->shown;

	free(gpu->graphics.clients);
	gpu_init(gpu, info, settings_reserve_queues(arbiter->settings, info));
	gpu->named_only = !settings_gpu_any(arbiter->settings, info->name);
	gpu->draining = draining;
	gpu->shown = gpu->replaced = shown;
	gpu->changed = true;
	if (arbiter->n_gpus <= slot)
		arbiter->n_gpus = slot + 1;
}

int arbiter_set_gpus(struct arbiter *arbiter, const struct gpu_info *gpus, size_t n)
{
	struct moves moves;
	bool any = false;
	int r;

	if (n > REQUEST_WANTS)
		return -E2BIG;
	r = plan_moves(arbiter, gpus, n, &moves);

	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		if (arbiter->gpus[i].absent || (moves.kept & bit_u64(i)))
			continue;
		remove_gpu(arbiter, i, is_listed(gpus, n, arbiter->gpus[i].info.name));
		any = true;
	}
	for (size_t i = 0; i < n; i++) {
		if (moves.slot[i] == NO_SLOT || (moves.kept & bit_u64(moves.slot[i])))
			continue;
		add(arbiter, moves.slot[i], &gpus[i]);
		any = true;
	}
	if (any) {
		arbiter->n_covers = 0; /* they have the old indexes */
		wait_gpus_changed(arbiter);
	}
	return r;
}
