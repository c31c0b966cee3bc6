/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "client/verbs/act.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"

/* It may have ended by now: without a grace, or as its holder acknowledged. */
static void tell(const struct command *command, uint64_t id, const struct gpuarb_lease_info *lease)
{
	_cleanup_(json_freep) struct json_object *map = NULL;

	if (command->json) {
		map = json_map(NULL, NULL);
		json_number(map, "revoked", id);
		if (lease && lease->deadline != GPUARB_FOREVER)
			json_number(map, "deadline", lease->deadline);
		else
			json_null(map, "deadline");
		json_print(stdout, map);
	} else if (lease) {
		act_print(stdout, lease);
	} else {
		print_line(stdout, "lease %" PRIu64 " has ended", id);
	}
}

int run_revoke(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	uint64_t id;
	int r;

	r = act_begin(command, &session, &id);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_revoke(session.gpuarb, id, command->grace_usec, command->reason);
	if (r < 0)
		return fail_lease(command, session.gpuarb, r, id);

	r = session_look(command, &session);
	if (r == EXIT_OK)
		tell(command, id, session_find(&session, id));
	return r;
}
