/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.h"

#define SERVICE_USER "gpuarb" /* as in the unit, the bus policy and the polkit rules */

#define LINKS_MAX 40U /* as in the kernel (path_resolution(7)) */

/* Resolves a path from "/" on. Every step is checked through its file descriptor, so that nothing
 * can be replaced between the check and the next step. */
struct walk {
	const struct trust *trust;
	struct diagnostics *diagnostics;
	const char *path; /* as requested, for diagnostics */
	int at;           /* the current directory, with its mode and path */
	mode_t mode;
	char here[PATH_MAX];
	char rest[PATH_MAX]; /* not resolved yet */
	unsigned links;
	int found; /* the opened file; -1: not yet */
};

static void walk_done(struct walk *walk)
{
	close_fd(&walk->at);
	close_fd(&walk->found);
}

uid_t trust_service(void)
{
	const struct passwd *user = getpwnam(SERVICE_USER);

	return user ? user->pw_uid : 0;
}

/* Adds a diagnostic once: many files can be refused because of one directory. */
static int refuse(struct walk *walk, const char *format, ...) PRINTF_LIKE(2, 3);
static int refuse(struct walk *walk, const char *format, ...)
{
	char text[PATH_MAX + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (size_t i = 0; i < walk->diagnostics->n; i++)
		if (strcmp(walk->diagnostics->list[i].text, text) == 0)
			return -EINVAL;
	diagnostics_add(walk->diagnostics, true, "%s", text);
	return -EINVAL;
}

static int fail(struct walk *walk)
{
	if (errno == ENOENT)
		return -ENOENT;
	if (errno == EACCES)
		return refuse(walk,
			      "%s: not readable by uid %u: chmod a+r the file and a+x its "
			      "directories, or give access to a group of this user",
			      walk->path, geteuid());
	return refuse(walk, "%s: %s", walk->path, strerror(errno));
}

static bool is_last(const struct walk *walk)
{
	return walk->rest[strspn(walk->rest, "/")] == '\0';
}

static int check_mode(struct walk *walk, mode_t mode)
{
	if (!(mode & (S_IWGRP | S_IWOTH)))
		return 0;
	return refuse(walk, "%s: writable by group or others (mode %04o): chmod go-w", walk->here,
		      mode & 07777);
}

static int check(struct walk *walk, const struct stat *st)
{
	bool sticky = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && !is_last(walk);

	if (is_dev_null(st))
		return 0;
	if (st->st_uid != 0 && st->st_uid != walk->trust->owners[0] &&
	    st->st_uid != walk->trust->owners[1])
		return refuse(walk, "%s: owned by uid %u, which is not trusted: chown root",
			      walk->here, st->st_uid);
	return sticky || S_ISLNK(st->st_mode) ? 0 : check_mode(walk, st->st_mode);
}

/* Returns to "/" if the path is absolute. */
static int start(struct walk *walk, const char *path)
{
	struct stat st;

	if (path[0] != '/')
		return 0;
	close_fd(&walk->at);
	walk->at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (walk->at < 0 || fstat(walk->at, &st) < 0)
		return fail(walk);
	strcpy(walk->here, "/");
	walk->mode = st.st_mode;
	return check(walk, &st);
}

/* Puts text before the part that is not resolved yet. */
static int prepend(struct walk *walk, const char *text)
{
	char rest[PATH_MAX];
	int n = snprintf(rest, sizeof(rest), "%s/%s", text, walk->rest);

	if (n < 0 || (size_t)n >= sizeof(rest)) {
		errno = ENAMETOOLONG;
		return fail(walk);
	}
	memcpy(walk->rest, rest, (size_t)n + 1);
	return 0;
}

/* Takes the next name of the path; false: the path ends. */
static bool next_name(struct walk *walk, char ret[static PATH_MAX])
{
	for (;;) {
		const char *from = walk->rest + strspn(walk->rest, "/");
		size_t size = strcspn(from, "/");

		if (size == 0)
			return false;
		memcpy(ret, from, size);
		ret[size] = '\0';
		memmove(walk->rest, from + size, strlen(from + size) + 1);
		if (strcmp(ret, ".") != 0)
			return true;
	}
}

/* Appends a name to the path of the current directory, which is for diagnostics and may be
 * truncated. */
static void append_here(struct walk *walk, const char *name)
{
	size_t length = strlen(walk->here);
	char *slash = strrchr(walk->here, '/');

	if (strcmp(name, "..") == 0)
		slash[slash == walk->here] = '\0';
	else
		snprintf(walk->here + length, sizeof(walk->here) - length, "%s%s",
			 length > 1 ? "/" : "", name);
}

static int follow(struct walk *walk, int link)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link, "", target, sizeof(target) - 1);
	int r;

	if (++walk->links > LINKS_MAX)
		errno = ELOOP;
	if (n < 0 || walk->links > LINKS_MAX)
		return fail(walk);
	target[n] = '\0';
	append_here(walk, "..");
	r = prepend(walk, target);
	return r < 0 ? r : start(walk, target);
}

/* Opens a file, which must be the end of the path. Its directory may not be sticky and writable. */
static int open_file(struct walk *walk, const char *name, int flags, const struct stat *st)
{
	int r;

	if (!is_last(walk)) {
		errno = ENOTDIR;
		return fail(walk);
	}
	append_here(walk, "..");
	r = is_dev_null(st) ? 0 : check_mode(walk, walk->mode);
	if (r < 0)
		return r;
	walk->found = openat(walk->at, name, flags | O_NOFOLLOW);
	return walk->found < 0 ? fail(walk) : 0;
}

static int step(struct walk *walk, const char *name, int flags)
{
	_cleanup_fd_ int fd = openat(walk->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(walk);
	append_here(walk, name);
	r = check(walk, &st);
	if (r < 0)
		return r;
	if (S_ISLNK(st.st_mode))
		return follow(walk, fd);
	if (!S_ISDIR(st.st_mode))
		return open_file(walk, name, flags, &st);
	close(walk->at);
	walk->at = take_fd(&fd);
	walk->mode = st.st_mode;
	return 0;
}

static int walk_all(struct walk *walk, int flags)
{
	char name[PATH_MAX];
	int r = start(walk, "/");

	while (r >= 0 && next_name(walk, name))
		r = step(walk, name, flags);
	if (r >= 0 && walk->found < 0) {
		walk->found = openat(walk->at, ".", flags);
		r = walk->found < 0 ? fail(walk) : 0;
	}
	return r;
}

int trust_open(const char *path, const struct trust *trust, int flags,
	       struct diagnostics *diagnostics)
{
	_cleanup_(walk_done) struct walk walk = {
		.trust = trust, .diagnostics = diagnostics, .path = path, .at = -1, .found = -1
	};
	char directory[PATH_MAX] = "";
	int r;

	flags |= O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	if (path[0] != '/' && !getcwd(directory, sizeof(directory)))
		return fail(&walk);
	r = prepend(&walk, path);
	if (r >= 0)
		r = prepend(&walk, directory);
	if (r >= 0)
		r = walk_all(&walk, flags);
	return r < 0 ? r : take_fd(&walk.found);
}
