/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-agent LEASE ROOT LISTENING PROCESS READY: started by `gpuarbctl run --adaptable`, and by
 * nobody else. ROOT is the number of the process that the command becomes; the last three are fds:
 * a socket that listens, a pidfd of the root, and a pipe that takes a byte when all is well.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libgpuarb/agent/serve.h"

static bool number(const char *text, unsigned long long most, unsigned long long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *ret <= most;
}

static int complain(const struct server *server, int error)
{
	fprintf(stderr, "gpuarb-agent: %s\n",
		server && *gpuarb_last_error(server->follower->gpuarb)
			? gpuarb_last_error(server->follower->gpuarb)
			: strerror(-error));
	return EXIT_FAILURE;
}

/* From here on it is nobody's: what the user types, and the end of his session, are not for it. */
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
		return complain(NULL, r);

	server->environment = getenv("HSA_CU_MASK");
	server->debug = debug && *debug && strcmp(debug, "0") != 0;
	r = server_begin(server);
	if (r < 0)
		return complain(server, r);

	leave_terminal(server);
	if (write(ready, "", 1) != 1)
		return EXIT_FAILURE;
	close(ready);
	return server_run(server) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	static const unsigned long long most[] = { UINT64_MAX, INT32_MAX, INT32_MAX, INT32_MAX,
						   INT32_MAX };
	unsigned long long values[ARRAY_SIZE(most)];
	bool valid = argc == 1 + (int)ARRAY_SIZE(most);

	for (size_t i = 0; valid && i < ARRAY_SIZE(most); i++)
		valid = number(argv[1 + i], most[i], &values[i]);
	if (!valid) {
		fprintf(stderr, "gpuarb-agent is started by gpuarbctl run --adaptable, "
				"and takes LEASE ROOT LISTENING PROCESS READY\n");
		return 2;
	}
	return serve(values);
}
