/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/launch/grant.h"
#include "client/launch/session.h"
#include "client/launch/wants.h"
#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/output/lease-table.h"
#include "client/output/list.h"
#include "client/verbs/verb.h"

static void act_print(FILE *out, const struct gpuarb_lease_info *lease)
{
	char why[256];

	lease_text_why(lease->state, lease->position, lease->reason, lease->deadline, why,
		       sizeof(why));
	print_line(out, "lease %" PRIu64 ": %s%s%s", lease->id, lease->state, *why ? ": " : "",
		   why);
}

static int act_tell(struct command *command)
{
	const struct gpuarb_lease_info *lease;
	int r;

	r = session_snapshot(command);
	if (r == EXIT_OK)
		r = session_lease(command, command->id, &lease);
	if (r != EXIT_OK)
		return r;

	if (command->json)
		json_print_lease(stdout, lease);
	else
		act_print(stdout, lease);
	return EXIT_OK;
}

/* A failed change of the lease that the user typed: the daemon names its owner by number. */
static int fail_change(struct command *command, int error)
{
	_cleanup_(freep) char *sentence = strdup(gpuarb_last_error(command->gpuarb));
	const struct gpuarb_lease_info *lease;
	char owner[PRINT_USER];
	size_t refusals;

	gpuarb_last_refusals(command->gpuarb, &refusals);
	if (error != -EACCES || command->json || refusals > 0)
		return fail_lease(command, error);
	lease = session_refresh(command) >= 0 ? session_find(command, command->id) : NULL;
	if (!lease || lease->owner_uid == geteuid())
		return fail(command, EXIT_FORBIDDEN, "%s", sentence ? sentence : "");
	print_user(lease->owner_uid, owner);
	return fail(command, EXIT_FORBIDDEN,
		    "lease %" PRIu64
		    " belongs to %s: only its owner and administrators can change it",
		    lease->id, owner);
}

/* ---- release -------------------------------------------------------------------------------- */

int run_release(struct command *command)
{
	struct json_object *map;
	int r = gpuarb_release(command->gpuarb, command->id);

	if (r < 0)
		return fail_change(command, r);
	if (command->json) {
		map = json_map(NULL, NULL);
		json_number(map, "released", command->id);
		json_print(stdout, map);
	} else {
		print_line(stdout, "lease %" PRIu64 " released", command->id);
	}
	return EXIT_OK;
}

/* ---- revoke --------------------------------------------------------------------------------- */

/* lease NULL: it has ended, because it had no grace or its holder acknowledged. */
static void print_revoked(const struct command *command, const struct gpuarb_lease_info *lease)
{
	struct json_object *map;

	if (command->json) {
		map = json_map(NULL, NULL);
		JSON_FIELDS(map, ("revoked", command->id),
			    ("deadline", lease ? lease->deadline : GPUARB_FOREVER, GPUARB_FOREVER));
		json_print(stdout, map);
	} else if (lease) {
		act_print(stdout, lease);
	} else {
		print_line(stdout, "lease %" PRIu64 " has ended", command->id);
	}
}

static int revoke_one(struct command *command)
{
	uint64_t grace = command->now ? 0 : command->grace_usec;
	int r = command->now
			? gpuarb_terminate(command->gpuarb, command->id, grace, command->reason)
			: gpuarb_revoke(command->gpuarb, command->id, grace, command->reason);

	if (r < 0)
		return fail_lease(command, r);
	r = session_snapshot(command);
	if (r == EXIT_OK)
		print_revoked(command, session_find(command, command->id));
	return r;
}

/* The leases that the options choose; for free(), NULL: none. */
static uint64_t *find_chosen(const struct command *command, size_t *ret_n)
{
	uint64_t *ids = calloc(command->n_leases + 1, sizeof(*ids));

	*ret_n = 0;
	for (size_t i = 0; ids && i < command->n_leases; i++)
		if (lease_is_listed(command, &command->leases[i]) &&
		    strcmp(command->leases[i].state, "ending") != 0)
			ids[(*ret_n)++] = command->leases[i].id;
	return ids;
}

