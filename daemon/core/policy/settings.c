/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/settings.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

uint64_t limit_of(const struct limit *limit, uint64_t whole)
{
	switch (limit->kind) {
	case LIMIT_COUNT: return limit->value;
	case LIMIT_PERCENT: return whole / 100 * limit->value + whole % 100 * limit->value / 100;
	case LIMIT_NONE: break;
	}
	return UINT64_MAX;
}

uint64_t limit_reserved(const struct limit *limit, uint64_t whole)
{
	return limit->kind == LIMIT_NONE ? 0 : limit_of(limit, whole);
}

int tenant_init(struct tenant *tenant, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;

	*tenant = (struct tenant){
		.name = copy,
		.class = CLASS_BESTEFFORT,
		.priority = PRIORITY_NORMAL,
		.enforce = ENFORCE_STEP_REPORT,
		.weight = TENANT_WEIGHT,
	};
	return 0;
}

void tenant_done(struct tenant *tenant)
{
	free(tenant->name);
	free(tenant->file);
	free(tenant->users.ids);
	free(tenant->groups.ids);
	free(tenant->unit);
	free(tenant->slice);
	free(tenant->executable);
	free(tenant->reserved_gpu);
	*tenant = (struct tenant){ 0 };
}

int settings_new(struct settings **ret)
{
	_cleanup_(settings_freep) struct settings *settings = calloc(1, sizeof(*settings));
	int r;

	if (!settings)
		return -ENOMEM;

	settings->backend = BACKEND_AUTO;
	settings->audit_interval_usec = 2000000;
	settings->drift_grace_usec = 1000000;
	settings->activate_grace_usec = 1000000;
	settings->activate_min_interval_usec = 1000000;
	settings->grow_delay_usec = 2000000;
	settings->enforce_delay_usec = 1000000;
	settings->unmanaged = UNMANAGED_COUNT;
	settings->graphics = GRAPHICS_WARN;
	settings->margin_percent = 60;
	settings->max_leases = 4096;
	settings->max_leases_per_user = 1024;
	settings->max_holders = 4096;

	settings->simulate = strdup("radeon-vii");
	settings->tenants = calloc(1, sizeof(*settings->tenants));
	if (!settings->simulate || !settings->tenants)
		return -ENOMEM;
	r = tenant_init(&settings->tenants[0], "*");
	if (r < 0)
		return r;
	settings->n_tenants = 1;

	*ret = TAKE_PTR(settings);
	return 0;
}

struct settings *settings_free(struct settings *settings)
{
	if (!settings)
		return NULL;

	for (size_t i = 0; i < settings->n_tenants; i++)
		tenant_done(&settings->tenants[i]);
	free(settings->tenants);
	free(settings->gpus);
	free(settings->simulate);
	free(settings);
	return NULL;
}

const struct gpu_settings *settings_gpu(const struct settings *settings, const char *name)
{
	for (size_t i = 0; i < settings->n_gpus; i++)
		if (strcmp(settings->gpus[i].name, name) == 0)
			return &settings->gpus[i];
	return NULL;
}

/* ---- the tenant of a caller -------------------------------------------------------------- */

static bool matches_pattern(const char *pattern, const char *text)
{
	return !pattern || (text[0] && fnmatch(pattern, text, 0) == 0);
}

static bool has_id(const struct id_list *list, unsigned id)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->ids[i] == id)
			return true;
	return false;
}

static bool matches_who(const struct tenant *tenant, const struct caller *caller)
{
	if (has_id(&tenant->users, caller->uid))
		return true;
	for (size_t i = 0; i < caller->n_groups; i++)
		if (has_id(&tenant->groups, caller->groups[i]))
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
	return has_id(&tenant->users, uid) || tenant->groups.n > 0 ||
	       strcmp(tenant->name, "*") == 0;
}

bool tenant_has_floor(const struct tenant *tenant)
{
	return tenant->reserved_cus.kind != LIMIT_NONE || tenant->reserved_engines > 0 ||
	       tenant->reserved_queues > 0 || tenant->reserved_processes > 0;
}

bool tenant_floor_is_on(const struct tenant *tenant, const char *gpu)
{
	return !tenant->reserved_gpu || strcmp(tenant->reserved_gpu, gpu) == 0;
}

/* Whole engines that hold a floor of CUs. */
static uint64_t engines_of(const struct geometry *geometry, uint64_t cus)
{
	uint64_t each = geometry_cus(geometry) / geometry->engines;

	return each > 0 ? (cus + each - 1) / each : 0;
}

int settings_check_floors(const struct settings *settings, const struct gpu_info *gpu, char *buf,
			  size_t size)
{
	uint64_t all = geometry_cus(&gpu->geometry), each = all / gpu->geometry.engines;
	uint64_t cus = 0, engines = 0, queues = 0, processes = 0;

	for (size_t i = 0; i < settings->n_tenants; i++) {
		const struct tenant *tenant = &settings->tenants[i];
		uint64_t own = limit_reserved(&tenant->reserved_cus, all);
		uint64_t whole = tenant->class == CLASS_REALTIME || tenant->reserved_engines > 0
					 ? engines_of(&gpu->geometry, own)
					 : 0;

		if (!tenant_floor_is_on(tenant, gpu->name))
			continue;
		whole = whole > tenant->reserved_engines ? whole : tenant->reserved_engines;
		engines += whole;
		cus += own > whole * each ? own : whole * each;
		queues += tenant->reserved_queues;
		processes += tenant->reserved_processes;
	}
	const struct {
		const char *key;
		uint64_t sum, has;
	} sums[] = {
		{ "reserved-shader-engines", engines, gpu->geometry.engines },
		{ "reserved-cus", cus, all },
		{ "reserved-queues", queues, gpu->queue_slots },
		{ "reserved-processes", processes, gpu->process_slots },
	};

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		if (sums[i].sum > sums[i].has)
			return refuse(buf, size, -ENOSPC,
				      "%s of all tenants adds up to %llu, and %s has %llu",
				      sums[i].key, (unsigned long long)sums[i].sum,
				      gpu->name[0] ? gpu->name : gpu->device,
				      (unsigned long long)sums[i].has);
	return 0;
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
