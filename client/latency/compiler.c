/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/compiler.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/latency/kernel.h"
#include "util/base.h"

#define TARGET_MAX 64U
#define CODE_MAX (1U << 24)

/* The first byte of an answer. */
#define IS_CODE 'c'
#define IS_MESSAGE 's'

static void send_all(int fd, char kind, const char *data, size_t n)
{
	ssize_t sent = send(fd, &kind, 1, MSG_NOSIGNAL);

	while (sent > 0 && n > 0) {
		sent = send(fd, data, n, MSG_NOSIGNAL);
		if (sent > 0) {
			data += sent;
			n -= (size_t)sent;
		}
	}
}

/* The child: one target, one answer. */
static void serve(int fd)
{
	char target[TARGET_MAX + 1], message[256] = "out of memory in the compiler";
	ssize_t n = recv(fd, target, TARGET_MAX, 0);
	size_t size = 0;
	char *code = NULL;

	if (n <= 0)
		return;
	target[n] = '\0';
	if (kernel_compile(target, &code, &size, message, sizeof(message)) < 0)
		send_all(fd, IS_MESSAGE, message, strlen(message));
	else
		send_all(fd, IS_CODE, code, size);
	free(code);
}

int compiler_start(struct compiler *ret)
{
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return -errno;
	}
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		serve(fds[1]);
		_exit(EXIT_SUCCESS);
	}
	close(fds[1]);
	*ret = (struct compiler){ pid, fds[0] };
	return 0;
}

static int receive(int fd, char **ret, size_t *ret_size)
{
	_cleanup_(freep) char *data = malloc(CODE_MAX);
	size_t used = 0;
	ssize_t n;

	if (!data)
		return -ENOMEM;
	do {
		n = recv(fd, data + used, CODE_MAX - used, 0);
		if (n > 0)
			used += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	*ret = TAKE_PTR(data);
	*ret_size = used;
	return 0;
}

/* Waits for the child. Returns the signal that ended it, or 0. */
static int death_of(struct compiler *compiler)
{
	int status = 0;

	while (waitpid(compiler->pid, &status, 0) < 0 && errno == EINTR)
		;
	compiler->pid = 0;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int compiler_ask(struct compiler *compiler, const char *target, char **ret_code, size_t *ret_size,
		 char *buf, size_t size)
{
	_cleanup_(freep) char *answer = NULL;
	size_t n = strlen(target), got = 0;
	int r, death;

	if (n > TARGET_MAX || send(compiler->fd, target, n, MSG_NOSIGNAL) != (ssize_t)n) {
		snprintf(buf, size, "cannot send the target %.80s to the compiler", target);
		return -EIO;
	}
	r = receive(compiler->fd, &answer, &got);
	if (r < 0) {
		snprintf(buf, size, "out of memory for the code of the kernel");
		return r;
	}
	death = death_of(compiler);
	/* Ctrl-C on the terminal reaches the child, too. */
	if (death == SIGINT || death == SIGTERM)
		return -EINTR;
	if (got == 0 || death > 0) {
		snprintf(buf, size,
			 "the kernel was not compiled: hiprtc crashed with the target %s (%s); "
			 "this HIP does not support it",
			 target, death > 0 ? strsignal(death) : "no answer");
		return -EIO;
	}
	if (answer[0] == IS_MESSAGE) {
		snprintf(buf, size, "%.*s", (int)got - 1, answer + 1);
		return -EIO;
	}
	memmove(answer, answer + 1, got - 1);
	*ret_code = TAKE_PTR(answer);
	*ret_size = got - 1;
	return 0;
}

void compiler_done(struct compiler *compiler)
{
	if (compiler->fd >= 0)
		close(compiler->fd);
	compiler->fd = -1;
	if (compiler->pid > 0)
		(void)death_of(compiler);
}
