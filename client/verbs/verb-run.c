/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/launch/grant.h"
#include "client/launch/program.h"
#include "client/launch/supervisor.h"
#include "client/launch/wants.h"
#include "client/launch/agent-start.h"
#include "client/output/fail.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/verbs/verb.h"
#include "core/policy/class.h"
#include "util/fd.h"
#include "util/text.h"

#define PREFIX "gpuarbctl run: " /* standard error is shared with the command */
#define PRELOAD "LD_PRELOAD"
#define ASAN "ASAN_OPTIONS"

/*
 * The agent gives the queues of an unmodified command the priority of its lease, and makes it follow an adaptable one: LD_PRELOAD loads libgpuarb-agent
 * into the command and its children, and the process gpuarb-agent sends them each new mask.
 */
struct adapt {
	char library[PATH_MAX], program[PATH_MAX];
	char why[3 * PATH_MAX]; /* it cannot be loaded; "": it can */
};

/* ---- checks ------------------------------------------------------------------------------ */

const char *run_library_dir(void)
{
	return agent_dir(GPUARB_AGENT_LIBRARY_DIR);
}

static void find_parts(bool musl, struct adapt *ret)
{
	snprintf(ret->library, sizeof(ret->library), "%s/libgpuarb-agent%s.so", run_library_dir(),
		 musl ? "-musl" : "");
	snprintf(ret->program, sizeof(ret->program), "%s/gpuarb-agent",
		 agent_dir(GPUARB_AGENT_PROGRAM_DIR));
	if (ret->library[0] != '/' || strpbrk(ret->library, " :"))
		snprintf(ret->why, sizeof(ret->why),
			 "cannot load %s: LD_PRELOAD needs an absolute path without spaces and "
			 "colons",
			 ret->library);
	else if (access(ret->library, R_OK) < 0 || access(ret->program, X_OK) < 0)
		snprintf(ret->why, sizeof(ret->why),
			 "cannot use %s and %s: %s; install all of gpuarb, or set GPUARB_AGENT_DIR "
			 "to the directory of both",
			 ret->library, ret->program, strerror(errno));
}

/* Finds the agent and inspects the command. */
static void find_agent(const struct command *command, struct adapt *ret)
{
	bool musl;

	ret->why[0] = '\0';
	if (command->options.token)
		snprintf(ret->why, sizeof(ret->why),
			 "several commands with --token=%s share the lease, and each would "
			 "acknowledge masks for all",
			 command->options.token);
	else if (program_preloads(command->rest[0], &musl, ret->why, sizeof(ret->why)))
		find_parts(musl, ret);
}

/* Queues have the priority of their lease where the agent is. */
static void choose_priority(struct command *command, const struct adapt *adapt)
{
	for (size_t i = 0; i < command->n_wants && !*adapt->why; i++)
		if (command->wants[i].want.priority == GPUARB_PRIORITY_DEFAULT)
			command->wants[i].want.priority = GPUARB_PRIORITY_BY_CLASS;
}

/* Before the lease is requested: whether it is to be adaptable. */
static int choose_adaptable(struct command *command, struct adapt *ret)
{
	const char *lease_class = command->options.lease_class;
	bool asked = command->options.adaptable;
	bool besteffort = !lease_class || strcmp(lease_class, "besteffort") == 0;

	if (command->options.requeue && command->options.token)
		return fail(command, EXIT_RUN_FAILED,
			    "--requeue and --token exclude each other: several commands with "
			    "--token=%s share the lease, and each would return it for all",
			    command->options.token);
	if (asked && command->fixed)
		return fail(command, EXIT_RUN_FAILED, "--adaptable and --fixed exclude each other");
	if (asked && !besteffort)
		return fail(
			command, EXIT_RUN_FAILED,
			"--adaptable and --class=%s exclude each other: only best effort leases "
			"grow and shrink",
			lease_class);
	if (command->fixed)
		return EXIT_OK;
	find_agent(command, ret);
	choose_priority(command, ret);
	if (!asked && (!besteffort || command->options.start_inactive))
		return EXIT_OK;
	if (!asked)
		command->fixed_reason = ret->why;
	else if (*ret->why)
		return fail(command, EXIT_RUN_FAILED,
			    "--adaptable: %s; run it without --adaptable, or let the program use "
			    "libgpuarb",
			    ret->why);
	return EXIT_OK;
}

