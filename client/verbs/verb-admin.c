/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/doctor/service-user.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "core/mask/geometry.h"
#include "sys/config/profile.h"

/* ---- config ------------------------------------------------------------------------------ */

/* Profiles that are missing or wrong, and floors that add up to more than one of the simulated GPUs
 * has. */
static int check_simulated(const struct command *command, const struct settings *settings,
			   struct diagnostics *diagnostics)
{
	const char *profiles = command->profiles ? command->profiles : GPUARB_PROFILE_DIR;
	_cleanup_(freep) char *list = strdup(settings->simulate);
	char *rest = list, *name, why[FLOOR_TEXT];
	struct profile profile;
	int result = 0;

	if (!list)
		return 0;
	while ((name = strtok_r(rest, ",", &rest))) {
		if (profile_load(profiles, name, &profile, diagnostics) < 0) {
			result = -EINVAL;
			continue;
		}
		if (settings_check_floors(settings, &profile.info, why) >= 0)
			continue;
		diagnostics_add(diagnostics, true, "%s", why);
		result = -EINVAL;
	}
	return result;
}

/* Compares the floors with one GPU that gpuarbd has found. */
static int check_gpu(const struct settings *settings, const struct gpuarb_gpu *gpu,
		     struct diagnostics *diagnostics)
{
	struct gpu_info info = { .queue_slots = gpu->queue_slots,
				 .process_slots = gpu->process_slots,
				 .geometry = { .xccs = gpu->xccs,
					       .engines = gpu->shader_engines,
					       .arrays = 1,
					       .array_cus = CUSET_ARRAY_CUS } };
	char why[FLOOR_TEXT];

	snprintf(info.name, sizeof(info.name), "%s", gpu->name);
	if (geometry_spread(&info.geometry, gpu->cus) < 0) {
		diagnostics_add(diagnostics, false,
				"%s: the floors were not compared with it: it has %u CUs in %u "
				"shader engines",
				gpu->name, gpu->cus, gpu->shader_engines);
		return 0;
	}
	if (settings_check_floors(settings, &info, why) >= 0)
		return 0;
	diagnostics_add(diagnostics, true, "%s", why);
	return -EINVAL;
}

/* Floors that add up to more than a GPU has which gpuarbd has found on this machine. */
static int check_found(struct command *command, const struct settings *settings,
		       struct diagnostics *diagnostics)
{
	bool any = false;
	int result = 0, r;

	for (size_t i = 0; i < settings->n_tenants; i++)
		any |= tenant_has_floor(&settings->tenants[i]);
	if (!any)
		return 0;
	r = command->gpuarb ? 0 : gpuarb_open(&command->gpuarb);
	if (r >= 0)
		r = session_refresh(command);
	if (r < 0) {
		diagnostics_add(
			diagnostics, false,
			"the floors were not compared with the GPUs of this machine: gpuarbd "
			"does not answer (%s)",
			strerror(-r));
		return 0;
	}
	for (size_t i = 0; i < command->n_gpus; i++)
		if (check_gpu(settings, &command->gpus[i], diagnostics) < 0)
			result = -EINVAL;
	return result;
}

static int check_floors(struct command *command, const struct settings *settings,
			struct diagnostics *diagnostics)
{
	return settings->backend == BACKEND_SIMULATED
		       ? check_simulated(command, settings, diagnostics)
		       : check_found(command, settings, diagnostics);
}

/* The files named, or all files that the daemon reads, with its rules of trust. */
static int check(struct command *command, struct diagnostics *diagnostics)
{
	const struct config_files files = { .trust = service_trust() };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	int result = 0, r;

	if (command->n_rest == 1) {
		r = service_load_config(&files, &settings, diagnostics);
		return r < 0 || check_floors(command, settings, diagnostics) >= 0 ? r : -EINVAL;
	}

	for (size_t i = 1; i < command->n_rest; i++) {
		size_t before = diagnostics->n;

		r = config_load_file(command->rest[i], &settings, diagnostics);
		if (r >= 0)
			r = check_floors(command, settings, diagnostics);
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
	if (strcmp(command->rest[0], "check") != 0)
		return fail(command, EXIT_USAGE,
			    "unknown action '%.80s': use config check or config init",
			    command->rest[0]);

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
			print_line(stdout, "the configuration is valid");
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
		json_text(map, "gpu", gpu->name);
		json_flag(map, "draining", drain);
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
	struct json_object *map = json_map(NULL, NULL), *list;
	const char *const *keys;
	size_t n = gpuarb_view_restart_keys(command->view, &keys);

	json_flag(map, "reloaded", true);
	list = json_list(map, "restart_keys");
	for (size_t i = 0; i < n; i++)
		json_text(list, NULL, keys[i]);
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
