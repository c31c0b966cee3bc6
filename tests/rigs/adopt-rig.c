/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "adopt-rig.h"

#include "check-cond.h"
#include "ledger-check.h"

struct lease *saved(const struct lease *lease)
{
	struct lease *copy;

	CHECK(lease_next_version(lease, lease->n_partitions, &copy) == 0);
	memcpy(copy->reason, lease->reason, sizeof(copy->reason));
	/* Not saved, as what follows. */
	copy->wait = (__typeof__(copy->wait)){ .turn = lease->wait.turn,
					       .passed = lease->wait.passed };
	copy->n_holders = copy->n_bound = copy->observed.processes = 0;
	copy->delegated = 0;
	for (size_t i = 0; i < copy->n_partitions; i++) {
		struct partition *p = &copy->partitions[i];

		p->used = (struct budget){ 0 };
		p->queues.scanned = p->queues.verified = false;
		p->queues.priorities = 0;
		if (p->adaptation)
			p->adaptation->promised = (struct cuset){ 0 };
	}
	return copy;
}

void make_adaptable(struct lease *lease)
{
	struct partition *fixed = lease->partitions;

	lease->class = CLASS_BESTEFFORT;
	lease->adaptable = true;
	CHECK(lease_make_partitions(lease, lease->n_partitions) == 0);
	lease_set_partitions(lease, fixed);
	free(fixed);
}

int adopt_saved(struct arbiter *arbiter, struct lease *lease, const char *lost, char *why,
		size_t size)
{
	size_t n = arbiter->n_leases;
	int r;

	why[0] = '\0';
	r = arbiter_adopt(arbiter, lease, lost, why, size);
	if (r < 0) {
		CHECK(why[0] && arbiter->n_leases == n);
		lease_free(lease);
	} else {
		CHECK(arbiter->n_leases == n + 1 && ledger_find(arbiter, lease->id) == lease);
		CHECK(arbiter->next_id > lease->id);
		CHECK(!lease->adaptable ||
		      arbiter_bind(arbiter, lease->id, ADOPTED_PID, false) == 0);
	}
	arbiter_adopted(arbiter, ADOPTED_USEC);
	check_promises(arbiter);
	return r;
}

struct pair pair_of(size_t n_gpus)
{
	return (struct pair){ .old = scene_of(n_gpus), .new = scene_of(n_gpus) };
}

void pair_done(struct pair *p)
{
	scene_done(&p->old);
	scene_done(&p->new);
}

int adopt(struct pair *p, struct lease *lease)
{
	return adopt_saved(p->new.arbiter, lease, "", p->why, sizeof(p->why));
}

bool refused_for(const struct pair *p, int r, int error, const char *words)
{
	if (r == error && strstr(p->why, words))
		return true;
	fprintf(stderr, "%d, and not %d: %s\n", r, error, p->why);
	return false;
}
