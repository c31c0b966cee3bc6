/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/preempt.h"

#include <string.h>

#include "core/policy/request.h"

bool preempt_is_leaving(const struct lease *lease)
{
	return lease->state == STATE_ENDING && lease->n_partitions > 0;
}

/* A copy of the ledger without the leases that are leaving. 0: there are none; 1, or -ENOMEM. */
static int leave_out_leaving(const struct arbiter *arbiter, struct arbiter *ret)
{
	int r = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		if (!preempt_is_leaving(arbiter->leases[i]))
			continue;
		if (r == 0)
			r = ledger_copy(arbiter, ret);
		if (r < 0)
			return r;
		ledger_leave_out(ret, arbiter->leases[i]);
		r = 1;
	}
	return r;
}

/* Leases that are leaving are not revoked, and not in the way. Where they leave enough room, the
 * request waits for them only if another lease would be revoked for it otherwise. */
static int find(const struct arbiter *arbiter, const struct advice_question *question,
		struct advice *ret)
{
	struct arbiter without;
	struct advice now;
	int r = leave_out_leaving(arbiter, &without);

	if (r < 0)
		return r;
	if (r == 0) {
		r = advice_find(arbiter, question, ret);
		return r < 0 ? r : ret->n > 0;
	}
	r = advice_find(&without, question, ret);
	ledger_copy_done(&without);
	if (r < 0 || ret->n > 0)
		return r < 0 ? r : 1;
	r = advice_find(arbiter, question, &now);
	ret->steps += r < 0 ? 0 : now.steps;
	return r < 0 ? r : now.n > 0;
}

/* The leases to revoke for a new request, which has the class of its tenant unless it names one. */
static int find_new(const struct arbiter *arbiter, const struct caller *caller,
		    const struct request *request, bool any_policy, struct advice *ret)
{
	struct advice_question question = { .asker = { .caller = caller, .request = request },
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
	return find(arbiter, &question, ret);
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
	int r = arbiter_plan(arbiter, caller, request, ret, result), found;

	if (r >= 0 || result->kind != RESULT_NO_CAPACITY ||
	    (found = find_new(arbiter, caller, request, false, &advice)) < 0)
		return r;
	if (found == 0) {
		name_tenant(arbiter, caller, request, result);
		return r;
	}
	result_done(result);
	return plan_new(arbiter, caller, request, true, ret, result);
}

int preempt_find(const struct arbiter *arbiter, const struct lease *waiting, struct advice *ret)
{
	const struct advice_question question = { .asker = { .waiting = waiting,
							     .request = waiting->request },
						  .revocable = true,
						  .class = waiting->class,
						  .most = ADVICE_MAX };

	*ret = (struct advice){ 0 };
	return find(arbiter, &question, ret);
}
