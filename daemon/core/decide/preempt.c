/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/preempt.h"

#include <string.h>

#include "core/decide/plan.h"

/* The leases to revoke for a new request, which has the class of its tenant unless it names one. */
static int find_new(const struct arbiter *arbiter, const struct caller *caller,
		    const struct request *request, bool any_policy, struct advice *ret)
{
	struct advice_question question = { .caller = caller,
					    .request = request,
					    .revocable = true,
					    .any_policy = any_policy,
					    .most = ADVICE_MAX };
	_cleanup_(result_done) struct result result = { 0 };
	const struct tenant *tenant;

	if (tenant_find(arbiter->settings, caller, request->tenant, &tenant, &result) < 0)
		return 0;
	if (any_policy)
		question.most = ADVICE_LEASES;
	question.class = request->class < 0 ? tenant->class : (enum lease_class)request->class;
	return advice_find(arbiter, &question, ret);
}

int preempt_find_new(const struct arbiter *arbiter, const struct caller *caller,
		     const struct request *request, struct advice *ret)
{
	*ret = (struct advice){ 0 };
	return find_new(arbiter, caller, request, false, ret);
}

/* Names in the deciding refusal a tenant whose leases would have to be revocable. */
static void name_tenant(const struct arbiter *arbiter, const struct caller *caller,
			const struct request *request, struct result *result)
{
	struct refusal *refusal = &result->refusals[result->deciding];
	struct advice advice = { 0 };

	if (find_new(arbiter, caller, request, true, &advice) < 0)
		return;
	for (size_t i = 0; i < advice.n; i++) {
		const struct lease *lease = ledger_find(arbiter, advice.ids[i]);
		const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);

		if (tenant && !tenant->preempt)
			memcpy(refusal->preempt, lease->tenant, sizeof(refusal->preempt));
	}
}

int preempt_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result)
{
	struct advice advice = { 0 };
	int r = arbiter_plan(arbiter, caller, request, ret, result);

	if (r >= 0 || result->kind != RESULT_NO_CAPACITY ||
	    find_new(arbiter, caller, request, false, &advice) < 0)
		return r;
	if (advice.n == 0) {
		name_tenant(arbiter, caller, request, result);
		return r;
	}
	result_done(result);
	return plan_new(arbiter, caller, request, true, ret, result);
}

int preempt_find(const struct arbiter *arbiter, const struct lease *waiting, struct advice *ret)
{
	const struct advice_question question = { .request = waiting->request,
						  .waiting = waiting,
						  .revocable = true,
						  .class = waiting->class,
						  .most = ADVICE_MAX };

	*ret = (struct advice){ 0 };
	return advice_find(arbiter, &question, ret);
}
