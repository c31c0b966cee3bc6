/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/latency/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "util/base.h"

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
}

int watch_open(struct gpuarb_lease *lease, struct watch *ret)
{
	sigset_t set;
	int fd;

	ending_signals(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	*ret = (struct watch){ fd, lease, gpuarb_lease_generation(lease) };
	return 0;
}

/* A second signal ends what is still being cleaned up. */
void watch_done(struct watch *watch)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (watch->signals < 0)
		return;
	while (read(watch->signals, &info, sizeof(info)) > 0)
		;
	ending_signals(&set);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(watch->signals);
	watch->signals = -1;
}

int watch_wait(void *data, int msec)
{
	const struct watch *watch = data;
	struct pollfd fds[] = {
		{ .fd = watch->signals, .events = POLLIN },
		{ .fd = gpuarb_lease_fd(watch->lease), .events = POLLIN },
	};

	if (poll(fds, ARRAY_SIZE(fds), msec) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		return -EINTR;
	if (!fds[1].revents)
		return 0;
	if (gpuarb_lease_dispatch(watch->lease, NULL, NULL) < 0)
		return -ENOENT;
	return gpuarb_lease_generation(watch->lease) == watch->generation ? 0 : -ESTALE;
}
