/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/doctor/service-user.h"
#include "client/verbs/verb.h"

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
