/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/output/fail.h"

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
