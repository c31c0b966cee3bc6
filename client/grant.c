/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/grant.h"

#include <inttypes.h>

#include "client/fail.h"
#include "client/json-view.h"
#include "client/print.h"
#include "client/want.h"

void grant_close(struct gpuarb_lease *lease)
{
	gpuarb_lease_close(lease);
}

int grant_reserve(struct command *command, struct session *session, struct gpuarb_lease **ret)
{
	struct gpuarb_want wants[REQUEST_WANTS];
	int r;

	r = want_resolve(command, session, wants);
	if (r == EXIT_OK && !session->gpuarb)
		r = session_open(command, session);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_reserve(session->gpuarb, wants, command->n_asks, &command->options, ret);
	return r < 0 ? fail_asked(command, session->gpuarb, r) : EXIT_OK;
}

static int tell_json(const struct command *command, struct session *session,
		     const struct gpuarb_lease *lease, FILE *out)
{
	_cleanup_(json_freep) struct json_object *map = NULL;
	const struct gpuarb_lease_info *info;
	int r;

	r = session_look(command, session);
	if (r == EXIT_OK)
		r = session_lease(command, session, gpuarb_lease_id(lease), &info);
	if (r != EXIT_OK)
		return r;

	map = json_map(NULL, NULL);
	json_lease_into(map, info);
	json_print(out, map);
	return EXIT_OK;
}

int grant_tell(const struct command *command, struct session *session,
	       const struct gpuarb_lease *lease, const char *before, FILE *out)
{
	char head[64];

	if (command->quiet)
		return EXIT_OK;
	if (command->json)
		return tell_json(command, session, lease, out);

	snprintf(head, sizeof(head), "%slease %" PRIu64 ": ", before, gpuarb_lease_id(lease));
	for (size_t i = 0; i < gpuarb_lease_partitions(lease); i++)
		print_grant(out, head, gpuarb_lease_partition(lease, i));
	fflush(out);
	return EXIT_OK;
}
