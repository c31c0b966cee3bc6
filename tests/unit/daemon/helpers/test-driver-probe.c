/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Messages of gpuarb-probe that are late, or that cannot be received. */

#include "helpers/driver-probe.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "util/fd.h"

static int receive(int socket, char why[static 256])
{
	struct probe_message message;
	int fds[PROBE_FDS], r = driver_probe_receive(socket, &message, fds, why, 256);

	for (size_t i = 0; i < PROBE_FDS; i++)
		CHECK(fds[i] == -1);
	return r;
}

TEST(a_message_that_is_not_there_yet_is_no_error)
{
	char why[256] = "";
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(receive(pair[0], why) == -EAGAIN && !*why);
	close(pair[1]);
	CHECK(receive(pair[0], why) == -EOPNOTSUPP && strstr(why, "gpuarb-probe"));
	close(pair[0]);
}

/* The kernel passes descriptors without a byte, too. */
TEST(descriptors_of_an_empty_message_are_closed)
{
	char why[256] = "";
	int pair[2], own[PROBE_FDS];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	for (size_t i = 0; i < PROBE_FDS; i++)
		own[i] = pair[1];
	CHECK(send_with_fds(pair[1], NULL, 0, MSG_DONTWAIT, own, PROBE_FDS) == 0);
	close(pair[1]);
	CHECK(receive(pair[0], why) == -EBADMSG && strstr(why, "invalid message"));
	CHECK(receive(pair[0], why) == -EOPNOTSUPP); /* nobody has the other end any more */
	close(pair[0]);
}

TEST(what_the_kernel_says_of_a_socket_is_in_the_sentence)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	char why[256] = "";

	CHECK(fd >= 0 && receive(fd, why) == -ENOTSOCK && strstr(why, strerror(ENOTSOCK)));
	close(fd);
}
