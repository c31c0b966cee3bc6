/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/fd.h"

static int refuse(struct diagnostics *diagnostics, const char *path, const char *why)
{
	diagnostics_add(diagnostics, true, "%s: %s", path, why);
	return -EINVAL;
}

static int out_of_memory(struct diagnostics *diagnostics, const char *path)
{
	refuse(diagnostics, path, "out of memory");
	return -ENOMEM;
}

static bool is_dev_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static int read_all(int fd, const char *path, char **ret, size_t *ret_size,
		    struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *text = malloc(TEXTFILE_MAX + 2);
	size_t size = 0;
	ssize_t n;

	if (!text)
		return out_of_memory(diagnostics, path);

	/* One byte more than may be there: it can grow while it is read. */
	while (size <= TEXTFILE_MAX) {
		n = read(fd, text + size, TEXTFILE_MAX + 1 - size);
		if (n < 0)
			return refuse(diagnostics, path, strerror(errno));
		if (n == 0)
			break;
		size += (size_t)n;
	}
	if (size > TEXTFILE_MAX)
		return refuse(diagnostics, path, "larger than 1 MiB");

	text[size] = '\0';
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

static int open_file(const char *path, const struct trust *trust, struct diagnostics *diagnostics)
{
	int fd;

	if (trust)
		return trust_open(path, trust, O_RDONLY, diagnostics);
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? -ENOENT : refuse(diagnostics, path, strerror(errno));
}

int textfile_load(const char *path, const struct trust *trust, char **ret, size_t *ret_size,
		  struct diagnostics *diagnostics)
{
	_cleanup_fd_ int fd = open_file(path, trust, diagnostics);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return refuse(diagnostics, path, strerror(errno));
	if (!is_dev_null(&st)) {
		if (!S_ISREG(st.st_mode))
			return refuse(diagnostics, path,
				      S_ISDIR(st.st_mode) ? "a directory, not a file"
							  : "not a regular file");
		if (st.st_size > (off_t)TEXTFILE_MAX)
			return refuse(diagnostics, path, "larger than 1 MiB");
	}
	return read_all(fd, path, ret, ret_size, diagnostics);
}
