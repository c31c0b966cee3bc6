/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A driver's file has no size: O_TRUNC means nothing to it, and what changes sizes refuses it. The
 * file that stands for it here is everybody's memory, and must never be cut.
 */

bool seccomp_is_device(const struct seccomp *seccomp, const char *path)
{
	struct stat here, there;

	return stat(path, &there) == 0 && fstat(seccomp->front->arena_fd, &here) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* Where a path of the caller's lies for this process. */
static void path_from_here(const struct seccomp_call *call, const char *path,
			   char ret[SECCOMP_PATH])
{
	if (*path == '/')
		snprintf(ret, SECCOMP_PATH, "/proc/%d/root%s", call->tid, path);
	else if (call->fd == AT_FDCWD)
		snprintf(ret, SECCOMP_PATH, "/proc/%d/cwd/%s", call->tid, path);
	else
		snprintf(ret, SECCOMP_PATH, "/proc/%d/fd/%d/%s", call->tid, call->fd, path);
}

/* Opens it in the caller's stead, and answers with the descriptor. */
static int give_file(const struct seccomp *seccomp, const struct seccomp_call *call,
		     const char *path)
{
	struct seccomp_notif_addfd give = {
		.id = call->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.newfd_flags = call->flags & O_CLOEXEC,
	};
	int fd, r = 0;

	fd = open(path, (int)(call->flags & ~(uint64_t)(O_TRUNC | O_CREAT)) | O_CLOEXEC);
	if (fd < 0)
		return seccomp_reply(seccomp, call->id, -errno, 0);
	give.srcfd = (uint32_t)fd;
	if (ioctl(seccomp->listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &give) < 0)
		r = seccomp_reply(seccomp, call->id, -errno, 0);
	close(fd);
	return r;
}

bool seccomp_open_whole(const struct seccomp *seccomp, const struct seccomp_call *call,
			const char *path, int *ret)
{
	const uint64_t new = O_CREAT | O_EXCL; /* fails: it is there */
	char here[SECCOMP_PATH];

	if (!(call->flags & O_TRUNC) || (call->flags & new) == new)
		return false;
	path_from_here(call, path, here);
	if (!seccomp_is_device(seccomp, here))
		return false;
	*ret = give_file(seccomp, call, here);
	return true;
}

/* As ksys_truncate(), ksys_ftruncate() and vfs_fallocate() refuse a character device. */
int seccomp_resize(struct seccomp *seccomp, const struct seccomp_call *call, const char *path)
{
	char here[SECCOMP_PATH];

	if (call->number == SYS_truncate)
		path_from_here(call, path, here);
	else
		snprintf(here, sizeof(here), "/proc/%d/fd/%d", call->tid, call->fd);
	if (!seccomp_waits(seccomp, call->id) || !seccomp_is_device(seccomp, here))
		return seccomp_reply(seccomp, call->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
	return seccomp_reply(seccomp, call->id, call->number == SYS_fallocate ? -ENODEV : -EINVAL,
			     0);
}
