/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/doctor/service.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "sys/config/profile.h"

/* ---- config ------------------------------------------------------------------------------ */

/* Compares floors and shares with one GPU, and notes which reserved-gpu it is. */
static int check_gpu(const struct settings *settings, const struct gpu_info *info, bool *found,
		     struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < settings->n_tenants; i++) {
		const struct tenant *tenant = &settings->tenants[i];

		found[i] |= tenant->reserved_gpu && strcmp(tenant->reserved_gpu, info->name) == 0;
	}
	settings_check_shares(settings, info, diagnostics);
	return settings_check_floors(settings, info, true, diagnostics);
}

/* at: the place of simulate; NULL: it is not of these settings. */
static int load_profile(const char *profiles, const char *name, const char *at,
			struct profile *profile, struct diagnostics *diagnostics)
{
	_cleanup_(diagnostics_done) struct diagnostics found = { 0 };
	int r = profile_load(profiles, name, profile, &found);

	for (size_t i = 0; i < found.n; i++)
		diagnostics_add(diagnostics, found.list[i].error, "%s%s%s", at ? at : "",
				at ? ": simulate: " : "", found.list[i].text);
	return r;
}

/* Profiles that are missing or wrong, and floors that add up to more than one of the simulated GPUs
 * has. */
static int check_simulated(const struct command *command, const struct settings *settings,
			   const char *simulate, bool *found, struct diagnostics *diagnostics)
{
	const char *profiles = command->profiles ? command->profiles : GPUARB_PROFILE_DIR;
	_cleanup_(freep) char *list = strdup(simulate);
	char *rest = list, *name;
	struct profile profile;
	const char *at = settings->backend == BACKEND_SIMULATED ? settings->simulate_at : NULL;
	int result = 0;

	for (unsigned card = 0; list && (name = strtok_r(rest, ",", &rest)); card++) {
		if (load_profile(profiles, name, at, &profile, diagnostics) < 0) {
			result = -EINVAL;
			continue;
		}
		for (unsigned i = 0; i < profile.partitions; i++) {
			gpu_info_name_simulated(&profile.info, card, i, profile.partitions);
			if (check_gpu(settings, &profile.info, found, diagnostics) < 0)
				result = -EINVAL;
		}
	}
	return result;
}

/* Compares the floors with one GPU that gpuarbd has found. */
static int check_found_gpu(const struct settings *settings, const struct gpuarb_gpu *gpu,
			   bool *found, struct diagnostics *diagnostics)
{
	struct gpu_info info;

	if (config_gpu_info(gpu, &info) >= 0)
		return check_gpu(settings, &info, found, diagnostics);
	diagnostics_add(diagnostics, false,
			"%s: the floors were not compared with it: it has %u CUs in %u "
			"shader engines",
			gpu->name, gpu->cus, gpu->shader_engines);
	return 0;
}

/* Floors that add up to more than a GPU has which gpuarbd has found on this machine. -ENODEV: it does
 * not answer. */
static int check_found(struct command *command, const struct settings *settings, bool *found,
		       struct diagnostics *diagnostics)
{
	int result = 0, r;

	r = command->gpuarb ? 0 : gpuarb_open(&command->gpuarb);
	if (r >= 0)
		r = session_refresh(command);
	if (r < 0) {
		diagnostics_add(
			diagnostics, false,
			"the floors were not compared with the GPUs of this machine: gpuarbd "
			"does not answer (%s)",
			strerror(-r));
		return -ENODEV;
	}
	for (size_t i = 0; i < command->n_gpus; i++)
		if (check_found_gpu(settings, &command->gpus[i], found, diagnostics) < 0)
			result = -EINVAL;
	return result;
}

/* simulate: of another file that is checked with this one; NULL: none. */
static int check_floors(struct command *command, const struct settings *settings,
			const char *simulate, struct diagnostics *diagnostics)
{
	_cleanup_(freep) bool *found = calloc(settings->n_tenants + 1, sizeof(*found));
	bool any = false;
	int r = 0;

	for (size_t i = 0; i < settings->n_tenants; i++)
		any |= tenant_has_floor(&settings->tenants[i]);
	if (!found)
		return -ENOMEM;
	if (settings->backend == BACKEND_SIMULATED)
		simulate = settings->simulate;
	if (simulate)
		r = check_simulated(command, settings, simulate, found, diagnostics);
	else if (any)
		r = check_found(command, settings, found, diagnostics);
	for (size_t i = 0; r != -ENODEV && any && i < settings->n_tenants; i++)
		if (settings->tenants[i].reserved_gpu && !found[i])
			diagnostics_add(
				diagnostics, false, "tenant %s: reserved-gpu: there is no GPU %s",
				settings->tenants[i].name, settings->tenants[i].reserved_gpu);
	return r == -ENODEV ? 0 : r;
}

/* The simulated GPUs that one of the files names; for free(), NULL: none. */
static char *find_simulate(const struct command *command)
{
	char *simulate = NULL;

	for (size_t i = 1; i < command->n_rest && !simulate; i++) {
		_cleanup_(diagnostics_done) struct diagnostics ignored = { 0 };
		_cleanup_(settings_freep) struct settings *settings = NULL;

		if (config_load_file(command->rest[i], &settings, &ignored) >= 0 &&
		    settings->backend == BACKEND_SIMULATED)
			simulate = strdup(settings->simulate);
	}
	return simulate;
}

/* A daemon with CAP_SYS_PTRACE sees them; that of the packages has not. */
static void warn_of_executables(const struct settings *settings, struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < settings->n_tenants; i++)
		if (settings->tenants[i].executable)
			diagnostics_add(
				diagnostics, false,
				"%s:%u: [tenant %s]: match-executable matches no program of other "
				"users, unless the unit of gpuarbd was changed: see SECURITY in "
				"gpuarbd(8)",
				settings->tenants[i].file, settings->tenants[i].line,
				settings->tenants[i].name);
}

