/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "client/doctor/service-user.h"
#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

/* ---- config ------------------------------------------------------------------------------ */

/* The files named, or all files that the daemon reads, with its rules of trust. */
static int check(const struct command *command, struct diagnostics *diagnostics)
{
	const struct config_files files = { .trust = service_trust() };
	_cleanup_(settings_freep) struct settings *settings = NULL;
	int result = 0, r;

	if (command->n_rest == 1)
		return service_load_config(&files, &settings, diagnostics);

	for (size_t i = 1; i < command->n_rest; i++) {
		size_t before = diagnostics->n;

		r = config_check_file(command->rest[i], diagnostics);
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
	_cleanup_(json_freep) struct json_object *map = json_map(NULL, NULL);
	struct json_object *problems, *warnings;

	json_flag(map, "valid", valid);
	problems = json_list(map, "problems");
	warnings = json_list(map, "warnings");
	for (size_t i = 0; i < diagnostics->n; i++)
		json_text(diagnostics->list[i].error ? problems : warnings, NULL,
			  diagnostics->list[i].text);
	json_print(stdout, map);
}

int run_config(struct command *command)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	bool valid;
	int r;

	if (strcmp(command->rest[0], "check") != 0)
		return fail(command, EXIT_USAGE, "unknown action '%.80s': use config check",
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
	}
	return valid ? EXIT_OK : EXIT_CONFIGURATION;
}

/* ---- drain, undrain and reload ----------------------------------------------------------- */

static int set_drain(const struct command *command, bool drain)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(json_freep) struct json_object *map = NULL;
	const struct gpuarb_gpu *gpu;
	int r;

	r = session_snapshot(command, &session);
	if (r == EXIT_OK)
		r = session_gpu(command, &session, command->rest[0], &gpu);
	if (r != EXIT_OK)
		return r;

	session_administer(&session);
	r = gpuarb_drain(session.gpuarb, gpu->name, drain);
	if (r < 0)
		return fail_asked(command, session.gpuarb, r);

	if (!command->json) {
		print_line(
			stdout,
			drain ? "%s is draining: its leases stay, and no new lease is granted on it"
			      : "%s accepts leases again",
			gpu->name);
		return EXIT_OK;
	}
	map = json_map(NULL, NULL);
	json_text(map, "gpu", gpu->name);
	json_flag(map, "draining", drain);
	json_print(stdout, map);
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

int run_reload(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(json_freep) struct json_object *map = NULL;
	int r;

	r = session_open(command, &session);
	if (r != EXIT_OK)
		return r;

	session_administer(&session);
	r = gpuarb_reload(session.gpuarb);
	if (r == -EINVAL) {
		(void)fail_asked(command, session.gpuarb, r);
		return EXIT_CONFIGURATION;
	}
	if (r < 0)
		return fail_asked(command, session.gpuarb, r);

	if (!command->json) {
		print_line(stdout, "the configuration was reloaded");
		return EXIT_OK;
	}
	map = json_map(NULL, NULL);
	json_flag(map, "reloaded", true);
	json_print(stdout, map);
	return EXIT_OK;
}
