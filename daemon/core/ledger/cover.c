/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/cover.h"

#include <string.h>

#include "core/ledger/known.h"
#include "core/ledger/lease.h"

bool cover_is_outside(const struct arbiter *arbiter, const struct cover *cover)
{
	const struct lease *lease = cover->lease ? ledger_find(arbiter, cover->lease) : NULL;
	const struct partition *p = lease ? lease_partition_on(lease, cover->gpu) : NULL;

	if (cuset_empty(&cover->outside) || arbiter->settings->unmasked == UNMASKED_IGNORE)
		return false;
	if (cover->lease == 0)
		return !cover->unknown;
	/* A lease that is left out of a copy of the ledger takes its queues with it. */
	return lease && (lease->state == STATE_ENDING || (p && p->drift[DRIFT_MASK].lasts));
}

bool cover_disturbs(const struct cover *cover, const struct lease *lease)
{
	const struct partition *p = lease_partition_on(lease, cover->gpu);

	if (!p || lease->id == cover->lease || lease->state == STATE_INACTIVE ||
	    lease->state == STATE_ENDING)
		return false;
	return lease->class == CLASS_REALTIME && p->isolation == ISOLATION_SHADER_ENGINE
		       ? (cuset_engines(&cover->outside) & cuset_engines(&p->cus)) != 0
		       : cuset_overlap(&cover->outside, &p->cus);
}

const struct lease *cover_over(const struct arbiter *arbiter, const struct cover *cover)
{
	const struct lease *found = NULL;

	if (!cover_is_outside(arbiter, cover))
		return NULL;
	FOR_EACH_LEASE(lease, arbiter)
		if ((!found || lease->class > found->class) && cover_disturbs(cover, lease))
			found = lease;
	return found;
}

void cover_sum_up(struct arbiter *arbiter)
{
	struct cuset sums[REQUEST_WANTS];

	memset(sums, 0, arbiter->n_gpus * sizeof(sums[0]));
	for (size_t i = 0; i < arbiter->n_covers; i++)
		if (cover_is_outside(arbiter, &arbiter->covers[i]))
			cuset_add(&sums[arbiter->covers[i].gpu], &arbiter->covers[i].outside);
	for (unsigned i = 0; i < arbiter->n_gpus; i++) {
		struct gpu *gpu = &arbiter->gpus[i];

		/* Of the processes that cover a CU one may be that of a waiting lease, and not be in its way. */
		if (!cuset_within(&gpu->outside, &sums[i]) ||
		    (arbiter->covers_changed && !cuset_empty(&gpu->outside)))
			ledger_examine_again(arbiter, UINT64_C(1) << i);
		gpu->outside = sums[i];
	}
	arbiter->covers_changed = false;
}

void cover_forget_gone(struct arbiter *arbiter)
{
	size_t n = 0;

	for (size_t i = 0; i < arbiter->n_covers; i++)
		if (known_find(arbiter, arbiter->covers[i].pid, 0) ||
		    (arbiter->covers[i].unknown && arbiter->n_known > 0))
			arbiter->covers[n++] = arbiter->covers[i];
	arbiter->covers_changed |= n < arbiter->n_covers;
	arbiter->n_covers = n;
}

bool cover_is_own(const struct arbiter *arbiter, const struct lease *self, uint64_t lease,
		  pid_t pid, uid_t uid)
{
	if (lease == self->id || lease_is_delegated(self, pid))
		return true;
	return (self->pid == pid || lease_is_bound(self, pid)) &&
	       settings_same_user(arbiter->settings, uid, self->owner);
}

static bool is_foreign(const struct arbiter *arbiter, const struct cover *cover, unsigned gpu,
		       const struct lease *self)
{
	return cover->gpu == gpu &&
	       !cover_is_own(arbiter, self, cover->lease, cover->pid, cover->uid) &&
	       cover_is_outside(arbiter, cover);
}

void cover_outside(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		   struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (cuset_empty(&arbiter->gpus[gpu].outside))
		return;
	for (size_t i = 0; i < arbiter->n_covers; i++) {
		const struct cover *cover = &arbiter->covers[i];

		if (is_foreign(arbiter, cover, gpu, self))
			cuset_add(ret, &cover->outside);
	}
}

static void name(const struct cover *cover, struct refusal *refusal)
{
	const struct unmanaged_process process = { .who = cover->who, .queues = cover->queues };

	refusal_add_process(refusal, &process);
	if (cover->lease == 0)
		return;
	for (size_t i = 0; i < refusal->n_leases && i < REFUSAL_LEASES; i++)
		if (refusal->leases[i] == cover->lease)
			return;
	refusal_add_lease(refusal, cover->lease);
}

void cover_name(const struct arbiter *arbiter, unsigned gpu, const struct lease *self,
		const struct cuset *over, struct refusal *refusal)
{
	for (size_t i = 0; i < arbiter->n_covers; i++) {
		const struct cover *cover = &arbiter->covers[i];

		if (is_foreign(arbiter, cover, gpu, self) && cuset_overlap(&cover->outside, over))
			name(cover, refusal);
	}
}
