/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/cover.h"
#include "core/ledger/lease.h"

/* ---- counting ---------------------------------------------------------------------- */

static void add_use(struct budget *sum, const struct observed *row)
{
	sum->queues += row->queues;
	sum->sdma_queues += row->sdma_queues;
	sum->sdma_xgmi_queues += row->sdma_xgmi_queues;
	sum->vram += row->drm_vram > row->vram ? row->drm_vram : row->vram;
	/* KFD counts a process on a GPU from its first queue there to its last. */
	sum->processes += row->queues > 0 || row->sdma_queues > 0 || row->sdma_xgmi_queues > 0;
}

/* Keeps the unmanaged processes with the most queues, most queues first. */
static void add_unmanaged(struct gpu_observed *observed, const struct observed *row)
{
	struct unmanaged_process process = { .who = row->who, .queues = row->queues };
	size_t at = observed->n_processes;

	if (row->leaked)
		snprintf(process.command, sizeof(process.command), "dead, %u MiB",
			 (unsigned)min_u64(row->vram >> 20, 99999));
	while (at > 0 && observed->processes[at - 1].queues < row->queues)
		at--;
	if (at == GPU_UNMANAGED_MAX)
		return;
	if (observed->n_processes < GPU_UNMANAGED_MAX)
		observed->n_processes++;
	memmove(&observed->processes[at + 1], &observed->processes[at],
		(observed->n_processes - 1 - at) * sizeof(process));
	observed->processes[at] = process;
}

/* A process that has the device open takes no slot and no memory, but stops a switch of the partition
 * mode: it is listed unless it belongs to a lease. The others have to be listed before. */
static void add_idle(struct arbiter *arbiter, const struct observed *row)
{
	struct gpu *gpu = ledger_find_kfd(arbiter, row->kfd_gpu_id);
	struct gpu_observed *observed = gpu ? &gpu->observed : NULL;

	if (!gpu || observed->n_processes + observed->n_idle == GPU_UNMANAGED_MAX ||
	    attribution_of(arbiter, row).lease)
		return;
	observed->processes[observed->n_processes + observed->n_idle++] =
		(struct unmanaged_process){ .who = row->who };
}

/* A process may own several leases on a GPU: queues beyond the budget of the first count for the
 * next lease that has some left. */
static void spread_use(struct arbiter *arbiter, struct partition *first, const struct observed *row,
		       const struct known_process *process)
{
	struct observed rest = *row;

	FOR_EACH_LEASE(lease, arbiter) {
		struct partition *p = lease_partition_on(lease, first->gpu);
		uint64_t room, part;

		if (rest.queues == 0)
			break;
		if (!p || p == first || !attribution_may_use(arbiter, lease, process))
			continue;
		room = beyond(p->granted.queues, p->used.queues);
		part = min_u64(room,
			       beyond(first->used.queues + rest.queues, first->granted.queues));
		if (part == 0)
			continue;
		lease->observed.processes++;
		p->used.queues += part;
		rest.queues -= (unsigned)part;
	}
	add_use(&first->used, &rest);
}

static void count_row(struct arbiter *arbiter, const struct observed *row,
		      const struct known_process *process)
{
	struct gpu *gpu = ledger_find_kfd(arbiter, row->kfd_gpu_id);
	struct lease *lease = process->lease ? ledger_find(arbiter, process->lease) : NULL;
	struct partition *partition;

	if (!gpu)
		return;
	if (lease && !row->drm_only && !row->leaked)
		lease->observed.processes++;
	add_use(&gpu->observed.used, row);
	partition = lease ? lease_partition_on(lease, (unsigned)(gpu - arbiter->gpus)) : NULL;
	/* Memory that the driver keeps outlives the lease. */
	if (partition && !(row->leaked && lease->state == STATE_ENDING)) {
		spread_use(arbiter, partition, row, process);
		return;
	}
	if (row->drm_only)
		return;
	/* The process has no lease, or none on this GPU. */
	if (arbiter->settings->unmanaged != UNMANAGED_IGNORE || row->leaked)
		add_use(&gpu->observed.unmanaged, row);
	add_unmanaged(&gpu->observed, row);
}

/* ---- beyond the budgets ------------------------------------------------------------ */

/* What a lease uses beyond its budgets is charged to no lease, but is not free either; so is the memory of
 * a lease that was promised none. */
static void count_excess(struct arbiter *arbiter, struct lease *lease)
{
	FOR_EACH_PARTITION(p, lease) {
		struct gpu *gpu = &arbiter->gpus[p->gpu];

		for (unsigned r = RESOURCE_QUEUES; r < BUDGETS; r++)
			gpu->observed.excess.of[r] += beyond(p->used.of[r], p->charged.of[r]);
		/* It counts for max-vram of the user, whatever others use more. */
		if (beyond(p->used.vram, p->charged.vram) < beyond(p->vram_before, p->charged.vram))
			ledger_examine_again(arbiter, UINT64_C(1) << p->gpu);
		arbiter->queues_changed |= p->used.queues != p->queues.used_before;
		p->queues.scanned &= p->used.queues == p->queues.used_before;
	}
}

/* The kernel oversubscribes the run list when there are more processes than VMIDs or more queues
 * than slots: pm_calc_rlib_size(), kfd_packet_manager.c. Granted budgets count like use, unless
 * policy allows best-effort leases beyond the slots. */
