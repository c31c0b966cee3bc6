/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "core/ledger/cover.h"
#include "core/ledger/lease.h"

static void *copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n + 1, size);

	if (to && n > 0)
		memcpy(to, from, n * size);
	return to;
}

static int copy_lease(const struct lease *from, struct lease **ret)
{
	if (lease_next_version(from, from->n_partitions, ret) < 0)
		return -ENOMEM;
	memcpy((*ret)->reason, from->reason, sizeof(from->reason));
	(*ret)->refusal = from->refusal;
	return 0;
}

static int copy_all(const struct arbiter *arbiter, struct arbiter *snapshot)
{
	for (; snapshot->n_gpus < arbiter->n_gpus; snapshot->n_gpus++) {
		struct gpu_graphics *graphics = &snapshot->gpus[snapshot->n_gpus].graphics;

		graphics->clients = copy(graphics->clients, graphics->n_clients,
					 sizeof(*graphics->clients));
		if (!graphics->clients)
			return -ENOMEM;
	}
	for (size_t i = 0; i < arbiter->n_leases; i++, snapshot->n_leases++)
		if (copy_lease(lease_shown(arbiter->leases[i]), &snapshot->leases[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < arbiter->n_waiting; i++)
		snapshot->waiting[i] = ledger_find(snapshot, arbiter->waiting[i]->id);
	return 0;
}

int snapshot_new(const struct arbiter *arbiter, struct arbiter **ret)
{
	_cleanup_(snapshot_freep) struct arbiter *snapshot = copy(arbiter, 1, sizeof(*arbiter));

	if (!snapshot)
		return -ENOMEM;
	snapshot->n_gpus = snapshot->n_leases = snapshot->n_known = 0;
	snapshot->touched = NULL;
	snapshot->known = NULL;
	snapshot->gpus = copy(arbiter->gpus, arbiter->n_gpus, sizeof(*arbiter->gpus));
	snapshot->covers = copy(arbiter->covers, arbiter->n_covers, sizeof(*arbiter->covers));
	snapshot->leases = calloc(arbiter->n_leases + 1, sizeof(struct lease *));
	snapshot->waiting = calloc(arbiter->n_waiting + 1, sizeof(struct lease *));
	if (!snapshot->gpus || !snapshot->covers || !snapshot->leases || !snapshot->waiting ||
	    copy_all(arbiter, snapshot) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(snapshot);
	return 0;
}

struct arbiter *snapshot_free(struct arbiter *snapshot)
{
	if (snapshot)
		snapshot->settings = NULL;
	return arbiter_free(snapshot);
}
