/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

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
