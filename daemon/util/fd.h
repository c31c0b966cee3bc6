/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>
#include <unistd.h>

#include "util/base.h"

/* Also for _cleanup_(): closes the file descriptor unless it is negative; then it is -1. */
static inline void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* As TAKE_PTR(). */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}
#define _cleanup_fd_ _cleanup_(close_fd)

/* A link to it masks a configuration file. */
static inline bool is_dev_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

DEFINE_CLEANUP(DIR *, closedir)

/* As fdopendir(), but takes ownership of fd also on failure, and a negative fd is the error of the
 * call before. */
DIR *open_directory(int fd);

/* Reads up to size bytes, fewer only at the end of the file. Returns how many, or -errno. */
ssize_t read_to_end(int fd, char *buf, size_t size);

/* Reads a regular file of up to max bytes, or /dev/null as an empty one, and adds a NUL; *ret is for free(). -EFBIG;
 * -EISDIR; -EBADF: neither; -ENOMEM, or what read(2) says. */
int read_whole(int fd, size_t max, char **ret, size_t *ret_size);

/* Reads the beginning of a file, up to size - 1 bytes, as a string. dir: as of openat(2). */
int read_text_at(int dir, const char *name, char *buf, size_t size);

/* Sends one message, with a copy of fd unless that is negative. Never waits: -EAGAIN. */
int send_with_fd(int socket, const void *data, size_t size, int fd);

/* The same with copies of n descriptors. flags: of sendmsg(2): without MSG_DONTWAIT it may wait. */
int send_with_fds(int socket, const void *data, size_t size, int flags, const int *fds, size_t n);

/* Receives one message, without waiting, and up to max descriptors, which are the caller's: the kernel closes
 * others. *flags: of recvmsg(2); then those of the message. Returns its size, 0 at the end of the connection, or
 * -errno. */
ssize_t receive_with_fds(int socket, void *data, size_t size, int *flags, int *ret_fds, size_t max,
			 size_t *ret_n);
