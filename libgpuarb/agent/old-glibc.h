/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Included before each source of libgpuarb-agent.so, which is loaded into programs of containers with a glibc as old as
 * 2.31. Functions that glibc 2.34 moved into libc.so keep their older versions there, which are asked for here. fstat() and
 * stat() were macros before 2.33. tests/lint/check-glibc.sh compares.
 */

#include <features.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GLIBC__) && defined(__x86_64__)
#define OLD_GLIBC "GLIBC_2.2.5"
#define OLD_GLIBC_NAME "GLIBC_2.12"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define OLD_GLIBC "GLIBC_2.17"
#define OLD_GLIBC_NAME "GLIBC_2.17"
#endif

#ifdef OLD_GLIBC
__asm__(".symver dlsym, dlsym@" OLD_GLIBC);
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@" OLD_GLIBC);
__asm__(".symver pthread_create, pthread_create@" OLD_GLIBC);
__asm__(".symver pthread_detach, pthread_detach@" OLD_GLIBC);
__asm__(".symver pthread_setname_np, pthread_setname_np@" OLD_GLIBC_NAME);
__asm__(".symver pthread_sigmask, pthread_sigmask@" OLD_GLIBC);

/* The structures of glibc are those of the kernel on both. */
static inline int old_fstat(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

static inline int old_stat(const char *path, struct stat *ret)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, ret, 0);
}
#define fstat(fd, ret) old_fstat(fd, ret)
#define stat(path, ret) old_stat(path, ret)
#endif