static bool may_revoke(const struct command *command, size_t n)
{
	char answer[8] = "";

	if (command->yes)
		return true;
	if (!isatty(STDIN_FILENO)) {
		print_line(stderr,
			   "nothing was revoked; --yes revokes %zu lease%s without a question", n,
			   print_s(n));
		return false;
	}
	lease_table(command);
	printf("Revoke %zu lease%s? [y/N] ", n, print_s(n));
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Programs that do not end in time are killed: this is for an emergency. One that has ended since is none
 * that failed. */
static int revoke_each(struct command *command, const uint64_t *ids, size_t n)
{
	uint64_t grace = command->now ? 0 : command->grace_usec;
	int code = EXIT_OK;

	for (size_t i = 0; i < n; i++) {
		int r = gpuarb_terminate(command->gpuarb, ids[i], grace, command->reason);

		command->id = ids[i];
		if (r < 0 && r != -ENOENT && r != -EBADFD)
			code = fail_lease(command, r);
		if (r == -EACCES)
			return code;
	}
	if (session_snapshot(command) != EXIT_OK)
		return EXIT_ABSENT;
	for (size_t i = 0; i < n; i++) {
		command->id = ids[i];
		print_revoked(command, session_find(command, ids[i]));
	}
	return code;
}

static int revoke_many(struct command *command)
{
	_cleanup_(freep) uint64_t *ids = NULL;
	size_t n;
	int r = session_snapshot(command);

	if (r == EXIT_OK)
		r = list_check(command, NULL);
	if (r != EXIT_OK)
		return r;
	ids = find_chosen(command, &n);
	if (n == 0) {
		print_line(stderr, "there is no such lease");
		return EXIT_OK;
	}
	return may_revoke(command, n) ? revoke_each(command, ids, n) : EXIT_REFUSED;
}

int run_revoke(struct command *command)
{
	bool many = command->all || command->filter.user || command->filter.tenant ||
		    command->filter.gpu;

	if (many == (command->n_rest > 0))
		return fail(command, EXIT_USAGE,
			    "revoke takes a lease, or --user, --tenant, --gpu or --all");
	return many ? revoke_many(command) : revoke_one(command);
}

/* ---- waiting for changes of a lease ---------------------------------------------------------- */

#define UNDECIDED (-1)

struct await {
	struct command *command;
	int (*request)(struct command *command); /* NULL: it was made before */
	/* The exit code by the state of the lease in the last snapshot, or UNDECIDED. */
	int (*decide)(const struct command *command, bool first);
	bool began;
	int code; /* or UNDECIDED */
};

/* Makes the request only once the watch reports changes, so that none is missed. */
static void on_change(const char *kind, const char *what, void *userdata)
{
	struct await *await = userdata;
	struct command *command = await->command;
	bool first = !await->began;
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, command->id);
	if (strcmp(kind, "watching") != 0 && strcmp(kind, "daemon-back") != 0 &&
	    strcmp(what, id) != 0)
		return;

	await->began = true;
	await->code = first && await->request ? await->request(command) : EXIT_OK;
	if (await->code == EXIT_OK)
		await->code = session_snapshot(command);
	if (await->code == EXIT_OK)
		await->code = await->decide(command, first);
	if (await->code != UNDECIDED)
		gpuarb_watch_stop(command->gpuarb);
}

/* An exit code, or UNDECIDED after so long. */
static int await_lease(struct command *command, uint64_t usec,
		       int (*request)(struct command *command),
		       int (*decide)(const struct command *command, bool first))
{
	struct await await = { command, request, decide, false, UNDECIDED };
	int r = gpuarb_watch(command->gpuarb, usec, on_change, &await);

	if (r < 0)
		return fail_asked(command, r);
	return await.began ? await.code : fail(command, EXIT_WAITED, "gpuarbd does not answer");
}

/* ---- activate and deactivate ---------------------------------------------------------------- */

