/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/memory-cap.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "client/launch/grant.h"
#include "client/launch/wants.h"
#include "core/policy/caller.h"

#define ADVICE_MAX 64U

static void print_each(const uint64_t *leases, size_t n, const char *effect)
{
	for (size_t i = 0; i < n; i++)
		print_line(stdout, "  lease %" PRIu64 " %s", leases[i], effect);
}

/* What the request would take from other leases, and how long that takes. */
static void print_effects(const struct gpuarb *gpuarb)
{
	const struct gpuarb_effects *effects = gpuarb_last_plan_effects(gpuarb);

	if (!effects)
		return;
	print_each(effects->moves, effects->n_moves, "would move to other CUs");
	for (size_t i = 0; i < effects->n_shrinks; i++)
		print_line(stdout, "  lease %" PRIu64 " would shrink from %u to %u CUs on %s",
			   effects->shrinks[i].lease, effects->shrinks[i].from_cus,
			   effects->shrinks[i].to_cus, effects->shrinks[i].gpu);
	print_each(effects->pauses, effects->n_pauses,
		   "would be paused while the new lease is active");
	print_each(effects->revokes, effects->n_revokes, "would be revoked");
	if (effects->within_usec == GPUARB_FOREVER)
		print_line(stdout,
			   "  the time until the grant has no limit: their tenants do not have "
			   "enforce = kill");
	else
		print_line(stdout, "  the grant follows within %.1f s",
			   (double)effects->within_usec / 1e6);
}

/* A cap of this program's cgroup, which holds for what it starts as well. */
static void print_cap(const struct gpuarb_partition *partition)
{
	char text[MEMORY_CAP_TEXT];
	uint64_t bytes = 0;

	if (memory_cap_read("", partition->gpu, getpid(), &bytes) != MEMORY_CAP_SET)
		return;
	memory_cap_text(MEMORY_CAP_SET, bytes, text);
	print_line(stdout, "  vram: %s", text);
}

static void print_duration(const struct gpuarb *gpuarb)
{
	uint64_t seconds = gpuarb_last_plan_duration(gpuarb) / 1000000;
	char span[LEASE_TEXT_AGE];

	if (seconds == 0)
		return;
	lease_text_span(seconds, span);
	print_line(stdout, "  for %s at the most", span);
}

static void print_json(const struct gpuarb *gpuarb, const char *result,
		       const struct gpuarb_partition *partitions, size_t n)
{
	struct json_object *map = json_map(NULL, NULL), *list;

	json_text(map, "verdict", result);
	list = json_list(map, "partitions");
	for (size_t i = 0; i < n; i++)
		json_partition(list, &partitions[i]);
	json_known(map, "duration_usec", gpuarb_last_plan_duration(gpuarb), 0);
	json_effects(map, gpuarb);
	json_refusals(map, gpuarb);
	json_print(stdout, map);
}

/* Leases whose end would make room. A new snapshot has their owners. */
static void print_advice(struct command *command)
{
	const struct gpuarb_refusal *refusals;
	const struct gpuarb_lease_info *lease;
	uint64_t ids[ADVICE_MAX];
	bool exact;
	size_t n;

	refusals = gpuarb_last_refusals(command->gpuarb, &n);
	if (n == 0 || refusals[0].n_end == 0 || refusals[0].n_end > ADVICE_MAX)
		return;
	n = refusals[0].n_end;
	exact = refusals[0].end_exact;
	memcpy(ids, refusals[0].end, n * sizeof(*ids));

	print_line(stdout,
		   "  the request would fit if %s ended%s:", n == 1 ? "this lease" : "these leases",
		   exact ? "" : " (a cheaper choice may exist)");
	if (session_snapshot(command) != EXIT_OK)
		return;
	for (size_t i = 0; i < n; i++)
		if (session_lease(command, ids[i], &lease) == EXIT_OK)
			refusal_help_lease(stdout, command, lease);
}

int run_plan(struct command *command)
{
	static struct caller user;
	const struct gpuarb_partition *partitions;
	struct gpuarb_want wants[REQUEST_WANTS];
	const char *result;
	bool granted;
	size_t n;
	int r;

	if (command->groups && !command->filter.user)
		return fail(command, EXIT_USAGE, "--group needs --user");
	r = want_resolve(command, wants);
	if (r == EXIT_OK && command->filter.user)
		r = caller_find(command, &user);
	if (r != EXIT_OK)
		return r;

	gpuarb_set_interactive(command->gpuarb, command->filter.user && isatty(STDIN_FILENO));
	r = grant_plan(command, wants, command->filter.user ? &user : NULL, &result);
	if (r < 0)
		return fail_asked(command, r);

	granted = strcmp(result, "granted") == 0;
	partitions = gpuarb_last_plan(command->gpuarb, &n);
	if (command->json) {
		print_json(command->gpuarb, result, partitions, n);
	} else {
		print_line(stdout, "%s", result);
		for (size_t i = 0; i < n; i++) {
			print_grant(stdout, "  ", &partitions[i]);
			print_pause(stdout, "  ", &partitions[i]);
			print_cap(&partitions[i]);
		}
		print_duration(command->gpuarb);
		fail_print_refusals(stdout, command->gpuarb);
		print_effects(command->gpuarb);
		if (!granted && !gpuarb_last_plan_effects(command->gpuarb))
			refusal_help(command, false, stdout);
		if (!gpuarb_last_plan_effects(command->gpuarb))
			print_advice(command);
	}
	return granted ? EXIT_OK : EXIT_REFUSED;
}
