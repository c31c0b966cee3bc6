/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The configuration: read at the start, and again on SIGHUP and Reload. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/request.h"
#include "protocol/protocol.h"
#include "cap/cap.h"
#include "observe/observe.h"
#include "sys/process.h"
#include "sys/subuid-file.h"

#define RESTART_TEXT                                                                            \
	"the changed key %s waits for a restart of gpuarbd (systemctl restart gpuarbd; leases " \
	"stay)"

int reload_read(const struct daemon *daemon, struct names *names, struct settings **ret,
		struct diagnostics *diagnostics)
{
	struct config_files files = daemon->options->files;
	int r;

	files.names = names;
	r = config_load(&files, ret, diagnostics);

	if (r > 0)
		log_info(CONFIG_NONE);
	if (r >= 0)
		subuid_load(&(*ret)->subuids, names, diagnostics);
	for (size_t i = 0; r >= 0 && i < (*ret)->n_tenants; i++)
		if ((*ret)->tenants[i].executable && !process_sees_executables())
			diagnostics_add(
				diagnostics, false,
				"tenant %s: match-executable matches no process: without "
				"CAP_SYS_PTRACE gpuarbd cannot read which program other users run; "
				"see SECURITY in gpuarbd(8)",
				(*ret)->tenants[i].name);
	return r;
}

struct started {
	enum backend backend;
	char *simulate;
};

int reload_remember_start(struct daemon *daemon, const struct settings *settings)
{
	daemon->started = calloc(1, sizeof(*daemon->started));
	if (!daemon->started)
		return -ENOMEM;
	daemon->started->backend = settings->backend;
	daemon->started->simulate = strdup(settings->simulate);
	return daemon->started->simulate ? 0 : -ENOMEM;
}

void reload_stop(struct daemon *daemon)
{
	if (daemon->started)
		free(daemon->started->simulate);
	free(daemon->started);
}

/* Options of the command line replace both keys. */
static void compare_with_start(const struct daemon *daemon, struct settings *settings,
			       struct diagnostics *diagnostics)
{
	bool simulated = settings->backend == BACKEND_SIMULATED;

	if (daemon->options->simulate || daemon->options->sysfs)
		return;
	settings->restart_for_backend = settings->backend != daemon->started->backend;
	settings->restart_for_simulate = simulated &&
					 strcmp(settings->simulate, daemon->started->simulate) != 0;
	if (settings->restart_for_backend)
		diagnostics_add(diagnostics, false, RESTART_TEXT, "backend");
	if (settings->restart_for_simulate)
		diagnostics_add(diagnostics, false, RESTART_TEXT, "simulate");
}

void reload_check_floors(const struct daemon *daemon, struct diagnostics *diagnostics)
{
	const struct arbiter *arbiter = daemon->arbiter;
	const struct settings *settings = arbiter->settings;

	for (size_t i = 0; i < arbiter->n_gpus; i++) {
		if (arbiter->gpus[i].absent)
			continue;
		settings_check_floors(settings, &arbiter->gpus[i].info, false, diagnostics);
		settings_check_shares(settings, &arbiter->gpus[i].info, diagnostics);
	}
	for (size_t i = 0; i < settings->n_tenants; i++) {
		const char *rest = settings->tenants[i].only_gpus;
		char name[GPU_NAME_MAX];

		while (want_next_gpu(&rest, name))
			if (ledger_find_gpu(arbiter, name) < 0)
				diagnostics_add(diagnostics, false,
						"tenant %s: only-gpus: there is no GPU %s",
						settings->tenants[i].name, name);
	}
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (settings->tenants[i].reserved_gpu &&
		    ledger_find_gpu(arbiter, settings->tenants[i].reserved_gpu) < 0)
			diagnostics_add(
				diagnostics, false, "tenant %s: reserved-gpu: there is no GPU %s",
				settings->tenants[i].name, settings->tenants[i].reserved_gpu);
}

/* They stay, because of on-reload = keep, although their users could not get them again. */
static void check_leases(const struct daemon *daemon, struct diagnostics *diagnostics)
{
	const struct settings *settings = daemon->arbiter->settings;

	for (size_t i = 0; i < daemon->arbiter->n_leases; i++) {
		const struct lease *lease = daemon->arbiter->leases[i];
		const struct tenant *tenant = tenant_named(settings, lease->tenant), *own;

		own = tenant ? tenant_that_binds(settings, tenant, lease->owner) : NULL;
		if (own)
			diagnostics_add(
				diagnostics, false,
				"lease %llu of uid %u is of tenant %s, which is not open to users of "
				"tenant %s: its next request is refused, unless [tenant %s] has open = "
				"yes",
				(unsigned long long)lease->id, lease->owner, tenant->name,
				own->name, tenant->name);
	}
}

int reload_settings(struct daemon *daemon, struct names *names, struct diagnostics *diagnostics)
{
	struct settings *settings = NULL;
	int r;

	r = reload_read(daemon, names, &settings, diagnostics);
	if (r < 0)
		return r;
	compare_with_start(daemon, settings, diagnostics);
	arbiter_set_settings(daemon->arbiter, settings);
	reload_check_floors(daemon, diagnostics);
	scan_calibrations(daemon, diagnostics);
	if (settings->revoke_on_reload)
		arbiter_review(daemon->arbiter);
	else
		check_leases(daemon, diagnostics);
	liveness_limit(daemon);
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		caps_review(daemon, daemon->arbiter->leases[i]->id);
	unit_caps_reload(daemon);
	log_notice("configuration reloaded: %zu tenant%s", settings->n_tenants,
		   settings->n_tenants == 1 ? "" : "s");
	if (daemon->bus)
		bus_tell_tenants(daemon->bus);
	update_now(daemon);
	return 0;
}
