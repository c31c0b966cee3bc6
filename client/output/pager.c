/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/pager.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Without a pager that can be started the text goes out as it is. */
static _Noreturn void run_pager(int input)
{
	dup2(input, STDIN_FILENO);
	setenv("LESS", "FRX", 0);
	setenv("LESSSECURE", "1", 1);
	execl("/bin/sh", "sh", "-c", "eval \"${PAGER:-less}\" || cat", (char *)NULL);
	_exit(EXIT_FAILURE);
}

pid_t pager_start(void)
{
	const char *pager = getenv("PAGER");
	int pipe_fds[2];
	pid_t pid;

	if (pager && (!*pager || strcmp(pager, "cat") == 0))
		return 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return 0;

	pid = fork();
	if (pid == 0)
		run_pager(pipe_fds[0]);
	if (pid > 0) {
		dup2(pipe_fds[1], STDOUT_FILENO);
		signal(SIGPIPE, SIG_IGN); /* a pager may be left before the end */
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return pid > 0 ? pid : 0;
}

void pager_finish(pid_t pager)
{
	fflush(stdout);
	clearerr(stdout);
	close(STDOUT_FILENO);
	waitpid(pager, NULL, 0);
}
