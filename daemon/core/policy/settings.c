/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t limit_of(const struct limit *limit, uint64_t whole)
{
	switch (limit->kind) {
	case LIMIT_COUNT: return limit->value;
	case LIMIT_PERCENT: return whole / 100 * limit->value + whole % 100 * limit->value / 100;
	case LIMIT_NONE: break;
	}
	return UINT64_MAX;
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
	};
	return 0;
}

void tenant_done(struct tenant *tenant)
{
	free(tenant->name);
	free(tenant->file);
	free(tenant->users);
	free(tenant->groups);
	free(tenant->unit);
	free(tenant->slice);
	free(tenant->executable);
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
	settings->activate_grace_usec = 1000000;
	settings->activate_min_interval_usec = 1000000;
	settings->grow_delay_usec = 2000000;
	settings->enforce_delay_usec = 1000000;
	settings->unmanaged = UNMANAGED_COUNT;
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
