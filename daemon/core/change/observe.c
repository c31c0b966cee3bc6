/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/observe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/cover.h"
#include "core/ledger/known.h"

/* ---- attribution ------------------------------------------------------------------- */

/* May the process be one of this lease's? The owner's pid came from the bus, and another process
 * may have it by now: only a process of the same user counts. */
static bool is_of(const struct lease *lease, pid_t pid, uid_t uid)
{
	if (lease->state == STATE_WAITING)
		return false; /* what the process uses was not granted by this lease */
	return lease_is_bound(lease, pid) ||
	       (pid > 0 && lease->pid == pid && (uid == lease->owner || uid == (uid_t)-1));
}

static const struct lease *lease_of_pid(const struct arbiter *arbiter, pid_t pid, uid_t uid)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (is_of(arbiter->leases[i], pid, uid))
			return arbiter->leases[i];
	return NULL;
}

/* The only lease of this systemd unit; NULL if there are none or several. */
static const struct lease *lease_of_unit(const struct arbiter *arbiter, const char *unit)
{
	const struct lease *found = NULL;

	for (size_t i = 0; unit[0] && i < arbiter->n_leases; i++) {
		if (arbiter->leases[i]->state == STATE_WAITING ||
		    strcmp(arbiter->leases[i]->unit, unit) != 0)
			continue;
		if (found)
			return NULL;
		found = arbiter->leases[i];
	}
	return found;
}

/* A pidfd proves that a process is bound. The pid of a lease's owner proves nothing. */
bool observed_is_bound(const struct observed *row, const struct lease *lease)
{
	if (lease_is_bound(lease, row->pid))
		return true;
	for (size_t i = 0; i < row->n_ancestors; i++)
		if (lease_is_bound(lease, row->ancestors[i]))
			return true;
	return false;
}

/* The lease that the process or its nearest ancestor owns or is bound to; otherwise the lease of
 * its unit. A process keeps the lease that it was attributed to before while that lease exists. */
static struct known_process attribute(const struct arbiter *arbiter, const struct observed *row)
{
	const struct known_process *known = known_find(arbiter, row->pid, row->start_time);
	const struct lease *lease = lease_of_pid(arbiter, row->pid, row->uid);
	struct known_process ret = { .pid = row->pid,
				     .start_time = row->start_time,
				     .uid = row->uid };

	memcpy(ret.command, row->command, sizeof(ret.command));
	for (size_t i = 0; !lease && i < row->n_ancestors; i++)
		lease = lease_of_pid(arbiter, row->ancestors[i], row->uid);
	ret.own = lease && observed_is_bound(row, lease);
	if (!lease)
		lease = lease_of_unit(arbiter, row->unit);
	ret.lease = lease ? lease->id : 0;
	if (known && known->lease && ledger_find(arbiter, known->lease)) {
		ret.own = known->own || (ret.own && ret.lease == known->lease);
		ret.lease = known->lease;
	}
	return ret;
}

uint64_t observed_lease(const struct arbiter *arbiter, const struct observed *row)
{
	return attribute(arbiter, row).lease;
}

/* ---- counting ---------------------------------------------------------------------- */

/* A present GPU rather than an absent one that had the same kfd_gpu_id. NULL. */
static struct gpu *gpu_of_row(struct arbiter *arbiter, const struct observed *row)
{
	struct gpu *found = NULL;

	for (size_t i = 0; i < arbiter->n_gpus && row->kfd_gpu_id; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		if (gpu->info.kfd_gpu_id == row->kfd_gpu_id && (!found || found->absent))
			found = gpu;
	}
	return found;
}

static struct partition *partition_on(const struct arbiter *arbiter, const struct lease *lease,
				      const struct gpu *gpu)
{
	return lease ? lease_partition_on(lease, (unsigned)(gpu - arbiter->gpus)) : NULL;
}

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
	struct unmanaged_process process = { .pid = row->pid,
					     .uid = row->uid,
					     .queues = row->queues };
	size_t at = observed->n_processes;

	memcpy(process.command, row->command, sizeof(process.command));
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

static unsigned beyond(unsigned used, unsigned granted)
{
	return used > granted ? used - granted : 0;
}

/* A process may own several leases on a GPU: queues beyond the budget of the first count for the
 * next lease that has some left. */
static void spread_use(struct arbiter *arbiter, struct gpu *gpu, struct partition *first,
		       const struct observed *row)
{
	struct observed rest = *row;

	for (size_t i = 0; i < arbiter->n_leases && rest.queues > 0; i++) {
		struct partition *p = partition_on(arbiter, arbiter->leases[i], gpu);
		unsigned room, part;

		if (!p || p == first || !is_of(arbiter->leases[i], row->pid, row->uid))
			continue;
		room = beyond(p->granted.queues, p->used.queues);
		part = min_u(room, beyond(first->used.queues + rest.queues, first->granted.queues));
		if (part == 0)
			continue;
		arbiter->leases[i]->observed.processes++;
		p->used.queues += part;
		rest.queues -= part;
	}
	add_use(&first->used, &rest);
}

