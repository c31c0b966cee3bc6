/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/kfd_ioctl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/base.h"

/* With the second one, a request that was taken up is not sent again after a signal. */
#define FLAGS (SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)

static int set_filter(const struct sock_fprog *program)
{
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, FLAGS, program);

	return r < 0 ? -errno : (int)r;
}

bool seccomp_there(void)
{
	return set_filter(NULL) == -EFAULT;
}

/* As the kernel compares it: the low half of the register alone. */
static int install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AMDKFD_IOC_SMI_EVENTS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	return set_filter(&program);
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

	fd = install_filter();
	if (fd < 0)
		return fd;
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