/* The files named, or all files that the daemon reads, with its rules of trust. */
static int check(struct command *command, struct diagnostics *diagnostics)
{
	const struct config_files files = { .trust = service_trust() };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	_cleanup_(freep) char *simulate = find_simulate(command);
	int result = 0, r;

	if (command->n_rest == 1) {
		r = service_load_config(&files, &settings, diagnostics);
		if (r >= 0)
			warn_of_executables(settings, diagnostics);
		return r < 0 || check_floors(command, settings, NULL, diagnostics) >= 0 ? r
											: -EINVAL;
	}

	for (size_t i = 1; i < command->n_rest; i++) {
		size_t before = diagnostics->n;

		r = config_load_named(command->rest[i], &settings, diagnostics);
		if (r >= 0) {
			warn_of_executables(settings, diagnostics);
			r = check_floors(command, settings, simulate, diagnostics);
		}
		settings = settings_free(settings);
		if (r < 0 && diagnostics->n == before)
			diagnostics_add(diagnostics, true, "%s: %s", command->rest[i],
					strerror(-r));
		if (r < 0)
			result = r;
	}
	return result;
}

static void print_json(const struct diagnostics *diagnostics, bool valid)
{
	struct json_object *map = json_map(NULL, NULL), *problems, *warnings;

	json_flag(map, "valid", valid);
	problems = json_list(map, "problems");
	warnings = json_list(map, "warnings");
	for (size_t i = 0; i < diagnostics->n; i++)
		json_text(diagnostics->list[i].error ? problems : warnings, NULL,
			  diagnostics->list[i].text);
	json_print(stdout, map);
}

/* address: of a bus whose gpuarbd may read other files than those of this machine; NULL: none. */
static void print_valid(const char *address)
{
	if (!address)
		print_line(stdout, "the configuration is valid");
	else
		print_line(stdout,
			   "the configuration in " CONFIG_PLACES " is valid; " CONFIG_ELSEWHERE,
			   address);
}

static void print_count(const struct diagnostics *diagnostics)
{
	size_t n = 0;

	for (size_t i = 0; i < diagnostics->n; i++)
		n += diagnostics->list[i].error;
	print_line(stderr,
		   "%zu problem%s: gpuarbd does not start with it, and a reload keeps the "
		   "configuration in force",
		   n, print_s(n));
}

int run_config(struct command *command)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	bool valid;
	int r;

	if (strcmp(command->rest[0], "init") == 0)
		return config_init(command);
	if (strcmp(command->rest[0], "explain") == 0)
		return config_explain(command);

	r = check(command, &diagnostics);
	valid = r >= 0 && !diagnostics_have_errors(&diagnostics);
	if (r > 0 && !command->json)
		print_line(stdout, CONFIG_NONE);
	if (command->json) {
		print_json(&diagnostics, valid);
	} else {
		for (size_t i = 0; i < diagnostics.n; i++)
			print_line(stderr, "%s%s", diagnostics.list[i].error ? "" : "warning: ",
				   diagnostics.list[i].text);
		if (valid)
			print_valid(command->n_rest == 1 ? getenv("GPUARB_BUS_ADDRESS") : NULL);
		else
			print_count(&diagnostics);
	}
	return valid ? EXIT_OK : EXIT_CONFIGURATION;
}

/* ---- drain, undrain and reload ----------------------------------------------------------- */

static int set_drain(struct command *command, bool drain)
{
	const struct gpuarb_gpu *gpu;
	struct json_object *map;
	int r;

	r = session_gpu(command, command->rest[0], &gpu);
	if (r == EXIT_OK)
		r = session_administer(command);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_drain(command->gpuarb, gpu->name, drain);
	if (r < 0)
		return fail_asked(command, r);

	if (command->json) {
		map = json_map(NULL, NULL);
		JSON_FIELDS(map, ("gpu", gpu->name), ("draining", drain));
		json_print(stdout, map);
	} else {
		print_line(
			stdout,
			drain ? "%s is draining: its leases stay, and no new lease is granted on it"
			      : "%s accepts leases again",
			gpu->name);
	}
	return EXIT_OK;
}

int run_drain(struct command *command)
{
	return set_drain(command, true);
}

int run_undrain(struct command *command)
{
	return set_drain(command, false);
}

/* Keys that the reload has read and that have no effect yet. */
static void print_restart(const struct command *command)
{
	const char *const *keys;
	size_t n = gpuarb_view_restart_keys(command->view, &keys);

	for (size_t i = 0; i < n; i++)
		print_line(stdout,
			   "the changed key %s waits for a restart: systemctl restart gpuarbd "
			   "(leases stay)",
			   keys[i]);
}

static void print_reloaded(const struct command *command)
{
	struct json_object *map = json_map(NULL, NULL);
	const char *const *keys;
	size_t n = gpuarb_view_restart_keys(command->view, &keys);

	json_flag(map, "reloaded", true);
	json_words(map, "restart_keys", keys, n);
	json_print(stdout, map);
}

int run_reload(struct command *command)
{
	int r = gpuarb_reload(command->gpuarb), code;

	if (r < 0) {
		code = fail_asked(command, r);
		return r == -EINVAL ? EXIT_CONFIGURATION : code;
	}
	code = session_snapshot(command);
	if (code != EXIT_OK)
		return code;
	if (command->json) {
		print_reloaded(command);
	} else {
		print_line(stdout, "the configuration was reloaded");
		print_restart(command);
	}
	return EXIT_OK;
}
