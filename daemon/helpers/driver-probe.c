/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/driver-probe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/text.h"

static bool is_valid(const struct probe_message *message, ssize_t n, size_t n_fds)
{
	if (n != (ssize_t)sizeof(*message) || message->protocol != PROBE_PROTOCOL ||
	    message->text[sizeof(message->text) - 1] != '\0')
		return false;
	if (message->kind == PROBE_GPU)
		return (n_fds == PROBE_FDS || n_fds == 0) && message->kfd_gpu_id != 0;
	return message->kind == PROBE_END && n_fds == 0 && message->error <= 0;
}

/* A read must not wait, whatever the descriptors are. */
static bool set_nonblocking(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int flags = fcntl(fds[i], F_GETFL);

		if (flags < 0 || fcntl(fds[i], F_SETFL, flags | O_NONBLOCK) < 0)
			return false;
	}
	return true;
}

static void close_all(int fds[static PROBE_FDS])
{
	for (size_t i = 0; i < PROBE_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

int driver_probe_receive(int socket, struct probe_message *ret, int ret_fds[static PROBE_FDS],
			 char *why, size_t size)
{
	int flags = 0;
	size_t n_fds;
	ssize_t n;

	for (size_t i = 0; i < PROBE_FDS; i++)
		ret_fds[i] = -1;
	n = receive_with_fds(socket, ret, sizeof(*ret), &flags, ret_fds, PROBE_FDS, &n_fds);
	if (n < 0)
		return n == -EAGAIN || n == -EINTR
			       ? -EAGAIN
			       : refuse(why, size, (int)n, "cannot read from gpuarb-probe: %s",
					strerror((int)-n));
	if (n == 0 && n_fds == 0)
		return refuse(why, size, -EOPNOTSUPP,
			      "gpuarb-probe ended without an answer: there is no /dev/kfd, or its "
			      "journal has the reason");
	if (!is_valid(ret, n, n_fds) || flags & MSG_CTRUNC || !set_nonblocking(ret_fds, n_fds)) {
		close_all(ret_fds);
		return refuse(why, size, -EBADMSG,
			      "gpuarb-probe sent an invalid message: use the gpuarb-probe of this "
			      "version");
	}
	return 0;
}
