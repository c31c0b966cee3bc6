/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/launch/session.h"
#include "client/verbs/verb.h"
#include "client/output/findings.h"

static const char *const results[] = {
	[VERIFY_OK] = "ok",
	[VERIFY_NOTE] = "note",
	[VERIFY_DRIFT] = "drift",
};

/* Checks everything, or one lease and its GPUs. */
static void check(struct verify *verify, const struct gpuarb_lease_info *only)
{
	for (size_t i = 0; i < verify->n_gpus; i++)
		if (!only || partition_on_gpu(only, verify->gpus[i].name))
			verify_gpu(verify, &verify->gpus[i]);
	for (size_t i = 0; i < verify->n_leases; i++)
		if (!only || only == &verify->leases[i])
			verify_lease(verify, i);
}

static void print_json(const struct verify *verify)
{
	struct json_object *list = json_list(NULL, NULL);

	JSON_ADD_ROWS(list, row, at < verify->n_findings ? &verify->findings[at] : NULL,
		      ("lease", row->lease, 0), ("gpu", row->gpu, ""), ("check", row->check),
		      ("result", results[row->result]), ("found", row->found));
	json_print(stdout, list);
}

static void print_finding(const struct command *command, const struct verify_finding *finding)
{
	bool alarm = command->colour && finding->result == VERIFY_DRIFT;
	char lease[32] = "";

	if (finding->lease > 0)
		snprintf(lease, sizeof(lease), "lease %" PRIu64 "%s", finding->lease,
			 *finding->gpu ? " on " : "");
	fputs(alarm ? COLOUR_ALARM : "", stdout);
	print_line(stdout, "%-5s  %s%s: %s: %s", results[finding->result], lease, finding->gpu,
		   finding->check, finding->found);
	fputs(alarm ? COLOUR_NONE : "", stdout);
}

static int print(const struct command *command, const struct verify *verify)
{
	if (command->json)
		print_json(verify);
	else
		for (size_t i = 0; i < verify->n_findings; i++)
			print_finding(command, &verify->findings[i]);
	return verify_drifts(verify) ? EXIT_DRIFT : EXIT_OK;
}

int run_verify(struct command *command)
{
	_cleanup_(verify_done) struct verify verify = {
		.view = command->view,
		.gpus = command->gpus,
		.n_gpus = command->n_gpus,
		.leases = command->leases,
		.n_leases = command->n_leases,
		.now_usec = lease_clock_usec(),
	};
	_cleanup_(observed_done) struct observed observed = { 0 };
	const struct gpuarb_lease_info *only = NULL;
	int r;

	if (command->id > 0) {
		r = session_lease(command, command->id, &only);
		if (r != EXIT_OK)
			return r;
	}
	if (command->probe)
		return only ? run_probe(command)
			    : fail(command, EXIT_USAGE,
				   "--probe needs a lease: gpuarbctl verify --probe LEASE");
	if (observed_read("/sys", "/proc", &observed) < 0)
		return fail(command, EXIT_FAILED, "out of memory");

	verify.observed = &observed;
	check(&verify, only);
	return print(command, &verify);
}
