/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* arbiter_plan(), and what all proposals need. */

#include "core/decide/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/gang.h"
#include "core/change/lend.h"
#include "core/policy/tenant.h"

int plan_no_memory(struct result *result)
{
	return result_set(result, RESULT_NO_MEMORY, "out of memory");
}

/* A request that policy refuses, whatever the GPUs: one row for each that it names. */
static int not_permitted(struct result *result, const struct want *want, const char *hint)
{
	struct refusal refusal = { .reason = REASON_POLICY };

	memcpy(refusal.gpu, want->gpu, sizeof(refusal.gpu));
	snprintf(refusal.hint, sizeof(refusal.hint), "%s", hint);
	if (result_refuse(result, &refusal) < 0)
		return plan_no_memory(result);
	return result_set(result, RESULT_NOT_PERMITTED, "%s", hint);
}

static int check_policy(const struct tenant *tenant, const struct request *request,
			enum lease_class lease_class, struct result *result)
{
	unsigned most = max_u(tenant->priority, PRIORITY_NORMAL); /* the default is for all */
	char hint[192];

	if (lease_class > tenant->class) {
		snprintf(hint, sizeof(hint),
			 "class %s: tenant %s may ask for %s at most; a tenant "
			 "in gpuarb-tenants(5) can allow more",
			 class_name(lease_class), tenant->name, class_name(tenant->class));
		return not_permitted(result, &request->wants[0], hint);
	}
	for (size_t i = 0; i < request->n_wants; i++) {
		if (request->wants[i].priority <= most)
			continue;
		snprintf(hint, sizeof(hint),
			 "want %zu: priority %u: tenant %s may ask for %u at most", i + 1,
			 request->wants[i].priority, tenant->name, most);
		return not_permitted(result, &request->wants[i], hint);
	}
	return 0;
}

int plan_complete(const struct tenant *tenant, enum lease_class lease_class,
		  struct request *request, struct result *result)
{
	int r;

	r = request_complete(request, lease_class, result);
	if (r < 0)
		return r;
	return check_policy(tenant, request, lease_class, result);
}

int lease_next_version(const struct lease *lease, size_t n_partitions, struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *next = NULL;
	struct partition *partitions;
	int r;

	r = lease_new(n_partitions, &next);
	if (r < 0)
		return r;
	partitions = next->partitions;
	*next = *lease;
	next->partitions = partitions;
	next->n_partitions = n_partitions;
	next->touched = 0;
	next->touched_next = NULL;
	/* Saved with it: without, a token would not be found after a crash. */
	next->request = lease->token[0] && lease->request ? request_keep(lease->request) : NULL;
	if (lease->token[0] && lease->request && !next->request)
		return -ENOMEM;
	*ret = TAKE_PTR(next);
	return 0;
}

static int check_counts(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
			struct result *result)
{
	const struct settings *settings = arbiter->settings;
	uint64_t max = limit_of(&tenant->max_leases, 100);
	size_t of_user = 0;

	if (arbiter->n_leases == arbiter->room)
		return plan_no_memory(result);
	if (arbiter->n_leases >= settings->max_leases)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "%zu leases, and max-leases is %u", arbiter->n_leases,
				  settings->max_leases);
	for (size_t i = 0; i < arbiter->n_leases; i++)
		of_user += arbiter->leases[i]->owner == uid;
	if (of_user >= settings->max_leases_per_user)
		return result_set(result, RESULT_TOO_MANY_LEASES,
				  "uid %u has %zu leases, and max-leases-per-user is %u", uid,
				  of_user, settings->max_leases_per_user);
	if (max != UINT64_MAX && quota_holding(arbiter, tenant, uid, 0).n_leases >= max)
		return result_set(result, RESULT_QUOTA_EXCEEDED,
				  "uid %u has %llu leases, and max-leases of tenant %s is that",
				  uid, (unsigned long long)max, tenant->name);
	return 0;
}

static int make_proposal(const struct arbiter *arbiter, const struct caller *caller,
			 const struct request *asked, const struct admit_context *admit_context,
			 struct lease **ret)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	int r;

	r = lease_new(asked->n_wants, &lease);
	if (r < 0)
		return r;
	if (asked->token[0] || asked->wait_usec > 0) {
		lease->request = request_keep(asked);
		if (!lease->request)
			return -ENOMEM;
	}
	lease->id = arbiter->next_id;
	lease->state = STATE_GRANTED;
	lease->adaptable = asked->adaptable;
	lease->class = admit_context->class;
	memcpy(lease->name, asked->name, sizeof(lease->name));
	memcpy(lease->token, asked->token, sizeof(lease->token));
	memcpy(lease->unit, caller->unit, sizeof(lease->unit));
	snprintf(lease->tenant, sizeof(lease->tenant), "%s", admit_context->tenant->name);
	lease->owner = caller->uid;
	lease->pid = caller->pid;
	*ret = TAKE_PTR(lease);
	return 0;
}

/* There is no room now, and it may wait. */
static void make_wait(struct lease *lease, uint64_t candidates, const struct result *result)
{
	lease->state = STATE_WAITING;
	free(lease->partitions);
	lease->partitions = NULL;
	lease->n_partitions = 0;
	lease->candidates = candidates;
	plan_waits_for(result, lease->reason);
}

static void make_granted(const struct arbiter *arbiter, struct lease *lease, bool inactive)
{
	lend_start(arbiter, lease, inactive);
	if (lease->token[0])
		return;
	free(lease->request);
	lease->request = NULL;
}

int arbiter_plan(const struct arbiter *arbiter, const struct caller *caller,
		 const struct request *request, struct lease **ret, struct result *result)
{
	_cleanup_(lease_freep) struct lease *lease = NULL;
	struct admit_context admit_context = { .arbiter = arbiter,
					       .id = arbiter->next_id,
					       .uid = caller->uid };
	struct request complete = *request;
	uint64_t candidates;
	int r;

	r = tenant_find(arbiter->settings, caller, request->tenant, &admit_context.tenant, result);
	if (r < 0)
		return r;
	admit_context.class =
		request->class < 0 ? admit_context.tenant->class : (enum lease_class)request->class;
	admit_context.alone = admit_context.class == CLASS_REALTIME && admit_context.tenant->alone;
	admit_context.adaptable = request->adaptable;
	r = plan_complete(admit_context.tenant, admit_context.class, &complete, result);
	if (r < 0)
		return r;
	r = check_counts(arbiter, admit_context.tenant, caller->uid, result);
	if (r < 0)
		return r;
	r = make_proposal(arbiter, caller, request, &admit_context, &lease);
	if (r < 0)
		return plan_no_memory(result);
	r = gang_assign(&admit_context, &complete, lease->partitions, &candidates, result);
	if (r >= 0)
		make_granted(arbiter, lease, request->start_inactive);
	else if (result->kind == RESULT_NO_CAPACITY && request->wait_usec > 0)
		make_wait(lease, candidates, result);
	else
		return r;

	*ret = TAKE_PTR(lease);
	return 0;
}
