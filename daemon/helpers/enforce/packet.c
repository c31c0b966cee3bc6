/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDS 2U /* one is right, two are too many; the kernel closes what has no room here */

static void take_fds(struct msghdr *message, struct packet *packet)
{
	int fds[FDS];
	size_t n;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(header), n * sizeof(int));
		for (size_t i = 0; i < n; i++, packet->n_fds++) {
			if (packet->n_fds == 0)
				packet->fd = fds[i];
			else
				close(fds[i]);
		}
	}
}

int packet_receive(int socket, struct packet *ret)
{
	union {
		char bytes[CMSG_SPACE(FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec io = { .iov_base = ret->text, .iov_len = sizeof(ret->text) };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t n;

	n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	ret->fd = -1;
	ret->n_fds = 0;
	take_fds(&message, ret);
	ret->length = (size_t)n;
	ret->cut = message.msg_flags & MSG_TRUNC;
	if (n == 0)
		packet_done(ret);
	return n > 0;
}

void packet_done(struct packet *packet)
{
	if (packet->fd >= 0)
		close(packet->fd);
	packet->fd = -1;
}
