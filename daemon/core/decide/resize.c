/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* arbiter_plan_resize(): the next version of a lease. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/gang.h"
#include "core/ledger/ledger.h"
#include "core/decide/plan.h"
#include "core/policy/tenant.h"

/* Wants of a resize are for the partitions in their order: "any" is the GPU that it has. */
static int fit_wants(const struct arbiter *arbiter, const struct lease *lease,
		     struct request *request, struct result *result)
{
	if (request->n_wants != lease->n_partitions)
		return result_set(
			result, RESULT_INVALID_REQUEST,
			"%zu wants for the %zu partitions of lease %llu: give one for each",
			request->n_wants, lease->n_partitions, (unsigned long long)lease->id);
	for (size_t i = 0; i < request->n_wants; i++) {
		const char *has = arbiter->gpus[lease->partitions[i].gpu].info.name;
		enum isolation *isolation = &request->wants[i].isolation;
		char *gpu = request->wants[i].gpu;

		if (strcmp(gpu, "any") != 0 &&
		    ledger_find_gpu(arbiter, gpu) != (int)lease->partitions[i].gpu)
			return result_set(
				result, RESULT_INVALID_REQUEST,
				"want %zu: gpu %s, but the lease has %s: a lease stays on "
				"its GPUs",
				i + 1, gpu, has);
		memcpy(gpu, has, GPU_NAME_MAX);
		/* What it gives up stays charged for a while, and charged as what it was. */
		if (*isolation != ISOLATION_DEFAULT && *isolation != lease->partitions[i].isolation)
			return result_set(result, RESULT_INVALID_REQUEST,
					  "want %zu: isolation %s: a lease keeps its own, %s",
					  i + 1, isolation_name(*isolation),
					  isolation_name(lease->partitions[i].isolation));
		*isolation = lease->partitions[i].isolation;
	}
	return 0;
}

/* A picture of the ledger without one lease. */
static int ledger_without(const struct arbiter *arbiter, const struct lease *lease,
			  struct arbiter *ret)
{
	struct arbiter without = *arbiter;
	size_t kept = 0;

	without.gpus = calloc(arbiter->n_gpus, sizeof(*without.gpus));
	without.leases = calloc(arbiter->n_leases, sizeof(struct lease *));
	if (!without.gpus || !without.leases) {
		free(without.gpus);
		free(without.leases);
		return -ENOMEM;
	}
	memcpy(without.gpus, arbiter->gpus, arbiter->n_gpus * sizeof(*without.gpus));
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i] != lease)
			without.leases[kept++] = arbiter->leases[i];
	without.n_leases = kept;
	ledger_discharge(&without, lease);
	ledger_recount_shared(&without, lease);
	*ret = without;
	return 0;
}

/* What the holder has in its queues until it says otherwise stays charged. */
static void keep_charged(struct partition *next, const struct partition *now)
{
	cuset_add(&next->occupied, &now->occupied);
	next->charged.queues = max_u(next->charged.queues, now->charged.queues);
	next->charged.processes = max_u(next->charged.processes, now->charged.processes);
	next->charged.sdma_queues = max_u(next->charged.sdma_queues, now->charged.sdma_queues);
	next->charged.cooperative = max_u(next->charged.cooperative, now->charged.cooperative);
	if (next->charged.vram < now->charged.vram)
		next->charged.vram = now->charged.vram;
	next->used = now->used;
}

static int assign_next(const struct arbiter *arbiter, const struct lease *lease,
		       const struct tenant *tenant, const struct request *request,
		       struct lease *next, struct result *result)
{
	struct arbiter without;
	struct admit_context admit_context = { .arbiter = &without,
					       .tenant = tenant,
					       .class = lease->class,
					       .id = UINT64_MAX,
					       .uid = lease->owner,
					       .alone = lease->partitions[0].alone,
					       .previous = lease };
	uint64_t unused;
	int r;

	if (ledger_without(arbiter, lease, &without) < 0)
		return plan_no_memory(result);
	r = gang_assign(&admit_context, request, next->partitions, &unused, result);
	free(without.gpus);
	free(without.leases);
	if (r < 0)
		return r;
	for (size_t i = 0; i < next->n_partitions; i++)
		keep_charged(&next->partitions[i], &lease->partitions[i]);
	return 0;
}

int arbiter_plan_resize(const struct arbiter *arbiter, const struct caller *caller, uint64_t id,
			const struct request *request, struct lease **ret, struct result *result)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	struct request complete = *request;
	const struct tenant *tenant;
	struct lease *lease;
	int r;

	r = ledger_find_owned(arbiter, caller, id, &lease, result);
	if (r < 0)
		return r;
	if (lease->state != STATE_GRANTED)
		return result_set(result, RESULT_INVALID_STATE, "lease %llu is %s",
				  (unsigned long long)id, state_name(lease->state));
	if (lease->adaptable)
		return result_set(
			result, RESULT_NOT_SUPPORTED,
			"lease %llu is adaptable: gpuarbd sets its size; release it and ask "
			"for another to have other bounds",
			(unsigned long long)id);
	tenant = tenant_named(arbiter->settings, lease->tenant);
	if (!tenant)
		return result_set(result, RESULT_NO_SUCH_TENANT,
				  "lease %llu is of tenant %s, which policy has no more",
				  (unsigned long long)id, lease->tenant);
	r = fit_wants(arbiter, lease, &complete, result);
	if (r < 0)
		return r;
	r = plan_complete(tenant, lease->class, &complete, result);
	if (r < 0)
		return r;
	if (lease_next_version(lease, lease->n_partitions, &next) < 0)
		return plan_no_memory(result);
	next->generation++;
	r = assign_next(arbiter, lease, tenant, &complete, next, result);
	if (r < 0)
		return r;

	*ret = TAKE_PTR(next);
	return 0;
}