static bool is_oversubscribed(const struct gpu *gpu, const struct settings *settings)
{
	const struct budget *used = &gpu->observed.used;
	bool granted = !settings->oversubscribe_besteffort;

	return used->queues > gpu->info.queue_slots || used->processes > gpu->info.process_slots ||
	       (granted && (gpu_promised(gpu, RESOURCE_QUEUES) > gpu->info.queue_slots ||
			    gpu_promised(gpu, RESOURCE_PROCESSES) > gpu->info.process_slots));
}

/* ---- one scan ---------------------------------------------------------------------- */

static void clear(struct arbiter *arbiter)
{
	FOR_EACH_GPU(gpu, arbiter)
		memset(&gpu->observed, 0, sizeof(gpu->observed));
	FOR_EACH_LEASE(lease, arbiter) {
		lease->observed.processes = 0;
		FOR_EACH_PARTITION(p, lease) {
			p->queues.used_before = p->used.queues;
			p->vram_before = p->used.vram;
			p->used = (struct budget){ 0 };
		}
	}
}

/* Does the bus show the GPU differently? It does not show what leases use. */
static bool is_shown_changed(const struct gpu_observed *now, const struct gpu_observed *before)
{
	return memcmp(now->processes, before->processes, sizeof(now->processes)) != 0 ||
	       now->n_processes != before->n_processes || now->n_idle != before->n_idle ||
	       memcmp(&now->unmanaged, &before->unmanaged, sizeof(now->unmanaged)) != 0 ||
	       memcmp(&now->excess, &before->excess, sizeof(now->excess)) != 0 ||
	       now->oversubscribed != before->oversubscribed;
}

static bool is_freed(const struct gpu_observed *now, const struct gpu_observed *before)
{
	return !budget_within(&before->unmanaged, &now->unmanaged) ||
	       !budget_within(&before->excess, &now->excess) ||
	       (before->oversubscribed && !now->oversubscribed);
}

/* Removes ending leases of which no process uses a GPU, and notes which can wait again. */
static void remove_ended(struct arbiter *arbiter)
{
	for (size_t i = arbiter->n_leases; i-- > 0;) {
		struct lease *lease = arbiter->leases[i];

		lease->returned = lease_requeues(lease) && lease->observed.processes == 0;
		if (lease->state == STATE_ENDING && lease->observed.processes == 0)
			ledger_remove(arbiter, lease);
	}
}

static bool was_known(const struct arbiter *arbiter, const struct known_process *process)
{
	const struct known_process *end = arbiter->known + arbiter->n_known;

	for (const struct known_process *known = known_find(arbiter, process->pid, 0);
	     known && known < end && known->pid == process->pid; known++)
		if (known->lease == process->lease)
			return true;
	return false;
}

/* Newly attributed processes are saved: known.h. */
static void save_new(struct arbiter *arbiter, const struct known_process *known, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct lease *lease = known[i].lease ? ledger_find(arbiter, known[i].lease) : NULL;

		if (lease && !was_known(arbiter, &known[i]))
			ledger_touch(arbiter, lease, TOUCH_SAVE);
	}
}

int arbiter_observe(struct arbiter *arbiter, const struct observed *rows, size_t n)
{
	_cleanup_(freep) struct known_process *known = calloc(n ? n : 1, sizeof(*known));
	_cleanup_(freep) struct gpu_observed *before = calloc(arbiter->n_gpus ? arbiter->n_gpus : 1,
							      sizeof(*before));
	size_t n_known = 0;

	if (!known || !before)
		return -ENOMEM;
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		memcpy(&before[i], &arbiter->gpus[i].observed, sizeof(*before));

	clear(arbiter);
	for (size_t i = 0; i < n; i++) {
		const struct known_process *last = n_known > 0 ? &known[n_known - 1] : NULL;

		if (rows[i].idle)
			continue;
		known[n_known] = last && last->pid == rows[i].pid &&
						 last->start_time == rows[i].start_time
					 ? *last
					 : attribution_of(arbiter, &rows[i]);
		count_row(arbiter, &rows[i], &known[n_known++]);
	}
	for (size_t i = 0; i < n; i++)
		if (rows[i].idle)
			add_idle(arbiter, &rows[i]);
	FOR_EACH_LEASE(lease, arbiter)
		count_excess(arbiter, lease);
	save_new(arbiter, known, n_known);
	free(arbiter->known);
	arbiter->known = TAKE_PTR(known);
	arbiter->n_known = n_known;

	for (size_t i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		gpu->observed.excess.vram = gpu_round_vram(gpu->observed.excess.vram);
		gpu->observed.unmanaged.vram = gpu_round_vram(gpu->observed.unmanaged.vram);
		gpu->observed.oversubscribed = is_oversubscribed(gpu, arbiter->settings);
		gpu_judge_vram(gpu);
		gpu->changed |= is_shown_changed(&gpu->observed, &before[i]);
		arbiter->queues_changed |= gpu->observed.unmanaged.queues !=
					   before[i].unmanaged.queues;
		if (is_freed(&gpu->observed, &before[i]))
			ledger_wake(arbiter, UINT64_C(1) << i);
	}
	arbiter->fresh |= FRESH_USE;
	cover_forget_gone(arbiter);
	remove_ended(arbiter);
	return 0;
}
