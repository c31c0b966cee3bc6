/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * gpuarb-budget: lets Linux refuse KFD queues beyond a budget, for cgroups that gpuarbd names. It reads
 * one struct budget_request from its standard input, a SOCK_SEQPACKET socket, and answers with a struct
 * budget_answer. The budgets stay in force when it ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/budget/budgets.h"
#include "helpers/budget/programs.h"
#include "helpers/helper-program.h"
#include "util/base.h"
#include "util/fd.h"

#define PATIENCE_MSEC 5000 /* for the request */

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

static int serve(const struct helper_program *program)
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
	budgets_apply(program->directory, request, answer);
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

static int run(const struct helper_program *program)
{
	return program->remove ? remove_all() : serve(program);
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "remove", no_argument, NULL, HELPER_REMOVE },
		{ "sysfs", required_argument, NULL, HELPER_DIRECTORY },
		HELPER_OPTIONS,
	};
	struct helper_program program = {
		.name = "gpuarb-budget",
		.task = "Lets the kernel refuse KFD queues beyond the budgets of gpuarbd, on the connection "
			"that\nsystemd passes as standard input (gpuarb-budget.socket).",
		.help = "  --remove     remove all budgets from the kernel\n"
			"  --sysfs=DIR  read DIR instead of /sys\n",
		.options = options,
		.run = run,
		.needs_connection = true,
		.directory = "/sys",
	};

	return helper_program_main(&program, argc, argv);
}
