/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/lease.h"

#include <errno.h>
#include <stdlib.h>

int lease_new(size_t n_partitions, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *lease = calloc(1, sizeof(*lease));

	if (!lease)
		return -ENOMEM;

	if (n_partitions > 0) {
		lease->partitions = calloc(n_partitions, sizeof(*lease->partitions));
		if (!lease->partitions)
			return -ENOMEM;
	}

	lease->n_partitions = n_partitions;
	lease->generation = lease->acknowledged = 1;
	lease->deadline_usec = lease->give_up_usec = lease->enforce_step_usec = UINT64_MAX;
	*ret = TAKE_PTR(lease);
	return 0;
}

struct lease *lease_free(struct lease *lease)
{
	if (!lease)
		return NULL;

	free(lease->request);
	free(lease->partitions);
	free(lease);
	return NULL;
}

bool lease_alive(const struct lease *lease)
{
	return lease->n_holders > 0 || lease->n_bound > 0;
}

bool lease_is_bound(const struct lease *lease, pid_t pid)
{
	for (size_t i = 0; i < lease->n_bound; i++)
		if (lease->bound[i] == pid)
			return true;
	return false;
}

uint64_t lease_gpus(const struct lease *lease)
{
	uint64_t gpus = 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		gpus |= UINT64_C(1) << lease->partitions[i].gpu;
	return gpus;
}

const char *partition_tier(const struct partition *partition)
{
	return partition->verified ? "verified" : "cooperative";
}