/* Prints once that the activation takes a while. */
static int decide_activation(const struct command *command, bool first)
{
	const struct gpuarb_lease_info *lease = session_find(command, command->id);
	const char *reason = lease ? lease->reason : "";

	if (lease && strcmp(lease->state, "granted") == 0)
		return EXIT_OK;
	if (lease && strcmp(lease->state, "activating") == 0) {
		if (first && !command->json)
			act_print(stderr, lease);
		return UNDECIDED;
	}
	if (lease && strcmp(lease->state, "inactive") == 0)
		return fail(command, EXIT_FAILED, "lease %" PRIu64 " is inactive again%s%s",
			    command->id, *reason ? ": " : "", reason);
	return fail(command, EXIT_LOST, "lease %" PRIu64 " is lost%s%s", command->id,
		    *reason ? ": " : "", reason);
}

static int activate(struct command *command)
{
	int r = gpuarb_activate(command->gpuarb, command->id);

	return r < 0 ? fail_change(command, r) : EXIT_OK;
}

static int activate_and_wait(struct command *command)
{
	const struct gpuarb_lease_info *lease;
	const char *reason;
	int r = await_lease(command, command->options.wait_usec, activate, decide_activation);

	if (r != UNDECIDED)
		return r;
	lease = session_find(command, command->id);
	reason = lease ? lease->reason : "";
	return fail(command, EXIT_WAITED, "lease %" PRIu64 " is still activating%s%s", command->id,
		    *reason ? ": " : "", reason);
}

int run_activate(struct command *command)
{
	int r = command->options.wait_usec > 0 ? activate_and_wait(command) : activate(command);

	return r == EXIT_OK ? act_tell(command) : r;
}

int run_deactivate(struct command *command)
{
	int r = gpuarb_deactivate(command->gpuarb, command->id);

	return r < 0 ? fail_change(command, r) : act_tell(command);
}

/* ---- resize --------------------------------------------------------------------------------- */

/* An agent acknowledges within some milliseconds. */
#define RESIZE_PATIENCE_USEC 500000U

static void print_grants(const struct command *command, const struct gpuarb_lease_info *lease)
{
	char head[40];

	if (command->json) {
		json_print_lease(stdout, lease);
		return;
	}
	snprintf(head, sizeof(head), "lease %" PRIu64 ": ", lease->id);
	for (size_t i = 0; i < lease->n_partitions; i++)
		print_grant(stdout, head, &lease->partitions[i]);
}

static int decide_resize(const struct command *command, bool)
{
	const struct gpuarb_lease_info *lease;
	int r = session_lease(command, command->id, &lease);

	return r == EXIT_OK && *lease->reason ? UNDECIDED : r;
}

/* Prints what the lease has. If its agent does not acknowledge that soon, says what it waits for. */
static int print_resized(struct command *command)
{
	const struct gpuarb_lease_info *lease;
	int r = await_lease(command, RESIZE_PATIENCE_USEC, NULL, decide_resize);

	if (r == UNDECIDED || r == EXIT_OK)
		r = session_lease(command, command->id, &lease);
	if (r != EXIT_OK)
		return r;
	print_grants(command, lease);
	if (*lease->reason && !command->json)
		printf("lease %" PRIu64 ": %s\n", lease->id, lease->reason);
	return EXIT_OK;
}

int run_resize(struct command *command)
{
	struct gpuarb_want wants[REQUEST_WANTS];
	const struct gpuarb_lease_info *lease;
	int r;

	if (command->wants[0].given == 0)
		return fail(command, EXIT_USAGE,
			    "no change requested: use an option such as --cus=N");
	r = session_snapshot(command);
	if (r == EXIT_OK)
		r = session_lease(command, command->id, &lease);
	if (r == EXIT_OK)
		r = want_resolve_resize(command, lease, wants);
	if (r == EXIT_OK)
		r = session_administer(command);
	if (r != EXIT_OK)
		return r;

	r = gpuarb_resize(command->gpuarb, command->id, wants, command->n_wants);
	if (r < 0) {
		r = fail_change(command, r);
		if (!command->json)
			refusal_help(command, false, stderr);
		return r;
	}

	return print_resized(command);
}
