/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "client/output/fail.h"
#include "client/output/json-view.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "client/options/want-options.h"

static void tell(const struct command *command, const struct gpuarb_lease_info *lease)
{
	_cleanup_(json_freep) struct json_object *map = NULL;
	char head[40];

	if (command->json) {
		map = json_map(NULL, NULL);
		json_lease_into(map, lease);
		json_print(stdout, map);
		return;
	}
	snprintf(head, sizeof(head), "lease %" PRIu64 ": ", lease->id);
	for (size_t i = 0; i < lease->n_partitions; i++)
		print_grant(stdout, head, &lease->partitions[i]);
}

int run_resize(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	struct gpuarb_want wants[REQUEST_WANTS];
	const struct gpuarb_lease_info *lease;
	uint64_t id;
	int r;

	r = session_id(command, command->rest[0], &id);
	if (r == EXIT_OK && command->asks[0].given == 0)
		r = fail(command, EXIT_USAGE, "nothing to change; --cus=N is one way to say what");
	if (r == EXIT_OK)
		r = session_look(command, &session);
	if (r == EXIT_OK)
		r = session_lease(command, &session, id, &lease);
	if (r == EXIT_OK)
		r = want_resolve_resize(command, &session, lease, wants);
	if (r != EXIT_OK)
		return r;

	session_administer(&session);
	r = gpuarb_resize(session.gpuarb, id, wants, command->n_asks);
	if (r < 0)
		return fail_lease(command, session.gpuarb, r, id);

	r = session_look(command, &session);
	if (r == EXIT_OK)
		r = session_lease(command, &session, id, &lease);
	if (r == EXIT_OK)
		tell(command, lease);
	return r;
}