static void count_row(struct arbiter *arbiter, const struct observed *row, uint64_t id)
{
	struct gpu *gpu = gpu_of_row(arbiter, row);
	struct lease *lease = id ? ledger_find(arbiter, id) : NULL;
	struct partition *partition;

	if (!gpu)
		return;
	if (lease && !row->drm_only)
		lease->observed.processes++;
	add_use(&gpu->observed.used, row);
	partition = partition_on(arbiter, lease, gpu);
	if (partition) {
		spread_use(arbiter, gpu, partition, row);
		return;
	}
	if (row->drm_only)
		return;
	/* The process has no lease, or none on this GPU. */
	if (arbiter->settings->unmanaged != UNMANAGED_IGNORE)
		add_use(&gpu->observed.unmanaged, row);
	add_unmanaged(&gpu->observed, row);
}

/* ---- beyond the budgets ------------------------------------------------------------ */

/* What a lease uses beyond its budgets is charged to no lease, but is not free either. */
static void count_excess(struct arbiter *arbiter, struct lease *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct partition *p = &lease->partitions[i];
		struct gpu *gpu = &arbiter->gpus[p->gpu];

		gpu->observed.excess.queues += beyond(p->used.queues, p->charged.queues);
		gpu->observed.excess.processes += beyond(p->used.processes, p->charged.processes);
		gpu->observed.excess.sdma_queues += beyond(p->used.sdma_queues,
							   p->charged.sdma_queues);
		gpu->observed.excess.sdma_xgmi_queues += beyond(p->used.sdma_xgmi_queues,
								p->charged.sdma_xgmi_queues);
		if (p->charged.vram > 0 && p->used.vram > p->charged.vram)
			gpu->observed.excess.vram += p->used.vram - p->charged.vram;
		arbiter->queues_changed |= p->used.queues != p->queues.used_before;
		p->queues.scanned &= p->used.queues == p->queues.used_before;
	}
}

/* The kernel oversubscribes the run list when there are more processes than VMIDs or more queues
 * than slots: pm_calc_rlib_size(), kfd_packet_manager.c. Granted budgets count like use, unless
 * policy allows best-effort leases beyond the slots. */
static bool is_oversubscribed(const struct gpu *gpu, const struct settings *settings)
{
	const struct budget *c = &gpu->charged, *e = &gpu->observed.excess,
			    *u = &gpu->observed.unmanaged;

	if (gpu->observed.used.queues > gpu->info.queue_slots ||
	    gpu->observed.used.processes > gpu->info.process_slots)
		return true;
	if (settings->oversubscribe_besteffort)
		return false;
	return c->queues + e->queues + u->queues > gpu->info.queue_slots ||
	       c->processes + e->processes + u->processes > gpu->info.process_slots;
}

/* ---- one scan ---------------------------------------------------------------------- */

static void clear(struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		memset(&arbiter->gpus[i].observed, 0, sizeof(arbiter->gpus[i].observed));
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		struct lease *lease = arbiter->leases[i];

		lease->observed.processes = 0;
		for (size_t j = 0; j < lease->n_partitions; j++) {
			lease->partitions[j].queues.used_before = lease->partitions[j].used.queues;
			lease->partitions[j].used = (struct budget){ 0 };
		}
	}
}

/* Does the bus show the GPU differently? It does not show what leases use. */
static bool is_shown_changed(const struct gpu_observed *now, const struct gpu_observed *before)
{
	return memcmp(now->processes, before->processes, sizeof(now->processes)) != 0 ||
	       now->n_processes != before->n_processes ||
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

	if (!known || !before)
		return -ENOMEM;
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		memcpy(&before[i], &arbiter->gpus[i].observed, sizeof(*before));

	clear(arbiter);
	for (size_t i = 0; i < n; i++) {
		bool same = i > 0 && rows[i].pid == rows[i - 1].pid &&
			    rows[i].start_time == rows[i - 1].start_time;

		known[i] = same ? known[i - 1] : attribute(arbiter, &rows[i]);
		count_row(arbiter, &rows[i], known[i].lease);
	}
	for (size_t i = 0; i < arbiter->n_leases; i++)
		count_excess(arbiter, arbiter->leases[i]);
	save_new(arbiter, known, n);
	free(arbiter->known);
	arbiter->known = TAKE_PTR(known);
	arbiter->n_known = n;

	for (size_t i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		gpu->observed.oversubscribed = is_oversubscribed(gpu, arbiter->settings);
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
