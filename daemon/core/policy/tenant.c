/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/tenant.h"

#include <fnmatch.h>
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

/* uid and groups authorise, because the bus guarantees them; the hints only narrow the match. */
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

/* name: of the tenant that the caller asked for; "": none. */
static int no_match(const struct caller *caller, const char *name, struct result *result)
{
	struct refusal refusal = { .gpu = "any", .reason = REASON_POLICY, .uid = caller->uid };

	refusal_set_bound(&refusal, "tenant", 0, name);
	return result_refuse_all(result, RESULT_NOT_PERMITTED, &refusal);
}

static int find_named(const struct settings *settings, const struct caller *caller,
		      const char *name, const struct tenant **ret, struct result *result)
{
	const struct tenant *tenant = tenant_named(settings, name);

	if (!tenant)
		return result_set(result, RESULT_NO_SUCH_TENANT,
				  "there is no tenant %s; the Tenants property lists them", name);
	if (!matches(tenant, caller))
		return no_match(caller, name, result);
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
	return no_match(caller, "", result);
}
