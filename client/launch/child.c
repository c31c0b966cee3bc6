/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/child.h"

#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/output/fail.h"

extern char **environ;

const char *sibling_find(const char *name, const char *installed, char ret[static PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *end;
	size_t room;

	ret[size < 0 ? 0 : size] = '\0';
	end = strrchr(ret, '/');
	if (!end)
		return installed;
	room = PATH_MAX - (size_t)(end - ret);
	if ((size_t)snprintf(end, room, "/%s", name) >= room || access(ret, X_OK) < 0)
		return installed;
	return ret;
}

int signals_open(const struct command *command, const int *numbers, sigset_t *ret_before)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (; *numbers; numbers++)
		sigaddset(&set, *numbers);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		(void)fail(command, EXIT_FAILED, "cannot read signals: %s", strerror(errno));
	else
		sigprocmask(SIG_BLOCK, &set, ret_before);
	return fd;
}

int process_spawn(const char *program, const char *const *words, bool group,
		  const struct process_fd *fds, size_t n, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	for (size_t i = 0; i < n && r == 0; i++)
		r = posix_spawn_file_actions_adddup2(&actions, fds[i].own, fds[i].child);
	if (r == 0)
		r = posix_spawnattr_init(&attributes);
	if (r == 0) {
		posix_spawnattr_setflags(&attributes, group ? POSIX_SPAWN_SETPGROUP : 0);
		/* posix_spawn() does not write to the words. */
		r = posix_spawn(ret, program, &actions, &attributes,
				(char *const *)(uintptr_t)words, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int process_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
