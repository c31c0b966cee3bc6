/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/launch/session.h"
#include "client/output/fail.h"
#include "client/output/print.h"
#include "client/rt/command.h"

static int run(struct command *command)
{
	/* rt measure becomes another program, which would not wait for a pager. */
	pid_t pager = session_screen(command, strcmp(command->rest[0], "measure") != 0);
	int r = rt_run(command);

	if (pager > 0)
		pager_finish(pager);
	return r;
}

/* gpuarbctl rt starts this program with its verb and its arguments, which it has checked. */
int main(int argc, char **argv)
{
	struct command command;
	int skip = argc > 1 && strcmp(argv[1], "rt") == 0 ? 2 : 1;

	command_init(&command);
	command.verb = "rt";
	if (options_parse(&command, OPTIONS_MODEL | OPTIONS_RT | OPTIONS_GENERAL, false,
			  argc - skip, argv + skip) < 0)
		return fail(&command, EXIT_USAGE, "%s", command.problem);
	if (command.n_rest < 2)
		return fail(&command, EXIT_USAGE,
			    "missing argument: gpuarbctl rt plan|monitor|measure "
			    "FILE|COMMAND...");
	return session_end(&command, run(&command));
}
