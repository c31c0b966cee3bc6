/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"
#include "client/launch/latency-start.h"
#include "client/verbs/verb.h"

int run_latency(struct command *command)
{
	if (command->json && command->svg)
		return fail(command, EXIT_USAGE, "--json and --svg: one or the other");
	return latency_start(command);
}
