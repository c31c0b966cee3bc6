/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "client/fail.h"
#include "client/json-view.h"
#include "client/print.h"
#include "client/verb.h"
#include "client/want.h"

static void print_json(const struct gpuarb *gpuarb, const char *verdict,
		       const struct gpuarb_partition *partitions, size_t n)
{
	_cleanup_(json_freep) struct json_object *map = json_map(NULL, NULL);
	struct json_object *list;

	json_text(map, "verdict", verdict);
	list = json_list(map, "partitions");
	for (size_t i = 0; i < n; i++)
		json_partition(list, NULL, &partitions[i]);
	json_refusals(map, "refusals", gpuarb);
	json_print(stdout, map);
}

int run_plan(struct command *command)
{
	_cleanup_(session_done) struct session session = {0};
	const struct gpuarb_partition *partitions;
	struct gpuarb_want wants[REQUEST_WANTS];
	const char *verdict;
	size_t n;
	int r;

	r = want_resolve(command, &session, wants);
	if (r == EXIT_OK && !session.gpuarb)
		r = session_open(command, &session);
	if (r != EXIT_OK)
		return r;

	do {
		r = gpuarb_plan(session.gpuarb, wants, command->n_asks, &command->options,
				&verdict);
	} while (r >= 0 && strcmp(verdict, "refused") == 0 &&
		 want_ask_less(command, session.gpuarb, wants));
	if (r < 0)
		return fail_asked(command, session.gpuarb, r);

	partitions = gpuarb_last_plan(session.gpuarb, &n);
	if (command->json) {
		print_json(session.gpuarb, verdict, partitions, n);
	} else {
		print_line(stdout, "%s", verdict);
		for (size_t i = 0; i < n; i++)
			print_grant(stdout, "  ", &partitions[i]);
		fail_print_refusals(stdout, session.gpuarb);
	}
	return strcmp(verdict, "granted") == 0 ? EXIT_OK : EXIT_REFUSED;
}
