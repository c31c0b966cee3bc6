/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-budget: lets Linux refuse KFD queues beyond a budget, for cgroups that gpuarbd names. It reads
 * one struct budget_request from its standard input, a SOCK_SEQPACKET socket, and answers with a struct
 * budget_answer. The budgets stay in force when it ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/budget/budgets.h"
#include "helpers/budget/programs.h"
#include "util/base.h"
#include "util/fd.h"

#define EXIT_USAGE 2
#define PATIENCE_MSEC 5000 /* for the request */

struct command_line {
	const char *sysfs;
	bool remove, done;
};

static void print_help(void)
{
	printf("gpuarb-budget [OPTION...]\n\n"
	       "Lets the kernel refuse KFD queues beyond the budgets of gpuarbd, on the connection that\n"
	       "systemd passes as standard input (gpuarb-budget.socket).\n\n"
	       "  --remove     remove all budgets from the kernel\n"
	       "  --sysfs=DIR  read DIR instead of /sys\n"
	       "  --help, --version\n\n"
	       "gpuarbd(8), HELPERS, says more.\n");
}

static int parse_option(int option, struct command_line *ret)
{
	switch (option) {
	case 'r': ret->remove = true; return 0;
	case 's': ret->sysfs = optarg; return 0;
	case 'h': print_help(); break;
	case 'v': printf("gpuarb-budget %s\n", GPUARB_VERSION); break;
	default: return -EINVAL; /* getopt_long() has printed why */
	}
	ret->done = true;
	return 0;
}

static int parse(int argc, char *argv[], struct command_line *ret)
{
	static const struct option options[] = {
		{ "remove", no_argument, NULL, 'r' },
		{ "sysfs", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, r = 0;

	while (r >= 0 && !ret->done && (option = getopt_long(argc, argv, "", options, NULL)) >= 0)
		r = parse_option(option, ret);
	if (r >= 0 && !ret->done && optind < argc) {
		fprintf(stderr, "gpuarb-budget: unexpected argument \"%s\": see --help\n",
			argv[optind]);
		return -EINVAL;
	}
	return r;
}

static bool is_connection(int fd)
{
	socklen_t size = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static int check(const struct budget_request *request, size_t length)
{
	if (length < budget_request_size(0) || request->version != BUDGET_VERSION ||
	    request->n > BUDGET_ROWS_MAX || length != budget_request_size(request->n))
		return -EBADMSG;
	for (uint32_t i = 0; i < request->n; i++)
		if (request->rows[i].limit > BUDGET_LIMIT_MAX)
			return -EBADMSG;
	return 0;
}

/* -EBADMSG: not a request; -ENODATA: gpuarbd has hung up without one; -ETIMEDOUT: it sends none. */
static int receive(struct budget_request *ret)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	ssize_t n;
	int r = poll(&in, 1, PATIENCE_MSEC);

	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	n = recv(STDIN_FILENO, ret, sizeof(*ret), MSG_TRUNC);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	return check(ret, (size_t)n);
}

/* Another gpuarb-budget, of an earlier connection, can be at work. The lock ends with the process. */
static int lock(void)
{
	int fd = open("/sys/fs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || flock(fd, LOCK_EX) < 0 ? -errno : fd;
}

static int serve(const char *sysfs)
{
	_cleanup_(freep) struct budget_request *request = malloc(sizeof(*request));
	_cleanup_(freep) struct budget_answer *answer = malloc(sizeof(*answer));
	_cleanup_fd_ int locked = -1;
	int r;

	if (!request || !answer)
		return -ENOMEM;
	r = receive(request);
	if (r < 0)
		return r;
	locked = lock();
	if (locked < 0)
		return locked;
	budgets_apply(sysfs, request, answer);
	/* gpuarbd need not wait for the answer. */
	if (send(STDIN_FILENO, answer, budget_answer_size(answer->n), MSG_NOSIGNAL) < 0)
		return errno == EPIPE ? 0 : -errno;
	return 0;
}

static int remove_all(void)
{
	_cleanup_fd_ int locked = lock();

	return locked < 0 ? locked : programs_remove();
}

static int run(const struct command_line *line)
{
	if (line->remove)
		return remove_all();
	if (is_connection(STDIN_FILENO))
		return serve(line->sysfs);
	fprintf(stderr, "gpuarb-budget: standard input is not a connection of gpuarbd: start "
			"gpuarb-budget.socket\n");
	return -EINVAL;
}

int main(int argc, char *argv[])
{
	struct command_line line = { .sysfs = "/sys" };
	int r;

	if (parse(argc, argv, &line) < 0)
		return EXIT_USAGE;
	if (line.done)
		return EXIT_SUCCESS;
	r = run(&line);
	if (r < 0)
		fprintf(stderr, "gpuarb-budget: %s\n", strerror(-r));
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
