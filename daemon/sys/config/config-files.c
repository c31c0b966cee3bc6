/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config-internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/trust.h"

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Whether the directory has such a file. Not what a link leads to: one that leads nowhere is to
 * be told, not passed over. -ENOENT, -EINVAL with a note. */
static int look_for(const char *directory, const char *name, const struct trust *trust,
		    struct diagnostics *diagnostics)
{
	int fd = trust_open(directory, trust, O_PATH | O_DIRECTORY, diagnostics), r = 0;
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = -errno;
	close(fd);
	if (r >= 0 || r == -ENOENT)
		return r;
	diagnostics_add(diagnostics, true, "%s/%s: %s", directory, name, strerror(-r));
	return -EINVAL;
}

int config_find(const char *const *directories, const char *name, const struct trust *trust,
		char **ret, struct diagnostics *diagnostics)
{
	_cleanup_(freep) char *found = NULL;
	int r, worst = 0;

	for (; *directories; directories++) {
		char *path;

		r = look_for(*directories, name, trust, diagnostics);
		if (r < 0 && r != -ENOENT)
			worst = r;
		if (r < 0)
			continue;
		if (asprintf(&path, "%s/%s", *directories, name) < 0)
			return -ENOMEM;
		free(found);
		found = path;
	}
	if (worst == 0)
		*ret = TAKE_PTR(found);
	return worst;
}

/* Takes path. */
static int list_put(struct config_list *list, char *path)
{
	char **paths;

	for (size_t i = 0; i < list->n; i++) {
		if (strcmp(file_name(list->paths[i]), file_name(path)) != 0)
			continue;
		free(list->paths[i]);
		list->paths[i] = path;
		return 0;
	}

	paths = reallocarray(list->paths, list->n + 1, sizeof(*paths));
	if (!paths) {
		free(path);
		return -ENOMEM;
	}
	list->paths = paths;
	list->paths[list->n++] = path;
	return 0;
}

static bool is_conf(const char *name)
{
	size_t size = strlen(name);

	return *name != '.' && size > 5 && strcmp(name + size - 5, ".conf") == 0;
}

static DIR *open_directory(int fd)
{
	DIR *directory = fdopendir(fd);
	int r = errno;

	if (!directory)
		close(fd);
	errno = r;
	return directory;
}

static int list_directory(const char *path, bool required, const struct trust *trust,
			  struct config_list *list, struct diagnostics *diagnostics)
{
	int fd = trust_open(path, trust, O_RDONLY | O_DIRECTORY, diagnostics);
	_cleanup_(close_directory) DIR *directory = fd >= 0 ? open_directory(fd) : NULL;
	const struct dirent *entry;
	char *file;
	int r;

	if (fd == -ENOENT && required)
		diagnostics_add(diagnostics, true, "%s: %s", path, strerror(ENOENT));
	if (fd < 0)
		return fd == -ENOENT && !required ? 0 : -EINVAL;
	while (directory && (errno = 0, entry = readdir(directory))) {
		if (!is_conf(entry->d_name))
			continue;
		if (asprintf(&file, "%s/%s", path, entry->d_name) < 0)
			return -ENOMEM;
		r = list_put(list, file);
		if (r < 0)
			return r;
	}
	if (directory && errno == 0)
		return 0;
	diagnostics_add(diagnostics, true, "%s: %s", path, strerror(errno));
	return -EINVAL;
}

static int compare_names(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(file_name(*a), file_name(*b));
}

int config_find_all(const char *const *directories, bool required, const struct trust *trust,
		    struct config_list *list, struct diagnostics *diagnostics)
{
	int r, worst = 0;

	for (; *directories; directories++) {
		r = list_directory(*directories, required, trust, list, diagnostics);
		if (r < 0)
			worst = r;
	}
	if (list->n > 0)
		qsort(list->paths, list->n, sizeof(*list->paths), compare_names);
	return worst;
}

void config_list_done(struct config_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
	*list = (struct config_list){ 0 };
}
