/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/verbs/act.h"
#include "client/output/fail.h"
#include "client/verbs/verb.h"

#define UNDECIDED (-1)

/* One activation, from before it is asked until others have given way. */
struct activation {
	const struct command *command;
	struct session *session;
	uint64_t id;
	bool asked;
	int code; /* or UNDECIDED */
};

/* What the lease is now, to who waits for it. */
static int judge(const struct activation *activation)
{
	const struct gpuarb_lease_info *lease = session_find(activation->session, activation->id);
	const char *reason = lease ? lease->reason : "";

	if (lease && strcmp(lease->state, "granted") == 0)
		return EXIT_OK;
	if (lease && strcmp(lease->state, "activating") == 0)
		return UNDECIDED;
	if (lease && strcmp(lease->state, "inactive") == 0)
		return fail(activation->command, EXIT_FAILED,
			    "lease %" PRIu64 " is inactive "
			    "again%s%s",
			    activation->id, *reason ? ": " : "", reason);
	return fail(activation->command, EXIT_LOST, "lease %" PRIu64 " is lost%s%s", activation->id,
		    *reason ? ": " : "", reason);
}

static int activate(struct activation *activation)
{
	struct gpuarb *gpuarb = activation->session->gpuarb;
	int r = gpuarb_activate(gpuarb, activation->id);

	return r < 0 ? fail_lease(activation->command, gpuarb, r, activation->id) : EXIT_OK;
}

/* Asks when changes are told, so that none is missed, and tells once that it takes a while. */
static int step(struct activation *activation)
{
	bool first = !activation->asked;
	int r = EXIT_OK;

	if (first)
		r = activate(activation);
	activation->asked = true;
	if (r == EXIT_OK)
		r = session_look(activation->command, activation->session);
	if (r == EXIT_OK)
		r = judge(activation);
	if (r == UNDECIDED && first && !activation->command->json)
		act_print(stderr, session_find(activation->session, activation->id));
	return r;
}

static void on_change(const char *kind, const char *what, void *userdata)
{
	struct activation *activation = userdata;
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, activation->id);
	if (strcmp(kind, "watching") != 0 && strcmp(kind, "daemon-back") != 0 &&
	    strcmp(what, id) != 0)
		return;

	activation->code = step(activation);
	if (activation->code != UNDECIDED)
		gpuarb_watch_stop(activation->session->gpuarb);
}

static int activate_and_wait(const struct command *command, struct session *session, uint64_t id)
{
	struct activation activation = {
		.command = command, .session = session, .id = id, .code = UNDECIDED
	};
	const struct gpuarb_lease_info *lease;
	const char *reason;
	int r;

	r = gpuarb_watch(session->gpuarb, command->options.wait_usec, on_change, &activation);
	if (r < 0)
		return fail_asked(command, session->gpuarb, r);
	if (activation.code != UNDECIDED)
		return activation.code;

	lease = session_find(session, id);
	reason = lease ? lease->reason : "";
	return fail(command, EXIT_WAITED, "lease %" PRIu64 " is still activating%s%s", id,
		    *reason ? ": " : "", reason);
}

int run_activate(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	struct activation activation = { .command = command, .session = &session };
	int r;

	r = act_begin(command, &session, &activation.id);
	if (r != EXIT_OK)
		return r;

	r = command->options.wait_usec > 0 ? activate_and_wait(command, &session, activation.id)
					   : activate(&activation);
	return r == EXIT_OK ? act_tell(command, &session, activation.id) : r;
}

int run_deactivate(struct command *command)
{
	_cleanup_(session_done) struct session session = { 0 };
	uint64_t id;
	int r;

	r = act_begin(command, &session, &id);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_deactivate(session.gpuarb, id);
	if (r < 0)
		return fail_lease(command, session.gpuarb, r, id);
	return act_tell(command, &session, id);
}
