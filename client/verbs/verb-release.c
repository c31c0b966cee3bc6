/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/launch/session.h"
#include "client/verbs/verb.h"

int run_release(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(json_freep) struct json_object *map = NULL;
	uint64_t id;
	int r;

	r = session_id(command, command->rest[0], &id);
	if (r == EXIT_OK)
		r = session_open(command, &session);
	if (r != EXIT_OK)
		return r;

	session_administer(&session);
	r = gpuarb_release(session.gpuarb, id);
	if (r < 0)
		return fail_lease(command, session.gpuarb, r, id);

	if (!command->json) {
		print_line(stdout, "lease %" PRIu64 " released", id);
		return EXIT_OK;
	}
	map = json_map(NULL, NULL);
	json_number(map, "released", id);
	json_print(stdout, map);
	return EXIT_OK;
}
