/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

DIR *open_directory(int fd)
{
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	int r = errno;

	if (!directory)
		close_fd(&fd);
	errno = r;
	return directory;
}

ssize_t read_to_end(int fd, char *buf, size_t size)
{
	size_t length = 0;
	ssize_t n;

	while (length < size) {
		n = read(fd, buf + length, size - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		length += (size_t)n;
	}
	return (ssize_t)length;
}

int read_whole(int fd, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !is_dev_null(&st))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EBADF;
	text = malloc(max + 2);
	if (!text)
		return -ENOMEM;
	n = read_to_end(fd, text, max + 1); /* it may have grown */
	if (n < 0 || (size_t)n > max)
		return n < 0 ? (int)n : -EFBIG;
	text[n] = '\0';
	*ret = TAKE_PTR(text);
	*ret_size = (size_t)n;
	return 0;
}

int read_text_at(int dir, const char *name, char *buf, size_t size)
{
	_cleanup_fd_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read_to_end(fd, buf, size - 1);
	if (n < 0)
		return (int)n;
	buf[n] = '\0';
	return 0;
}

#define FDS_MAX 253U /* SCM_MAX_FD of Linux */

union room_for_fds {
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int send_with_fds(int socket, const void *data, size_t size, int flags, const int *fds, size_t n)
{
	union room_for_fds control = { 0 };
	struct iovec io = { .iov_base = (void *)(uintptr_t)data, /* sendmsg() only reads it */
			    .iov_len = size };
	struct msghdr message = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (n > 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n * sizeof(int));
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL | flags) < 0 ? -errno : 0;
}

int send_with_fd(int socket, const void *data, size_t size, int fd)
{
	return send_with_fds(socket, data, size, MSG_DONTWAIT, &fd, fd >= 0);
}

ssize_t receive_with_fds(int socket, void *data, size_t size, int *flags, int *ret_fds, size_t max,
			 size_t *ret_n)
{
	union room_for_fds control;
	struct iovec io = { .iov_base = data, .iov_len = size };
	struct msghdr message = { .msg_iov = &io,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = CMSG_LEN(max * sizeof(int)) };
	ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | *flags);
	const struct cmsghdr *header = length < 0 ? NULL : CMSG_FIRSTHDR(&message);

	*flags = message.msg_flags;
	*ret_n = 0;
	if (length < 0)
		return -errno;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		*ret_n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(header), *ret_n * sizeof(int));
	}
	return length;
}
