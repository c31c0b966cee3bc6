/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/graphics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/lease.h"

/* "0000:03:00.0" is the device of the GPUs 0000:03:00.0 and 0000:03:00.0/2. */
static bool is_device_of(const char *device, const struct gpu *gpu)
{
	size_t length = strcspn(gpu->info.name, "/");

	return strlen(device) == length && strncmp(device, gpu->info.name, length) == 0;
}

static const struct gpu_client *find_client(const struct gpu_graphics *graphics,
					    const struct observed *process)
{
	for (size_t i = 0; i < graphics->n_clients; i++)
		if (graphics->clients[i].pid == process->pid &&
		    graphics->clients[i].start_time == process->start_time &&
		    (process->pid > 0 || graphics->clients[i].uid == process->uid))
			return &graphics->clients[i];
	return NULL;
}

/* The counter of a process gets smaller when it closes one of its clients. */
static double share_of(uint64_t now, uint64_t before, uint64_t elapsed_usec)
{
	double share;

	if (elapsed_usec == 0 || now <= before)
		return 0;
	share = (double)(now - before) / 1000 / (double)elapsed_usec;
	return share < 1 ? share : 1;
}

static struct gpu_client client_of(const struct arbiter *arbiter, const struct observed_client *row,
				   const struct gpu_client *before, uint64_t elapsed_usec)
{
	struct gpu_client client = { .who = row->process.who,
				     .start_time = row->process.start_time,
				     .lease = attribution_of(arbiter, &row->process).lease,
				     .draws = row->busy.gfx > 0 || row->busy.compute > 0,
				     .busy = row->busy,
				     .vram = row->vram,
				     .gtt = row->gtt };

	if (before)
		client.shares = (struct gpu_shares){
			share_of(row->busy.gfx, before->busy.gfx, elapsed_usec),
			share_of(row->busy.compute, before->busy.compute, elapsed_usec),
			share_of(row->busy.dma, before->busy.dma, elapsed_usec),
		};
	return client;
}

static int by_rank(const void *a, const void *b)
{
	const struct gpu_client *x = a, *y = b;

	if (x->draws != y->draws)
		return x->draws ? -1 : 1;
	if (x->vram != y->vram)
		return x->vram > y->vram ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* The bus shows which processes have clients and which draw; what they use changes all the time. */
static bool is_shown_changed(const struct gpu_graphics *now, const struct gpu_graphics *before)
{
	if (now->state != before->state || now->n_clients != before->n_clients)
		return true;
	for (size_t i = 0; i < now->n_clients; i++)
		if (now->clients[i].pid != before->clients[i].pid ||
		    now->clients[i].start_time != before->clients[i].start_time ||
		    now->clients[i].draws != before->clients[i].draws ||
		    now->clients[i].lease != before->clients[i].lease)
			return true;
	return false;
}

/* What is counted twice otherwise: KFD counts the VRAM of its processes, and a lease that of its own. */
static bool is_counted(const struct arbiter *arbiter, const struct observed_client *row,
		       uint64_t lease)
{
	return lease > 0 || known_find(arbiter, row->process.pid, row->process.start_time) ||
	       arbiter->settings->unmanaged == UNMANAGED_IGNORE;
}

/* The gaps of a partition tell whether a process draws. */
static void touch_leases(struct arbiter *arbiter, unsigned gpu)
{
	FOR_EACH_LEASE(lease, arbiter)
		if (lease_partition_on(lease, gpu))
			ledger_touch(arbiter, lease, TOUCH_CHANGED);
}

static void replace(struct arbiter *arbiter, unsigned index, const struct gpu_graphics *now)
{
	struct gpu *gpu = &arbiter->gpus[index];
	bool drawn = gpu->graphics.state != GRAPHICS_NONE;
	bool changed = is_shown_changed(now, &gpu->graphics);

	gpu->changed |= changed || now->vram != gpu->graphics.vram;
	if (now->vram < gpu->graphics.vram)
		ledger_wake(arbiter, UINT64_C(1) << index);
	if (drawn != (now->state != GRAPHICS_NONE))
		touch_leases(arbiter, index);
	if (drawn &&
	    changed) /* the processes that still draw may be those of the lease that waits */
		ledger_wake(arbiter, UINT64_C(1) << index);
	if (now->clients != gpu->graphics.clients)
		free(gpu->graphics.clients);
	gpu->graphics = *now;
	gpu_judge_vram(gpu);
}

static size_t count_rows(const struct gpu *gpu, const struct observed_client *rows, size_t n)
{
	size_t count = 0;

	for (size_t k = 0; k < n && !gpu->absent; k++)
		count += is_device_of(rows[k].device, gpu);
	return count;
}

static int graphics_of(const struct arbiter *arbiter, const struct gpu *gpu,
		       const struct observed_client *rows, size_t n, uint64_t elapsed_usec,
		       bool complete, struct gpu_graphics *ret)
{
	struct gpu_graphics now = { .state = complete ? GRAPHICS_NONE : GRAPHICS_UNKNOWN };

	now.clients = calloc(count_rows(gpu, rows, n) + 1, sizeof(*now.clients));
	if (!now.clients)
		return -ENOMEM;
	for (size_t k = 0; k < n && !gpu->absent; k++) {
		struct gpu_client *client = &now.clients[now.n_clients];
		uint64_t uses;

		if (!is_device_of(rows[k].device, gpu))
			continue;
		*client = client_of(arbiter, &rows[k],
				    find_client(&gpu->graphics, &rows[k].process), elapsed_usec);
		now.n_clients++;
		uses = gpu_drm_memory(gpu, client->vram, client->gtt);
		if (!is_counted(arbiter, &rows[k], client->lease) && uses < UINT64_MAX - now.vram)
			now.vram += uses;
		if (client->draws)
			now.state = GRAPHICS_DRAWN;
	}
	qsort(now.clients, now.n_clients, sizeof(*now.clients), by_rank);
	now.vram = gpu_round_vram(now.vram);
	*ret = now;
	return 0;
}

void arbiter_observe_clients(struct arbiter *arbiter, const struct observed_client *rows, size_t n,
			     uint64_t elapsed_usec, bool complete)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu_graphics now = arbiter->gpus[i].graphics;

		/* Without memory what was known still counts, and that nothing draws is not known. */
		if (graphics_of(arbiter, &arbiter->gpus[i], rows, n, elapsed_usec, complete, &now) <
			    0 &&
		    now.state == GRAPHICS_NONE)
			now.state = GRAPHICS_UNKNOWN;
		replace(arbiter, i, &now);
	}
}

bool arbiter_has_user_queues(const struct arbiter *arbiter)
{
	FOR_EACH_GPU(gpu, arbiter)
		if (!gpu->absent && gpu->info.drm_queues)
			return true;
	return false;
}

void arbiter_count_user_queues(struct arbiter *arbiter, const struct observed_user_queues *rows,
			       size_t n)
{
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];
		struct gpu_user_queues now = { 0 }, before = gpu->user_queues;

		for (size_t k = 0; k < n && !now.counted; k++)
			if (is_device_of(rows[k].device, gpu))
				now = (struct gpu_user_queues){ true, rows[k].compute };
		gpu->user_queues = now;
		if (now.counted == before.counted && now.compute == before.compute)
			continue;
		touch_leases(arbiter, i); /* they may be alone now, or not any more */
		ledger_wake(arbiter, UINT64_C(1) << i);
	}
}
