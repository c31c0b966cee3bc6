/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <linux/kfd_ioctl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ioctl-listener.h"
#include "util/base.h"

/* With it, the kernel does not send a request again that the listener had taken up before a signal. */
#define FLAGS SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

bool seccomp_there(void)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER | FLAGS, NULL) < 0 &&
	       errno == EFAULT;
}

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

static struct msghdr one_fd(struct iovec *part, union control *control)
{
	return (struct msghdr){
		.msg_iov = part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(*control),
	};
}

int seccomp_install(int socket_fd)
{
	union control control = { 0 };
	char byte = 0;
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = one_fd(&part, &control);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd, r = 0;

	fd = ioctl_listener(AMDKFD_IOC_SMI_EVENTS, FLAGS);
	if (fd < 0)
		return -errno;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0)
		r = -errno;
	close(fd);
	return r;
}

int seccomp_receive(int socket_fd, int *ret_listener_fd)
{
	union control control = { 0 };
	char byte;
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = one_fd(&part, &control);
	struct cmsghdr *header;
	ssize_t n;

	n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (n == 0 || !header || header->cmsg_type != SCM_RIGHTS)
		return -EPIPE; /* the other side has said why */
	memcpy(ret_listener_fd, CMSG_DATA(header), sizeof(*ret_listener_fd));
	return 0;
}

int seccomp_give(int listener_fd, uint64_t id, int fd)
{
	struct seccomp_notif_addfd give = { .id = id, .srcfd = (uint32_t)fd };
	int r = ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &give);

	return r < 0 ? -errno : r;
}

bool seccomp_waits(int listener_fd, uint64_t id)
{
	return ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

int seccomp_reply(int listener_fd, uint64_t id, int result, uint32_t flags)
{
	struct seccomp_notif_resp response = { .id = id, .error = result, .flags = flags };

	if (ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}
