/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/debugfs-child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/base.h"

struct pipe_ends {
	int in, out;
};

static void close_ends(const struct pipe_ends *ends)
{
	if (ends->in >= 0)
		close(ends->in);
	if (ends->out >= 0)
		close(ends->out);
}
#define _cleanup_ends_ _cleanup_(close_ends)

/* Only this side's end does not wait: the child is no such program. */
static int make_pipe(struct pipe_ends *ret)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	ret->in = fds[0];
	ret->out = fds[1];
	return fcntl(ret->in, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

/* What this process blocks and ignores is its own affair. */
static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, pipe;
	int r;

	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (r == 0)
		r = posix_spawnattr_setsigdefault(attributes, &pipe);
	if (r == 0)
		r = posix_spawnattr_setflags(attributes,
					     POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	return -r;
}

static int set_files(posix_spawn_file_actions_t *actions, int out, int complaint)
{
	int r;

	r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(actions, complaint, STDERR_FILENO);
	return -r;
}

static int spawn(const char *path, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attributes, pid_t *ret)
{
	char cat[] = "cat", end[] = "--", language[] = "LC_ALL=C", *file = strdupa(path);
	char *const argv[] = { cat, end, file, NULL }, *const environment[] = { language, NULL };

	return -posix_spawnp(ret, cat, actions, attributes, argv, environment);
}

static int spawn_cat(const char *path, int out, int complaint, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	r = -posix_spawn_file_actions_init(&actions);
	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = set_files(&actions, out, complaint);
		if (r == 0)
			r = set_signals(&attributes);
		if (r == 0)
			r = spawn(path, &actions, &attributes, ret);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

int probe_child_start(struct probe_child *child, const char *path)
{
	_cleanup_ends_ struct pipe_ends output = { -1, -1 }, complaint = { -1, -1 };
	int r, pidfd;
	pid_t pid;

	r = make_pipe(&output);
	if (r == 0)
		r = make_pipe(&complaint);
	if (r == 0)
		r = spawn_cat(path, output.out, complaint.out, &pid);
	if (r < 0)
		return r;

	/* Nobody but us reaps it, so the number is still its own. */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	child->pidfd = pidfd;
	child->complaint = complaint.in;
	complaint.in = -1;
	r = output.in;
	output.in = -1;
	return r;
}

bool probe_child_ended(struct probe_child *child, int *ret_status)
{
	siginfo_t info = { 0 };
	int r;

	do
		r = waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r == 0 && info.si_pid == 0)
		return false;
	*ret_status = r == 0 && info.si_code == CLD_EXITED ? info.si_status : -1;
	close(child->pidfd);
	child->pidfd = -1;
	return true;
}

void probe_child_complaint(const struct probe_child *child, char *buf, size_t size)
{
	ssize_t n = read(child->complaint, buf, size - 1);

	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	for (char *c = buf; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

void probe_child_kill(const struct probe_child *child)
{
	syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
}

void probe_child_forget(struct probe_child *child)
{
	if (child->pidfd >= 0)
		close(child->pidfd);
	if (child->complaint >= 0)
		close(child->complaint);
	child->pidfd = child->complaint = -1;
}