/* ---- the socket -------------------------------------------------------------------------- */

/* The variable can name a directory of another machine, as in a job of Slurm. */
static int listen_on_file(uint64_t lease, char name[static AGENT_SOCKET])
{
	const char *const dirs[] = { getenv("XDG_RUNTIME_DIR"), "/tmp" };
	int fd = -ENOENT;

	for (size_t i = 0; fd < 0 && fd != -EIO && i < ARRAY_SIZE(dirs); i++)
		if (dirs[i])
			fd = agent_socket_make(dirs[i], lease, name);
	return fd;
}

/* gpuarb-agent listens twice under one name: a process in another network namespace does not reach the abstract socket,
 * and one in another mount namespace may not see the file. Without a file the abstract socket is there twice. */
static int make_sockets(uint64_t lease, char name[static AGENT_SOCKET], int fds[static 2])
{
	int r;

	fds[0] = listen_on_file(lease, name);
	if (fds[0] == -EIO)
		return fds[0];
	fds[1] = agent_socket_listen(name, false);
	if (fds[0] < 0 && fds[1] >= 0)
		fds[0] = fcntl(fds[1], F_DUPFD_CLOEXEC, 0);
	r = fds[1] < 0 ? fds[1] : fds[0] < 0 ? -errno : 0;
	for (size_t i = 0; r < 0 && i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return r;
}

/* ---- the environment --------------------------------------------------------------------- */

static int preload(const struct adapt *adapt, const char *name)
{
	const char *before = getenv(PRELOAD);
	const char *asan = getenv(ASAN);
	_cleanup_(freep) char *value = NULL, *options = NULL;

	if (asprintf(&value, "%s%s%s", adapt->library, before && *before ? ":" : "",
		     before ? before : "") < 0 ||
	    /* gcc's address sanitizer otherwise refuses to be loaded second. */
	    asprintf(&options, "%s%sverify_asan_link_order=0", asan ? asan : "",
		     asan && *asan ? ":" : "") < 0)
		return -ENOMEM;
	if (setenv(PRELOAD, value, 1) < 0 || setenv(AGENT_VARIABLE, name, 1) < 0 ||
	    setenv(ASAN, options, 1) < 0)
		return -errno;
	return 0;
}

/* Starts gpuarb-agent for the lease and sets LD_PRELOAD and GPUARB_AGENT. process: a pidfd of this
 * process, which will become the command. */
static int adapt_start(const struct command *command, const struct adapt *adapt, uint64_t lease,
		       int process)
{
	char name[AGENT_SOCKET];
	int listening[2], r = make_sockets(lease, name, listening);

	if (r < 0)
		return fail(command, EXIT_RUN_FAILED, "cannot make a socket for %s: %s",
			    adapt->program, strerror(-r));
	r = agent_start(adapt->program, lease, getpid(), listening, process, false);
	close(listening[0]);
	close(listening[1]);
	if (r < 0)
		(void)unlink(name);
	if (r < 0)
		return fail(command, EXIT_RUN_FAILED, "cannot start %.200s: %s", adapt->program,
			    strerror(-r));
	r = preload(adapt, name);
	return r < 0 ? fail(command, EXIT_RUN_FAILED,
			    "cannot set the environment of the command: %s", strerror(-r))
		     : EXIT_OK;
}

/* ---- the lease --------------------------------------------------------------------------- */

/* glibc has no pidfd_open() before 2.36. */
static int open_self(void)
{
	return (int)syscall(SYS_pidfd_open, getpid(), 0U);
}

/* A user must not search for the reason why a variable has no effect. */
static void print_change(const struct command *command, const char *name, const char *value)
{
	const char *before = getenv(name);

	if (command->quiet || command->json || !before || (value && strcmp(before, value) == 0))
		return;
	print_line(stderr, PREFIX "%s=%.80s %s%s", name, before, value ? "becomes " : "is removed",
		   value ? value : "");
}

/* Sets "NAME=value" and unsets "NAME". The strings live until exec. */
static int apply_environment(const struct command *command, char **variables)
{
	for (; *variables; variables++) {
		char *equals = strchr(*variables, '=');

		if (!equals) {
			print_change(command, *variables, NULL);
			if (unsetenv(*variables) < 0)
				return -errno;
			continue;
		}
		*equals = '\0';
		print_change(command, *variables, equals + 1);
		if (setenv(*variables, equals + 1, 1) < 0)
			return -errno;
	}
	return 0;
}

static int set_environment(const struct command *command, struct gpuarb_lease *lease)
{
	char **variables = NULL;
	int r;

	r = gpuarb_lease_environment(lease, &variables);
	if (r < 0)
		return fail_asked(command, r);

	r = apply_environment(command, variables);
	free(variables);
	return r < 0 ? fail(command, EXIT_FAILED, "cannot set the environment of the command: %s",
			    strerror(-r))
		     : EXIT_OK;
}

/* The partition with a priority that no environment variable sets, but the agent does. SIZE_MAX: none. */
static size_t find_priority(const struct gpuarb_lease *lease)
{
	for (size_t i = 0; i < gpuarb_lease_partitions(lease); i++)
		if (gpuarb_lease_priority(lease, i) != PRIORITY_NORMAL)
			return i;
	return SIZE_MAX;
}

static bool needs_agent(const struct command *command, const struct adapt *adapt,
			const struct gpuarb_lease *lease)
{
	return command->options.adaptable ||
	       (!command->fixed && !*adapt->why && find_priority(lease) != SIZE_MAX);
}

static void print_priority(const struct gpuarb_lease *lease)
{
	size_t i = find_priority(lease);
	char buf[PRIORITY_NAME];

	if (i == SIZE_MAX)
		return;
	print_line(stderr,
		   PREFIX "lease %" PRIu64
			  ": priority: normal (asked %s): the program must set its "
			  "own priority",
		   gpuarb_lease_id(lease), priority_name(gpuarb_lease_priority(lease, i), buf));
}

static void print_queues(const struct command *command, const struct gpuarb_lease *lease)
{
	for (size_t i = 0; i < gpuarb_lease_partitions(lease); i++) {
		unsigned n = want_lacks_queues(command, i, gpuarb_lease_partition(lease, i));

		if (n == 0)
			continue;
		print_line(stderr,
			   PREFIX "lease %" PRIu64 ": %u queue%s for HIP, whose default is 4: more "
				  "streams share queues; --queues asks for more",
			   gpuarb_lease_id(lease), n, print_s(n));
		return;
	}
}

static int print_grant_of(struct command *command, const struct adapt *adapt,
			  const struct gpuarb_lease *lease)
{
	int r = grant_print(command, lease, PREFIX, stderr);

	if (r != EXIT_OK || command->quiet || command->json)
		return r;
	print_queues(command, lease);
	if (!needs_agent(command, adapt, lease))
		print_priority(lease);
	return r;
}

/* Makes this process the one that executes the command: sets its environment, and starts the agent. self: a pidfd of this process. */
static int prepare(const struct command *command, const struct adapt *adapt,
		   struct gpuarb_lease *lease, int self)
{
	int r = set_environment(command, lease);

	if (r == EXIT_OK && needs_agent(command, adapt, lease))
		r = adapt_start(command, adapt, gpuarb_lease_id(lease), self);
	return r;
}

static int execute(const struct command *command)
{
	int error;

	execvp(command->rest[0], command->rest);
	error = errno;
	return fail(command, error == ENOENT ? EXIT_RUN_NOT_FOUND : EXIT_RUN_CANNOT,
		    "cannot start %.200s: %s", command->rest[0], strerror(error));
}

/* Leaves no descriptor of gpuarb open: the program may close all that it finds. */
static int run_here(struct command *command, const struct adapt *adapt, int self,
		    struct gpuarb_lease *lease)
{
	int r = prepare(command, adapt, lease, self);

	if (r == EXIT_OK)
		r = print_grant_of(command, adapt, lease);
	gpuarb_lease_close(lease);
	session_done(command);
	close(self);
	return r == EXIT_OK ? execute(command) : EXIT_RUN_FAILED;
}

/* ---- run --requeue and --restart-on-reset, and leases with a duration ------------------------------------------------------------------------- */

struct restarts {
	struct command *command;
	const struct adapt *adapt;
	struct gpuarb_lease *lease;
};

static int granted(void *userdata)
{
	const struct restarts *restarts = userdata;

	return print_grant_of(restarts->command, restarts->adapt, restarts->lease);
}

/* The lease stays bound to the parent, of which the command is a child. */
static int execute_child(void *userdata)
{
	const struct restarts *restarts = userdata;
	int self = open_self();

	if (self < 0 ||
	    prepare(restarts->command, restarts->adapt, restarts->lease, self) != EXIT_OK)
		return EXIT_RUN_FAILED;
	return execute(restarts->command);
}

static int run_child(struct command *command, const struct adapt *adapt, int self,
		     struct gpuarb_lease *lease)
{
	struct restarts restarts = { command, adapt, lease };
	struct supervisor supervisor = { command, lease, execute_child, granted, &restarts };
	int r = supervisor_run(&supervisor);

	gpuarb_lease_close(lease);
	session_done(command);
	close(self);
	return r;
}

/* After this neither this process nor the command can create a queue without an answer of gpuarbd. */
static int cap_queues(const struct command *command, struct gpuarb_lease *lease)
{
	int r = command->no_cap ? 0 : gpuarb_lease_cap(lease, command->cap);

	return r < 0 ? fail_asked(command, r) : EXIT_OK;
}

static int take_lease(struct command *command, struct gpuarb_lease **ret)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	int r;

	r = grant_reserve(command, PREFIX, &lease);
	if (r == EXIT_OK)
		r = cap_queues(command, lease);
	if (r == EXIT_OK)
		*ret = TAKE_PTR(lease);
	return r;
}

