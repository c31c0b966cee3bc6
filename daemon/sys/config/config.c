/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config.h"

#include <errno.h>

#include "sys/config/config-internal.h"

static const char *const directories[] = {
	"/usr/lib/gpuarb",
	"/run/gpuarb",
	"/etc/gpuarb",
	NULL,
};
static const char *const tenant_directories[] = {
	"/usr/lib/gpuarb/tenants.d",
	"/run/gpuarb/tenants.d",
	"/etc/gpuarb/tenants.d",
	NULL,
};

static void config_done(struct config *config)
{
	config_drop_tenants(config);
	settings_free(config->settings);
}

static int config_init(struct config *config, struct diagnostics *diagnostics)
{
	*config = (struct config){ .diagnostics = diagnostics };
	return settings_new(&config->settings);
}

/* What can be wrong only with the whole, and then the settings. */
static int config_finish(struct config *config, struct settings **ret)
{
	int r;

	config_check_tenants(config);
	if (config->complaints > 0)
		return -EINVAL;
	r = config_settle_tenants(config);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(config->settings);
	return 0;
}

static void read_file(struct config *config, const char *path, const struct trust *trust)
{
	int r;

	config->section = NULL;
	config->target = NULL;
	r = ini_read(path, trust, config_on_section, config_on_key, config, config->diagnostics);
	if (r == -ENOENT)
		diagnostics_add(config->diagnostics, true,
				"%s: no such file, or a link that leads nowhere", path);
	if (r < 0)
		config->complaints++;
}

/* How many files there were: 0 or 1. */
static int read_main_file(struct config *config, const struct config_files *files)
{
	_cleanup_(freep) char *found = NULL;
	int r = 0;

	if (!files->config)
		r = config_find(directories, "gpuarbd.conf", &files->trust, &found,
				config->diagnostics);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		config->complaints++;
	if (!files->config && !found)
		return 0;
	read_file(config, found ? found : files->config, &files->trust);
	return 1;
}

static int read_tenants(struct config *config, const struct config_files *files)
{
	const char *const one[] = { files->tenants, NULL };
	_cleanup_(config_list_done) struct config_list list = { 0 };
	int r;

	r = config_find_all(files->tenants ? one : tenant_directories, files->tenants != NULL,
			    &files->trust, &list, config->diagnostics);
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		config->complaints++;

	config->tenants_only = true;
	for (size_t i = 0; i < list.n; i++)
		read_file(config, list.paths[i], &files->trust);
	return (int)list.n;
}

/* How many files there were. */
static int read_all(struct config *config, const struct config_files *files)
{
	int main_files = read_main_file(config, files), tenants;

	if (main_files < 0)
		return main_files;
	tenants = read_tenants(config, files);
	return tenants < 0 ? tenants : main_files + tenants;
}

int config_load(const struct config_files *files, struct settings **ret,
		struct diagnostics *diagnostics)
{
	_cleanup_(config_done) struct config config;
	int n = 0, r;

	r = config_init(&config, diagnostics);
	if (r >= 0)
		r = n = read_all(&config, files);
	if (r >= 0)
		r = config_finish(&config, ret);
	if (r == -ENOMEM)
		diagnostics_add(diagnostics, true, "the configuration: out of memory");
	return r < 0 ? r : n == 0 && !files->tenants;
}

int config_load_file(const char *path, struct settings **ret, struct diagnostics *diagnostics)
{
	_cleanup_(config_done) struct config config;
	int r;

	r = config_init(&config, diagnostics);
	if (r >= 0) {
		read_file(&config, path, NULL);
		r = config_finish(&config, ret);
	}
	if (r == -ENOMEM)
		diagnostics_add(diagnostics, true, "%s: out of memory", path);
	return r;
}

int config_check_file(const char *path, struct diagnostics *diagnostics)
{
	_cleanup_(settings_freep) struct settings *settings = NULL;

	return config_load_file(path, &settings, diagnostics);
}
