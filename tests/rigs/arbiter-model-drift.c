/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Queues that are observed in the model, and drift. What the arbiter makes of them is found out anew
 * here, from the rows: no realtime or guaranteed lease is granted CUs that a queue covers outside of
 * its lease.
 */

#include "arbiter-model.h"

#include <string.h>

void model_set_drift(struct model *model, struct settings *settings)
{
	settings->drift_grace_usec = 0; /* what is observed once is drift */
	settings->unmasked = model_chance(model, 20) ? UNMASKED_IGNORE : UNMASKED_REFUSE;
	for (size_t i = 0; i < settings->n_tenants; i++)
		settings->tenants[i].on_drift = model_below(model, ON_DRIFT_KILL + 1);
}

/* ---- rows -------------------------------------------------------------------------------- */

static void random_cus(struct model *model, const struct gpu *gpu, struct cuset *ret)
{
	*ret = gpu->all;
	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		if (model_chance(model, 60))
			ret->pair[pair] = 0;
}

size_t model_add_processes(struct model *model, struct observed_mask *rows, size_t max)
{
	struct arbiter *arbiter = model->arbiter;
	size_t n = 0;

	for (size_t i = 0; i < arbiter->n_known && n < max; i++) {
		const struct gpu *gpu =
			&arbiter->gpus[model_below(model, (unsigned)arbiter->n_gpus)];

		if (model_chance(model, 50))
			continue;
		rows[n] = (struct observed_mask){ .pid = arbiter->known[i].pid,
						  .kfd_gpu_id = gpu->info.kfd_gpu_id,
						  .priority = model_below(model, 16) };
		random_cus(model, gpu, &rows[n++].cus);
	}
	return n;
}

/* ---- who covers what ------------------------------------------------------------------------- */

static bool is_bound_anywhere(const struct arbiter *arbiter, pid_t pid, uint64_t *ret)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (lease_is_bound(arbiter->leases[i], pid)) {
			*ret = arbiter->leases[i]->id;
			return true;
		}
	return false;
}

/* May the queue belong to this lease? of: the lease of its process. */
static const struct partition *own_part(const struct model_queue *queue, const struct lease *of,
					const struct lease *lease)
{
	bool other = lease->owner == of->owner && lease->state != STATE_WAITING &&
		     (lease->pid == queue->pid || lease_is_bound(lease, queue->pid));

	return lease == of || other ? lease_partition_on(lease, queue->gpu) : NULL;
}

/* Finds the lease and the CUs outside of it. false: the queue is within what one lease occupies. */
static bool find_outside(const struct arbiter *arbiter, struct model_queue *queue,
			 const struct cuset *cus)
{
	uint64_t own = known_lease(arbiter, queue->pid);
	const struct lease *of;

	queue->outside = *cus;
	if (!own && !is_bound_anywhere(arbiter, queue->pid, &own))
		return true;
	of = ledger_find(arbiter, own);
	for (size_t i = 0; of && i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = own_part(queue, of, lease);

		if (!p)
			continue;
		if (cuset_within(cus, &p->occupied))
			return false;
		cuset_remove(&queue->outside, &p->occupied);
		if (lease == of || !queue->lease)
			queue->lease = lease->id;
	}
	return true;
}

void model_keep_rows(struct model *model, const struct observed_mask *rows, size_t n)
{
	const struct arbiter *arbiter = model->arbiter;

	model->n_queues = 0;
	for (size_t i = 0; i < n && model->n_queues < MODEL_QUEUES; i++) {
		struct model_queue *queue = &model->queues[model->n_queues];

		*queue = (struct model_queue){ .pid = rows[i].pid };
		for (queue->gpu = 0; queue->gpu < arbiter->n_gpus; queue->gpu++)
			if (arbiter->gpus[queue->gpu].info.kfd_gpu_id == rows[i].kfd_gpu_id)
				break;
		model->n_queues += find_outside(arbiter, queue, &rows[i].cus);
	}
}

void model_forget_gone(struct model *model)
{
	size_t n = 0;

	for (size_t i = 0; i < model->n_queues; i++)
		if (known_find(model->arbiter, model->queues[i].pid, 0))
			model->queues[n++] = model->queues[i];
	model->n_queues = n;
}

/* ---- promise 9 ----------------------------------------------------------------------------- */

static bool counts(const struct arbiter *arbiter, const struct model_queue *queue,
		   const struct lease *lease)
{
	const struct lease *of = queue->lease ? ledger_find(arbiter, queue->lease) : NULL;
	/* The bound processes stay with the lease of a proposal. */
	const struct lease *planned = ledger_find(arbiter, lease->id);

	if (queue->pid == lease->pid || queue->lease == lease->id ||
	    (planned && lease_is_bound(planned, queue->pid)))
		return false;
	return queue->lease == 0 ||
	       (of && (of->state == STATE_ENDING || lease_partition_on(of, queue->gpu)));
}

static bool overlaps(const struct model_queue *queue, const struct lease *lease,
		     const struct partition *p)
{
	if (lease->class == CLASS_REALTIME && p->isolation == ISOLATION_SHADER_ENGINE)
		return (cuset_engines(&p->cus) & cuset_engines(&queue->outside)) != 0;
	return cuset_overlap(&p->cus, &queue->outside);
}

void model_check_observed(struct model *model, const struct lease *lease)
{
	const struct arbiter *arbiter = model->arbiter;

	if (lease->class == CLASS_BESTEFFORT || arbiter->settings->unmasked == UNMASKED_IGNORE)
		return;
	for (size_t i = 0; i < model->n_queues; i++) {
		const struct partition *p = lease_partition_on(lease, model->queues[i].gpu);

		if (p && counts(arbiter, &model->queues[i], lease) &&
		    overlaps(&model->queues[i], lease, p))
			model_fail("a promised CU is granted that another queue covers");
		model->observed++;
	}
}