/* Binds the lease to this process. Without the lease the command does not start. */
static int run_bound(struct command *command, const struct adapt *adapt)
{
	char name[REQUEST_TEXT]; /* a file name may be longer, and have any bytes */
	struct gpuarb_lease *lease = NULL;
	int self = open_self();

	if (self < 0) {
		(void)fail(command, EXIT_FAILED,
			   "cannot bind the lease to this process: pidfd_open: %s",
			   strerror(errno));
		return EXIT_RUN_FAILED;
	}
	command->options.process_fd = self;
	/* If the request fails, this process ends. While a lease waits, it needs no more than its holder. */
	command->options.bind_at_once = command->options.wait_usec == 0;
	if (!command->options.name)
		command->options.name = text_clean(name, sizeof(name), basename(command->rest[0]));
	if (take_lease(command, &lease) != EXIT_OK) {
		session_done(command);
		close(self);
		return EXIT_RUN_FAILED;
	}
	/* The end of a duration is an event for the command, which this process has to receive. */
	return command->options.requeue || command->restart || gpuarb_lease_duration(lease) > 0
		       ? run_child(command, adapt, self, lease)
		       : run_here(command, adapt, self, lease);
}

/* Before a request: a command that cannot start needs no lease, and must not wait for one. */
static int check_command(const struct command *command)
{
	char why[PATH_MAX + 128];
	int r = program_check(command->rest[0], why, sizeof(why));

	if (r >= 0)
		return EXIT_OK;
	return fail(command, r == -ENOENT ? EXIT_RUN_NOT_FOUND : EXIT_RUN_CANNOT,
		    "cannot start %.200s: %s", *command->rest[0] ? command->rest[0] : "''", why);
}

/* Before a request, too: gpuarb_lease_environment() would refuse after the wait for a lease. */
static int check_masks(const struct command *command)
{
	static const char *const names[] = { "HSA_CU_MASK", "ROC_GLOBAL_CU_MASK" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return fail(
				command, EXIT_RUN_FAILED,
				"%s=%.80s is set already: unset it, and ask for as many CUs with "
				"--cus; a program cannot have two masks, so do not ask for a lease "
				"inside another one",
				names[i], value);
	}
	return EXIT_OK;
}

int run_run(struct command *command)
{
	struct adapt adapt;
	int r = check_command(command);

	if (r == EXIT_OK)
		r = check_masks(command);
	if (r != EXIT_OK)
		return r;
	r = EXIT_RUN_FAILED;
	if (command->cap && command->no_cap)
		(void)fail(command, EXIT_RUN_FAILED, "--cap and --no-cap exclude each other");
	else if (choose_adaptable(command, &adapt) == EXIT_OK)
		r = run_bound(command, &adapt);
	command->fixed_reason = NULL; /* the sentence is in adapt */
	return r;
}
