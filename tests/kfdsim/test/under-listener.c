/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* under-listener COMMAND…: runs a command to which no second seccomp listener can be added. */

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char *argv[])
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { .len = 1, .filter = allow };
	int fd;

	if (argc < 2)
		return 2;
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			  &program);
	if (fd < 0 || fcntl(fd, F_SETFD, 0) < 0) {
		perror("under-listener");
		return 125;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 125;
}
