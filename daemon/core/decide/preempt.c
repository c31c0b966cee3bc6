/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/preempt.h"

#include <string.h>

/* The refusal of a GPU that the lease uses, else the deciding one. */
static struct refusal *refusal_for(const struct arbiter *arbiter, const struct lease *lease,
				   struct result *result)
{
	for (size_t i = 0; i < result->n_refusals; i++) {
		int gpu = ledger_find_gpu(arbiter, result->refusals[i].gpu);

		if (gpu >= 0 && lease_partition_on(lease, (unsigned)gpu))
			return &result->refusals[i];
	}
	return &result->refusals[result->deciding];
}

/* Names a tenant whose leases would have to be revocable in the refusal of their GPU. */
static void name_tenant(const struct arbiter *arbiter, const struct lease *asking,
			struct result *result)
{
	struct advice advice = { 0 };

	if (advice_find(arbiter, asking, ADVICE_IF_POLICY, &advice) < 0)
		return;
	for (size_t i = 0; i < advice.n; i++) {
		const struct lease *lease = ledger_find(arbiter, advice.ids[i]);
		const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

		if (tenant && !tenant->preempt)
			memcpy(refusal_for(arbiter, lease, result)->preempt, lease->tenant,
			       sizeof(result->refusals->preempt));
	}
}

int preempt_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result)
{
	_cleanup_(result_done) struct result unused = { 0 };
	_cleanup_(lease_freep) struct lease *lease = NULL;
	struct advice advice;
	int r = arbiter_plan(arbiter, caller, request, ret, result), found;

	if (r >= 0 || result->kind != RESULT_NO_CAPACITY ||
	    plan_lease(arbiter, caller, request, &lease, &unused) < 0 ||
	    (found = advice_find(arbiter, lease, ADVICE_REVOCABLE, &advice)) < 0)
		return r;
	if (found == 0) {
		name_tenant(arbiter, lease, result);
		return r;
	}
	result_done(result);
	return plan_new(arbiter, caller, request, true, ret, result);
}
