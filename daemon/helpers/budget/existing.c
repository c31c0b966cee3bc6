/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/budget/existing.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/fd.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

/* Whether the directory of the cgroup, or one above it, has the id. Cuts the path. */
static bool is_below(char *path, uint64_t id)
{
	struct stat st;

	for (char *end; (end = strrchr(path, '/')); *end = '\0') {
		if (stat(path, &st) == 0 && st.st_ino == id)
			return true;
		if (strcmp(path, CGROUP_ROOT) == 0)
			break;
	}
	return false;
}

/* A process that has ended is in no cgroup. */
static bool is_in(const char *pid, uint64_t cgroup)
{
	char text[4096] = "", path[sizeof(text) + sizeof(CGROUP_ROOT)];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%s/cgroup", pid);

	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read_to_end(fd, text, sizeof(text) - 1) <= 0)
		return false;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	line = line ? strchr(line, '/') : NULL;
	if (!line)
		return false;
	snprintf(path, sizeof(path), "%s%.*s", CGROUP_ROOT, (int)strcspn(line, "\n"), line);
	return is_below(path, cgroup);
}

static DIR *open_below(int directory, const char *name)
{
	return open_directory(openat(directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/* A process without queues has an empty directory. Since Linux 7.2, further contexts of the process
 * have a directory context_N each in that of the process. */
static int count_queues(int parent, const char *name)
{
	_cleanup_(closedirp) DIR *process = open_below(parent, name), *queues = NULL;
	const struct dirent *entry;
	int n = 0;

	if (!process)
		return 0;
	queues = open_below(dirfd(process), "queues");
	while (queues && (entry = readdir(queues)))
		n += isdigit((unsigned char)entry->d_name[0]) != 0;
	while ((entry = readdir(process)))
		if (strncmp(entry->d_name, "context_", strlen("context_")) == 0)
			n += count_queues(dirfd(process), entry->d_name);
	return n;
}

int existing_queues(const char *sysfs, uint64_t cgroup)
{
	_cleanup_(closedirp) DIR *directory = NULL;
	const struct dirent *entry;
	char path[4096];
	int n = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/class/kfd/kfd/proc", sysfs) >= sizeof(path))
		return -ENAMETOOLONG;
	directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(directory)))
		if (isdigit((unsigned char)entry->d_name[0]) && is_in(entry->d_name, cgroup))
			n += count_queues(dirfd(directory), entry->d_name);
	return n;
}
