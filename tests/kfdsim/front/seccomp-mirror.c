/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/base.h"

#define NEW ".new" /* nothing in the tree begins with a dot */

struct mirror {
	struct tree *tree;
	const char *path, *to, *device;
	char **names; /* of what is in the tree */
	size_t n;
};

/* As mkdir and the like, whatever the umask. */
static int settle(int fd, mode_t mode)
{
	int r = fchmod(fd, mode) < 0 ? -errno : 0;

	close(fd);
	return r;
}

static int make_directory(const char *to)
{
	int fd;

	if (mkdir(to, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : settle(fd, 0755);
}

static bool same(const char *to, const char *text, size_t size)
{
	_cleanup_(freep) char *old = NULL;
	int fd = open(to, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool equal;

	if (fd < 0)
		return false;
	equal = fstat(fd, &st) == 0 && (size_t)st.st_size == size;
	old = equal ? malloc(size + 1) : NULL;
	equal = old && read(fd, old, size) == (ssize_t)size && memcmp(old, text, size) == 0;
	close(fd);
	return equal;
}

static int write_all(int fd, const char *text, size_t size)
{
	ssize_t n;

	for (size_t done = 0; done < size; done += (size_t)n) {
		n = write(fd, text + done, size - done);
		if (n < 0)
			return -errno;
	}
	return 0;
}

static int replace(const char *to, const char *text, size_t size)
{
	_cleanup_(freep) char *new = NULL;
	int fd, r;

	if (asprintf(&new, "%s" NEW, to) < 0)
		return -ENOMEM;
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, size);
	if (r < 0) {
		close(fd);
		return r;
	}
	r = settle(fd, 0444);
	return r == 0 && rename(new, to) < 0 ? -errno : r;
}

static int mirror_text(struct tree *tree, const char *path, const char *to)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	int r;

	r = tree_read(tree, path, &text, &size);
	if (r < 0)
		return r == -ENOENT ? 0 : r; /* gone since it was listed */
	return same(to, text, size) ? 0 : replace(to, text, size);
}

/* A pipe tells at once what is written to it, before anything that comes after. */
static int make_control(const char *to)
{
	int fd;

	if (mkfifo(to, 0600) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = open(to, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : settle(fd, 0644);
}

static int mirror_entry(const char *name, enum tree_kind kind, void *userdata)
{
	struct mirror *mirror = userdata;
	_cleanup_(freep) char *path = NULL, *to = NULL;
	char **names = realloc(mirror->names, (mirror->n + 1) * sizeof(*names));

	if (!names)
		return -ENOMEM;
	mirror->names = names;
	names[mirror->n] = strdup(name);
	if (!names[mirror->n])
		return -ENOMEM;
	mirror->n++;
	if (asprintf(&path, "%s%s%s", mirror->path, *mirror->path ? "/" : "", name) < 0)
		return -ENOMEM;
	if (asprintf(&to, "%s/%s", mirror->to, name) < 0)
		return -ENOMEM;

	switch (kind) {
	case TREE_DIRECTORY: return mirror_tree(mirror->tree, path, to, mirror->device);
	case TREE_TEXT: return mirror_text(mirror->tree, path, to);
	case TREE_CONTROL: return make_control(to);
	case TREE_RENDER: return link(mirror->device, to) < 0 && errno != EEXIST ? -errno : 0;
	case TREE_KFD:
	case TREE_NONE: break;
	}
	return 0;
}

static int remove_all(const char *path)
{
	struct dirent *entry;
	char below[4096];
	DIR *directory;

	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	directory = opendir(path);
	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if ((size_t)snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
		    sizeof(below))
			(void)remove_all(below);
	}
	closedir(directory);
	return rmdir(path) < 0 ? -errno : 0;
}

static bool listed(const struct mirror *mirror, const char *name)
{
	for (size_t i = 0; i < mirror->n; i++)
		if (strcmp(mirror->names[i], name) == 0)
			return true;
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int remove_others(const struct mirror *mirror)
{
	DIR *directory = opendir(mirror->to);
	struct dirent *entry;
	int r = 0;

	if (!directory)
		return -errno;
	while (r == 0 && (entry = readdir(directory))) {
		_cleanup_(freep) char *path = NULL;

		if (listed(mirror, entry->d_name))
			continue;
		r = asprintf(&path, "%s/%s", mirror->to, entry->d_name) < 0 ? -ENOMEM
									    : remove_all(path);
	}
	closedir(directory);
	return r;
}

int mirror_tree(struct tree *tree, const char *path, const char *to, const char *device)
{
	struct mirror mirror = { .tree = tree, .path = path, .to = to, .device = device };
	int r;

	r = make_directory(to);
	r = r < 0 ? r : tree_each(tree, path, mirror_entry, &mirror);
	if (r == -ENOENT && mirror.n == 0) /* gone since it was listed */
		r = 0;
	r = r < 0 ? r : remove_others(&mirror);
	for (size_t i = 0; i < mirror.n; i++)
		free(mirror.names[i]);
	free(mirror.names);
	return r;
}
