/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/verbs/act.h"

#include <inttypes.h>

#include "client/output/fail.h"
#include "client/output/json-view.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"

int act_begin(const struct command *command, struct session *session, uint64_t *ret_id)
{
	int r;

	r = session_id(command, command->rest[0], ret_id);
	if (r == EXIT_OK)
		r = session_open(command, session);
	if (r == EXIT_OK)
		session_administer(session);
	return r;
}

void act_print(FILE *out, const struct gpuarb_lease_info *lease)
{
	char why[256];

	lease_text_why(lease->state, lease->position, lease->reason, lease->deadline, why,
		       sizeof(why));
	print_line(out, "lease %" PRIu64 ": %s%s%s", lease->id, lease->state, *why ? ": " : "",
		   why);
}

int act_tell(const struct command *command, struct session *session, uint64_t id)
{
	_cleanup_(json_freep) struct json_object *map = NULL;
	const struct gpuarb_lease_info *lease;
	int r;

	r = session_look(command, session);
	if (r == EXIT_OK)
		r = session_lease(command, session, id, &lease);
	if (r != EXIT_OK)
		return r;

	if (!command->json) {
		act_print(stdout, lease);
		return EXIT_OK;
	}
	map = json_map(NULL, NULL);
	json_lease_into(map, lease);
	json_print(stdout, map);
	return EXIT_OK;
}
