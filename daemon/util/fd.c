/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fd.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int send_with_fd(int socket, const void *data, size_t size, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)data, /* sendmsg() only reads it */
			    .iov_len = size };
	struct msghdr message = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
