/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state-file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.h"

/*
 * There is no fsync(): the runtime directory is a tmpfs, whose files last as long as the kernel
 * that the leases are about. The files only have to survive the end of this process at any moment,
 * and for that a rename is enough.
 */

#define ASIDE_TRIES 1000U

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

int state_put_file(int directory, const char *name, const char *text)
{
	int fd, r;

	fd = openat(directory, STATE_NEW_FILE,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;

	r = write_all(fd, text);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(directory, STATE_NEW_FILE, directory, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(directory, STATE_NEW_FILE, 0);
	return r;
}

/* Reads size bytes. -EINVAL: the file became shorter since fstat(). */
static int read_bytes(int fd, char *buf, size_t size)
{
	size_t length = 0;
	ssize_t n;

	while (length < size) {
		n = read(fd, buf + length, size - length);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EINVAL;
		length += (size_t)n;
	}
	return 0;
}

static int read_open(int fd, char **ret, size_t *ret_length)
{
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)STATE_FILE_MAX)
		return -EINVAL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	r = read_bytes(fd, text, (size_t)st.st_size);
	if (r < 0)
		return r;
	text[st.st_size] = '\0';
	*ret = TAKE_PTR(text);
	*ret_length = (size_t)st.st_size;
	return 0;
}

/* Errors that do not say that the file is invalid. */
static bool is_not_the_file(int r)
{
	return r == -ENOENT || r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

int state_read_file(int directory, const char *name, char **ret, size_t *ret_length)
{
	/* O_NONBLOCK: opening a FIFO must not wait for its other end. */
	_cleanup_fd_ int fd = openat(directory, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r;

	r = fd < 0 ? -errno : read_open(fd, ret, ret_length);
	return r == 0 || is_not_the_file(r) ? r : -EINVAL;
}

/* Never replaces a file that was set aside before. */
static int move(const struct state_place *place, const char *name, char *to, size_t size)
{
	if (mkdirat(place->runtime, "set-aside", 0700) < 0 && errno != EEXIST)
		return -errno;
	for (unsigned i = 1; i <= ASIDE_TRIES; i++) {
		if (i == 1)
			snprintf(to, size, "set-aside/%s", name);
		else
			snprintf(to, size, "set-aside/%s.%u", name, i);
		if (renameat2(place->directory, name, place->runtime, to, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

void state_move_aside(const struct state_place *place, const char *name, const char *why,
		      struct diagnostics *diagnostics)
{
	char to[NAME_MAX + 32];
	int r;

	r = move(place, name, to, sizeof(to));
	if (r == 0)
		diagnostics_add(diagnostics, false, "%s/%s%s: %s; moved to %s/%s", place->path,
				place->below, name, why, place->path, to);
	else
		diagnostics_add(diagnostics, false, "%s/%s%s: %s; cannot be moved to set-aside: %s",
				place->path, place->below, name, why, strerror(-r));
}

void state_remove_new(const struct state_place *place, struct diagnostics *diagnostics)
{
	if (unlinkat(place->directory, STATE_NEW_FILE, 0) < 0 && errno == EISDIR)
		state_move_aside(place, STATE_NEW_FILE, "prevents writing", diagnostics);
}
