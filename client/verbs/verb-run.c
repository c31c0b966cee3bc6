/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/launch/adapt.h"
#include "client/output/fail.h"
#include "client/launch/grant.h"
#include "client/output/print.h"
#include "client/output/lease-text.h"
#include "client/verbs/verb.h"
#include "core/policy/class.h"

#define PREFIX "gpuarbctl run: " /* standard error is shared with the command */

/* glibc has no pidfd_open() before 2.36. */
static int open_self(void)
{
	return (int)syscall(SYS_pidfd_open, getpid(), 0U);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Sets "NAME=value" and unsets "NAME". The strings live until exec. */
static int apply_environment(char **variables)
{
	for (; *variables; variables++) {
		char *equals = strchr(*variables, '=');

		if (!equals) {
			if (unsetenv(*variables) < 0)
				return -errno;
			continue;
		}
		*equals = '\0';
		if (setenv(*variables, equals + 1, 1) < 0)
			return -errno;
	}
	return 0;
}

static int set_environment(const struct command *command, const struct session *session,
			   struct gpuarb_lease *lease)
{
	char **variables = NULL;
	int r;

	r = gpuarb_lease_environment(lease, &variables);
	if (r < 0)
		return fail_asked(command, session->gpuarb, r);

	r = apply_environment(variables);
	free(variables);
	return r < 0 ? fail(command, EXIT_FAILED, "cannot set the environment of the command: %s",
			    strerror(-r))
		     : EXIT_OK;
}

/* No environment variable sets the priority of queues. */
static void print_priority(const struct gpuarb_lease *lease)
{
	char buf[PRIORITY_NAME];

	for (size_t i = 0; i < gpuarb_lease_partitions(lease); i++) {
		if (gpuarb_lease_priority(lease, i) == PRIORITY_NORMAL)
			continue;
		print_line(stderr,
			   PREFIX "lease %" PRIu64 ": priority: normal (asked %s): the program "
				  "must set its own priority",
			   gpuarb_lease_id(lease),
			   priority_name(gpuarb_lease_priority(lease, i), buf));
		return;
	}
}

/* Reserves a lease bound to this process, sets the environment, and starts the agent of an
 * adaptable lease. */
static int take_lease(struct command *command, const struct adapt *adapt, int self)
{
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(grant_closep) struct gpuarb_lease *lease = NULL;
	int r;

	r = grant_reserve(command, &session, PREFIX, &lease);
	if (r == EXIT_OK)
		r = set_environment(command, &session, lease);
	if (r == EXIT_OK && command->options.adaptable)
		r = adapt_start(command, adapt, gpuarb_lease_id(lease), self);
	if (r == EXIT_OK)
		r = grant_print(command, &session, lease, PREFIX, stderr);
	if (r == EXIT_OK && !command->quiet && !command->json)
		print_priority(lease);
	return r;
}

/* Leaves no descriptor of gpuarb open: the program may close all that it finds. */
static int lease_self(struct command *command)
{
	struct adapt adapt;
	int self, r = EXIT_OK;

	if (command->options.adaptable)
		r = adapt_check(command, &adapt);
	if (r != EXIT_OK)
		return r;
	self = open_self();
	if (self < 0)
		return fail(command, EXIT_FAILED,
			    "cannot bind the lease to this process: pidfd_open: %s",
			    strerror(errno));

	command->options.process_fd = self;
	if (!command->options.name)
		command->options.name = base_name(command->rest[0]);
	r = take_lease(command, &adapt, self);
	close(self);
	return r;
}

int run_run(struct command *command)
{
	int error;

	/* Without the lease the program does not start. */
	if (lease_self(command) != EXIT_OK)
		return EXIT_RUN_FAILED;

	execvp(command->rest[0], command->rest);
	error = errno;
	return fail(command, error == ENOENT ? EXIT_RUN_NOT_FOUND : EXIT_RUN_CANNOT,
		    "cannot start %s: %s", command->rest[0], strerror(error));
}
