/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool config_is_everybody(const struct config_tenant *row)
{
	return strcmp(row->tenant.name, "*") == 0;
}

static bool is_tenant_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._@";

	return strcmp(name, "*") == 0 || (*name && name[strspn(name, allowed)] == '\0');
}

static bool tenant_is_new(const struct config *config, const struct ini_place *place,
			  const char *name)
{
	for (size_t i = 0; i < config->n_rows; i++) {
		const struct config_tenant *row = &config->rows[i];

		if (strcmp(row->tenant.name, name) != 0)
			continue;
		ini_bad(place, "[tenant %s] is at %s:%u already: a tenant stands once", name,
			row->file, row->line);
		return false;
	}
	return true;
}

struct tenant *config_add_tenant(struct config *config, const struct ini_place *place,
				 const char *name)
{
	_cleanup_(freep) char *file = NULL;
	struct config_tenant *rows;

	if (!is_tenant_name(name)) {
		ini_bad(place,
			"[tenant %s]: a name is letters, digits and -._@, or * alone for "
			"everybody else",
			name);
		return NULL;
	}
	if (!tenant_is_new(config, place, name))
		return NULL;

	file = strdup(place->file);
	rows = reallocarray(config->rows, config->n_rows + 1, sizeof(*rows));
	if (rows)
		config->rows = rows;
	if (!file || !rows || tenant_init(&rows[config->n_rows].tenant, name) < 0) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	rows += config->n_rows++;
	rows->file = TAKE_PTR(file);
	rows->line = place->line;
	rows->matches = false;
	return &rows->tenant;
}

static void check_row(struct config *config, const struct config_tenant *row)
{
	struct ini_place place = {
		.file = row->file,
		.line = row->line,
		.diagnostics = config->diagnostics,
		.errors = &config->complaints,
	};

	if (!row->matches && !config_is_everybody(row))
		ini_bad(&place,
			"[tenant %s] is nobody: it needs match-user or match-group, which "
			"the other match keys only narrow",
			row->tenant.name);
	if (row->tenant.alone && row->tenant.class != CLASS_REALTIME)
		ini_bad(&place,
			"[tenant %s]: alone keeps others out of the shader engines of "
			"realtime leases: it needs class = realtime",
			row->tenant.name);
}

void config_check_tenants(struct config *config)
{
	for (size_t i = 0; i < config->n_rows; i++)
		check_row(config, &config->rows[i]);
}

int config_settle_tenants(struct config *config)
{
	struct settings *settings = config->settings;
	struct tenant *tenants, everybody = settings->tenants[0];
	size_t n = 0;

	tenants = calloc(config->n_rows + 1, sizeof(*tenants));
	if (!tenants)
		return -ENOMEM;

	for (size_t i = 0; i < config->n_rows; i++) {
		struct tenant *tenant = &config->rows[i].tenant;

		if (config_is_everybody(&config->rows[i])) {
			tenant_done(&everybody);
			everybody = *tenant;
		} else {
			tenants[n++] = *tenant;
		}
		free(config->rows[i].file);
	}
	tenants[n++] = everybody;
	config->n_rows = 0;

	free(settings->tenants);
	settings->tenants = tenants;
	settings->n_tenants = n;
	return 0;
}

void config_drop_tenants(struct config *config)
{
	for (size_t i = 0; i < config->n_rows; i++) {
		tenant_done(&config->rows[i].tenant);
		free(config->rows[i].file);
	}
	free(config->rows);
}
