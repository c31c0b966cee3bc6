/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void close_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static int refuse(struct notes *notes, const char *path, const char *why)
{
	notes_add(notes, true, "%s: %s", path, why);
	return -EINVAL;
}

static int out_of_memory(struct notes *notes, const char *path)
{
	refuse(notes, path, "out of memory");
	return -ENOMEM;
}

static bool is_dev_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

static int trust(const struct stat *st, const char *path, struct notes *notes)
{
	if (st->st_uid != 0 && st->st_uid != geteuid()) {
		notes_add(notes, true,
			  "%s: owned by uid %u, who could change it: make root its owner", path,
			  st->st_uid);
		return -EINVAL;
	}
	if (st->st_mode & (S_IWGRP | S_IWOTH)) {
		notes_add(notes, true,
			  "%s: others than its owner can write it (mode %04o): chmod go-w", path,
			  st->st_mode & 07777);
		return -EINVAL;
	}
	return 0;
}

/* Who can write the directory can put another file in the place of this one. */
static int trust_directory(const char *path, struct notes *notes)
{
	_cleanup_(freep) char *dir = NULL;
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (!slash)
		dir = strdup(".");
	else
		dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!dir)
		return out_of_memory(notes, path);

	if (stat(dir, &st) < 0)
		return refuse(notes, dir, strerror(errno));
	return trust(&st, dir, notes);
}

/* The file, the directory it is named in, and the one where a symlink leads to. */
static int trust_path(const struct stat *st, const char *path, struct notes *notes)
{
	_cleanup_(freep) char *real = NULL;
	int r;

	r = trust(st, path, notes);
	if (r < 0)
		return r;
	r = trust_directory(path, notes);
	if (r < 0)
		return r;

	real = realpath(path, NULL);
	if (!real)
		return refuse(notes, path, strerror(errno));
	return strcmp(real, path) == 0 ? 0 : trust_directory(real, notes);
}

static int read_all(int fd, const char *path, char **ret, size_t *ret_size, struct notes *notes)
{
	_cleanup_(freep) char *text = malloc(TEXTFILE_MAX + 2);
	size_t size = 0;
	ssize_t n;

	if (!text)
		return out_of_memory(notes, path);

	/* One byte more than may be there: it can grow while it is read. */
	while (size <= TEXTFILE_MAX) {
		n = read(fd, text + size, TEXTFILE_MAX + 1 - size);
		if (n < 0)
			return refuse(notes, path, strerror(errno));
		if (n == 0)
			break;
		size += (size_t)n;
	}
	if (size > TEXTFILE_MAX)
		return refuse(notes, path, "larger than 1 MiB");

	text[size] = '\0';
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

int textfile_load(const char *path, bool trusted, char **ret, size_t *ret_size,
		  struct notes *notes)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(notes, path, strerror(errno));

	if (!is_dev_null(&st)) {
		if (!S_ISREG(st.st_mode))
			return refuse(notes, path,
				      S_ISDIR(st.st_mode) ? "a directory, not a file"
							  : "not a regular file");
		if (st.st_size > (off_t)TEXTFILE_MAX)
			return refuse(notes, path, "larger than 1 MiB");
		r = trusted ? trust_path(&st, path, notes) : 0;
		if (r < 0)
			return r;
	}
	return read_all(fd, path, ret, ret_size, notes);
}
