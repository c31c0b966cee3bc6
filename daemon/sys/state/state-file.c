/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/fd.h"

/*
 * Files of the runtime directory need no fsync(): it is a tmpfs, whose files last as long as the
 * kernel that the leases are about. They only have to survive the end of this process at any moment,
 * and for that a rename is enough.
 */

static int write_all(int fd, const char *text)
{
	size_t size = strlen(text);
	ssize_t n;

	while (size > 0) {
		n = write(fd, text, size);
		if (n < 0)
			return -errno;
		text += n;
		size -= (size_t)n;
	}
	return 0;
}

int state_file_put(int directory, const char *name, const char *text, bool sync)
{
	int fd, r;

	fd = openat(directory, STATE_FILE_NEW,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;

	r = write_all(fd, text);
	if (r == 0 && sync && fdatasync(fd) < 0)
		r = -errno;
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(directory, STATE_FILE_NEW, directory, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(directory, STATE_FILE_NEW, 0);
	return r;
}

int state_file_remove(int directory, const char *name)
{
	return unlinkat(directory, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int state_file_read(int directory, const char *name, char **ret, size_t *ret_length)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	_cleanup_fd_ int fd = openat(directory, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : read_whole(fd, STATE_FILE_MAX, ret, ret_length);

	if (r == 0 || r == -ENOENT || r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	return -EINVAL;
}
