/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/print.h"
#include "client/launch/session.h"
#include "client/verbs/verb.h"

static void print_event(const char *kind, const char *what, void *userdata)
{
	const struct command *command = userdata;
	_cleanup_(json_freep) struct json_object *event = NULL;

	if (!command->json) {
		print_line(stdout, "%s%s%s", kind, *what ? " " : "", what);
		fflush(stdout);
		return;
	}
	event = json_map(NULL, NULL);
	json_text(event, "event", kind);
	json_text(event, "what", *what ? what : NULL);
	json_print_line(stdout, event);
}

int run_monitor(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	int r;

	/* A daemon that is not there is told at once, not waited for. */
	r = session_look(command, &session);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_watch(session.gpuarb, GPUARB_FOREVER, print_event, command);
	return r < 0 ? fail_asked(command, session.gpuarb, r) : EXIT_OK;
}
