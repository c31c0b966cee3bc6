/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-agent LEASE ROOT LISTENING PROCESS READY: started by `gpuarbctl run --adaptable` only.
 * ROOT is the process id of the command. The last three are fds: a listening socket, a pidfd of the
 * command, and a pipe, into which the agent writes one byte when it follows the lease.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libgpuarb/agent/serve.h"

static bool parse_number(const char *text, unsigned long long max, unsigned long long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret <= max;
}

static int report_failure(const struct server *server, int error)
{
	fprintf(stderr, "gpuarb-agent: %s\n",
		server && *gpuarb_last_error(server->follower->gpuarb)
			? gpuarb_last_error(server->follower->gpuarb)
			: strerror(-error));
	return EXIT_FAILURE;
}

/* Detaches from the terminal and the current folder of the user, which the command may outlive. */
static void leave_terminal(const struct server *server)
{
	int null = server->debug ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
	if (chdir("/") < 0)
		return;
}

static int serve(const unsigned long long *values)
{
	_cleanup_(server_freep) struct server *server = NULL;
	const char *debug = getenv(AGENT_DEBUG);
	int ready = (int)values[4], r;

	r = server_new(values[0], (int)values[2], (int)values[3], (pid_t)values[1], &server);
	if (r < 0)
		return report_failure(NULL, r);

	server->environment = getenv("HSA_CU_MASK");
	server->debug = debug && *debug && strcmp(debug, "0") != 0;
	r = server_begin(server);
	if (r < 0)
		return report_failure(server, r);

	leave_terminal(server);
	if (write(ready, "", 1) != 1)
		return EXIT_FAILURE;
	close(ready);
	return server_run(server) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	static const unsigned long long maxima[] = { UINT64_MAX, INT32_MAX, INT32_MAX, INT32_MAX,
						     INT32_MAX };
	unsigned long long values[ARRAY_SIZE(maxima)];
	bool valid = argc == 1 + (int)ARRAY_SIZE(maxima);

	for (size_t i = 0; valid && i < ARRAY_SIZE(maxima); i++)
		valid = parse_number(argv[1 + i], maxima[i], &values[i]);
	if (!valid) {
		fprintf(stderr, "usage: gpuarb-agent LEASE ROOT LISTENING PROCESS READY\n"
				"Do not start it by hand: use gpuarbctl run --adaptable.\n");
		return 2;
	}
	return serve(values);
}
