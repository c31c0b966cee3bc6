/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"
#include "client/output/json-view.h"
#include "client/output/lease-table.h"
#include "client/launch/session.h"
#include "client/verbs/verb.h"

static void print_json(const struct gpuarb_lease_info *leases, size_t n)
{
	_cleanup_(json_freep) struct json_object *list = json_list(NULL, NULL);

	for (size_t i = 0; i < n; i++)
		json_lease(list, NULL, &leases[i]);
	json_print(stdout, list);
}

int run_list(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	const struct gpuarb_lease_info *leases;
	size_t n;
	int r;

	r = session_look(command, &session);
	if (r != EXIT_OK)
		return r;

	n = gpuarb_view_leases(session.view, &leases);
	if (command->json)
		print_json(leases, n);
	else
		lease_table(command, leases, n);
	return EXIT_OK;
}
