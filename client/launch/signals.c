/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>

#include "client/output/fail.h"

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
