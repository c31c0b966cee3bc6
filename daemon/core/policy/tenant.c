/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/tenant.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

static bool matches_pattern(const char *pattern, const char *text)
{
	return !pattern || (text[0] && fnmatch(pattern, text, 0) == 0);
}

static bool matches_who(const struct tenant *tenant, const struct caller *caller)
{
	for (size_t i = 0; i < tenant->n_users; i++)
		if (tenant->users[i] == caller->uid)
			return true;
	for (size_t i = 0; i < tenant->n_groups; i++)
		for (size_t j = 0; j < caller->n_groups; j++)
			if (tenant->groups[i] == caller->groups[j])
				return true;
	return strcmp(tenant->name, "*") == 0;
}

/* uid and groups authorise, for the bus vouches for them; the rest only narrows. */
static bool matches(const struct tenant *tenant, const struct caller *caller)
{
	return matches_who(tenant, caller) && matches_pattern(tenant->unit, caller->unit) &&
	       matches_pattern(tenant->slice, caller->slice) &&
	       matches_pattern(tenant->executable, caller->executable);
}

const struct tenant *tenant_named(const struct settings *settings, const char *name)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (strcmp(settings->tenants[i].name, name) == 0)
			return &settings->tenants[i];
	return NULL;
}

bool tenant_may_match(const struct tenant *tenant, uid_t uid)
{
	for (size_t i = 0; i < tenant->n_users; i++)
		if (tenant->users[i] == uid)
			return true;
	return tenant->n_groups > 0 || strcmp(tenant->name, "*") == 0;
}

bool tenant_bounds_parts(const struct tenant *tenant)
{
	return tenant->max_cus.kind != LIMIT_NONE || tenant->max_queues.kind != LIMIT_NONE ||
	       tenant->max_processes.kind != LIMIT_NONE || tenant->max_vram.kind != LIMIT_NONE;
}

static int find_named(const struct settings *settings, const struct caller *caller,
		      const char *name, const struct tenant **ret, struct result *result)
{
	const struct tenant *tenant = tenant_named(settings, name);

	if (!tenant)
		return result_set(result, RESULT_NO_SUCH_TENANT,
				  "there is no tenant %s; the Tenants property lists them", name);
	if (!matches(tenant, caller))
		return result_set(result, RESULT_NOT_PERMITTED, "tenant %s is not for uid %u", name,
				  caller->uid);
	*ret = tenant;
	return 0;
}

int tenant_find(const struct settings *settings, const struct caller *caller, const char *name,
		const struct tenant **ret, struct result *result)
{
	if (name[0])
		return find_named(settings, caller, name, ret, result);

	for (size_t i = 0; i < settings->n_tenants; i++) {
		if (!matches(&settings->tenants[i], caller))
			continue;
		*ret = &settings->tenants[i];
		return 0;
	}
	return result_set(result, RESULT_NOT_PERMITTED, "no tenant matches uid %u", caller->uid);
}

static bool held_by(const struct lease *lease, const struct tenant *tenant, uid_t uid,
		    uint64_t except_lease)
{
	return lease->owner == uid && lease->id != except_lease &&
	       strcmp(lease->tenant, tenant->name) == 0;
}

struct holding quota_holding(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
			     uint64_t except_lease)
{
	struct holding holding = { 0 };

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (!held_by(lease, tenant, uid, except_lease))
			continue;
		holding.n_leases++;
		for (size_t j = 0; j < lease->n_partitions; j++)
			holding.gpus |= UINT64_C(1) << lease->partitions[j].gpu;
	}
	return holding;
}

static void add_share(const struct lease *lease, const struct partition *partition,
		      struct share *share)
{
	/* What it gave up and still may use is its own as well. */
	share->cus += lease->ack_unverified || lease->acknowledged < lease->generation
			      ? cuset_count(&partition->occupied)
			      : partition->count;
	share->budget.queues += partition->charged.queues;
	share->budget.processes += partition->charged.processes;
	share->budget.vram += partition->charged.vram;
}

void quota_shares(const struct arbiter *arbiter, const struct tenant *tenant, uid_t uid,
		  uint64_t except_lease, struct share ret[static REQUEST_WANTS])
{
	memset(ret, 0, arbiter->n_gpus * sizeof(*ret));
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		if (lease->n_partitions == 0 || !held_by(lease, tenant, uid, except_lease))
			continue;
		for (size_t j = 0; j < lease->n_partitions; j++)
			add_share(lease, &lease->partitions[j], &ret[lease->partitions[j].gpu]);
	}
}

unsigned quota_cus_left(const struct arbiter *arbiter, const struct lease *lease, unsigned gpu)
{
	const struct tenant *tenant = tenant_named(arbiter->settings, lease->tenant);
	struct share shares[REQUEST_WANTS];
	uint64_t limit;

	if (!tenant)
		return 0;
	limit = limit_of(&tenant->max_cus, arbiter->gpus[gpu].cus);
	if (limit >= UINT_MAX)
		return UINT_MAX;
	quota_shares(arbiter, tenant, lease->owner, lease->id, shares);
	return limit > shares[gpu].cus ? (unsigned)limit - shares[gpu].cus : 0;
}
