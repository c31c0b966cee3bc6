/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/liveness/shelf.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd.h"

union control {
	char bytes[CMSG_SPACE(SHELF_MAX * sizeof(int))];
	struct cmsghdr align;
};

int shelf_write(const struct shelf_entry *entries, size_t n, int *ret)
{
	union control control = { 0 };
	char names[SHELF_MAX][STORE_NAME_MAX] = { 0 };
	struct iovec io = { .iov_base = names, .iov_len = n * STORE_NAME_MAX };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int pair[2], r = 0;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (size_t i = 0; i < n; i++) {
		memcpy(names[i], entries[i].name, strnlen(entries[i].name, STORE_NAME_MAX));
		memcpy(CMSG_DATA(header) + i * sizeof(int), &entries[i].fd, sizeof(int));
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	if (sendmsg(pair[0], &message, MSG_NOSIGNAL) < 0)
		r = -errno;
	close(pair[0]);
	if (r < 0)
		close(pair[1]);
	else
		*ret = pair[1];
	return r;
}

static size_t take_fds(struct msghdr *message, int fds[static SHELF_MAX])
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	size_t n;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(header), n * sizeof(int));
	return n;
}

int shelf_read(int socket, struct shelf_entry entries[static SHELF_MAX], size_t *ret_n)
{
	union control control;
	char names[SHELF_MAX][STORE_NAME_MAX];
	struct iovec io = { .iov_base = names, .iov_len = sizeof(names) };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t size = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fds[SHELF_MAX];
	size_t n;

	if (size < 0)
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : -EBADMSG;
	n = take_fds(&message, fds);
	if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || n == 0 ||
	    (size_t)size != n * STORE_NAME_MAX) {
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
		return message.msg_flags & MSG_CTRUNC ? -EMFILE : -EBADMSG;
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(entries[i].name, names[i], STORE_NAME_MAX);
		entries[i].name[STORE_NAME_MAX - 1] = '\0';
		entries[i].fd = fds[i];
	}
	*ret_n = n;
	return 0;
}
