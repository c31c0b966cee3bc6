/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/cover.h"
#include "core/ledger/lease.h"

/* All copies are in one block, each aligned for any type. */
static size_t size_of(size_t n, size_t size)
{
	const size_t alignment = _Alignof(max_align_t);

	return (n * size + alignment - 1) / alignment * alignment;
}

static void *copy(char **room, const void *from, size_t n, size_t size)
{
	void *to = *room;

	if (n > 0)
		memcpy(to, from, n * size);
	*room += size_of(n, size);
	return to;
}

static size_t size_of_lease(const struct lease *lease)
{
	size_t size = size_of(1, sizeof(*lease));

	size += size_of(lease->n_partitions, sizeof(*lease->partitions));
	for (size_t i = 0; i < lease->n_partitions; i++)
		size += size_of(lease->partitions[i].adaptation != NULL, sizeof(struct adaptation));
	return size;
}

static size_t size_of_all(const struct arbiter *arbiter)
{
	size_t size = size_of(1, sizeof(*arbiter));

	size += size_of(arbiter->n_gpus, sizeof(*arbiter->gpus));
	for (size_t i = 0; i < arbiter->n_gpus; i++)
		size += size_of(arbiter->gpus[i].graphics.n_clients, sizeof(struct gpu_client));
	size += size_of(arbiter->n_covers, sizeof(*arbiter->covers));
	size += size_of(arbiter->n_leases, sizeof(*arbiter->leases));
	size += size_of(arbiter->n_waiting, sizeof(*arbiter->waiting));
	for (size_t i = 0; i < arbiter->n_leases; i++)
		size += size_of_lease(lease_shown(arbiter->leases[i]));
	return size;
}

static struct lease *copy_lease(char **room, const struct lease *from)
{
	struct lease *lease = copy(room, from, 1, sizeof(*lease));

	lease->partitions = copy(room, from->partitions, from->n_partitions,
				 sizeof(*lease->partitions));
	for (size_t i = 0; i < lease->n_partitions; i++) {
		struct adaptation **adaptation = &lease->partitions[i].adaptation;

		if (*adaptation)
			*adaptation = copy(room, *adaptation, 1, sizeof(**adaptation));
	}
	lease->request = NULL;
	lease->shown = NULL;
	lease->touched_next = NULL;
	return lease;
}

int snapshot_new(const struct arbiter *arbiter, struct arbiter **ret)
{
	char *room = malloc(size_of_all(arbiter));
	struct arbiter *snapshot;

	if (!room)
		return -ENOMEM;
	snapshot = copy(&room, arbiter, 1, sizeof(*arbiter));
	snapshot->gpus = copy(&room, arbiter->gpus, arbiter->n_gpus, sizeof(*arbiter->gpus));
	for (size_t i = 0; i < arbiter->n_gpus; i++) {
		struct gpu_graphics *graphics = &snapshot->gpus[i].graphics;

		graphics->clients = copy(&room, graphics->clients, graphics->n_clients,
					 sizeof(*graphics->clients));
	}
	snapshot->covers = copy(&room, arbiter->covers, arbiter->n_covers,
				sizeof(*arbiter->covers));
	snapshot->leases = copy(&room, arbiter->leases, arbiter->n_leases, sizeof(struct lease *));
	snapshot->waiting = copy(&room, arbiter->waiting, arbiter->n_waiting,
				 sizeof(struct lease *));
	for (size_t i = 0; i < arbiter->n_leases; i++)
		snapshot->leases[i] = copy_lease(&room, lease_shown(arbiter->leases[i]));
	for (size_t i = 0; i < arbiter->n_waiting; i++)
		snapshot->waiting[i] = ledger_find(snapshot, arbiter->waiting[i]->id);
	snapshot->touched = NULL;
	snapshot->known = NULL;
	snapshot->n_known = 0;
	*ret = snapshot;
	return 0;
}
