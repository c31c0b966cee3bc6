/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-login.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/grow.h"
#include "util/number.h"

#define LEVELS_MAX 32U

/* ---- the unit of a process--------------------------------------------------------------- */

static bool has_type(const char *unit, const char *type)
{
	size_t length = strlen(unit), n = strlen(type);

	return length > n && strcmp(unit + length - n, type) == 0;
}

int unit_cgroup(const char *path, const char *unit, char *ret, size_t size)
{
	size_t length = strlen(unit);

	for (const char *at = path; (at = strchr(at, '/'));) {
		const char *name = ++at;
		size_t n = strcspn(name, "/"), whole = (size_t)(name - path) + n;

		/* systemd puts '_' before names that could be files of the kernel. */
		if (n == length + 1 && name[0] == '_')
			name++, n--;
		if (n != length || strncmp(name, unit, n) != 0)
			continue;
		if (whole >= size)
			return -ENAMETOOLONG;
		memcpy(ret, path, whole);
		ret[whole] = '\0';
		return 0;
	}
	return -ENODATA;
}

static bool is_unified(const char *root)
{
	struct statfs fs;

	return statfs(root, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

int unit_of_process(pid_t pid, struct unit_place *ret)
{
	_cleanup_(freep) char *unit = NULL, *path = NULL;
	struct unit_place place;
	int r;

	if (pid <= 0) /* sd-login takes 0 for the calling process */
		return -ESRCH;
	if (!is_unified(CGROUP_ROOT))
		return -EOPNOTSUPP;
	r = sd_pid_get_unit(pid, &unit);
	if (r >= 0)
		r = sd_pid_get_cgroup(pid, &path);
	if (r < 0)
		return r == -ENXIO ? -ENODATA : r;
	if ((!has_type(unit, ".service") && !has_type(unit, ".scope")) ||
	    strlen(unit) >= sizeof(place.unit))
		return -ENODATA;
	strcpy(place.unit, unit);
	r = unit_cgroup(path, unit, place.cgroup, sizeof(place.cgroup));
	if (r < 0)
		return r;
	*ret = place;
	return 0;
}

/* ---- the processes of a unit------------------------------------------------------------------ */

struct members {
	pid_t *list;
	size_t n;
	unsigned cgroups;
};

static int add(struct members *members, pid_t pid)
{
	pid_t *added;

	if (members->n == UNIT_PROCESSES_MAX)
		return -E2BIG;
	added = grow(&members->list, &members->n, sizeof(*added));
	if (!added)
		return -ENOMEM;
	*added = pid;
	return 0;
}

DEFINE_CLEANUP(FILE *, fclose)

static int open_below(int directory, const char *name, int flags)
{
	int fd = openat(directory, name, flags | O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* 0 is a process outside of this pid namespace. */
static int take_line(struct members *members, const char *line)
{
	uint64_t pid;

	if (number_parse_in(line, "\n", 0, INT32_MAX, &pid) < 0)
		return -EBADMSG;
	return pid == 0 ? -EXDEV : add(members, (pid_t)pid);
}

static int read_procs(int directory, struct members *members)
{
	_cleanup_(fclosep) FILE *file = NULL;
	int fd = open_below(directory, "cgroup.procs", 0), r;
	struct stat st;
	char line[32];

	if (fd < 0)
		return fd;
	file = fdopen(fd, "r");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EBADMSG;
	errno = 0;
	while (fgets(line, sizeof(line), file)) {
		r = take_line(members, line);
		if (r < 0)
			return r;
		errno = 0;
	}
	return ferror(file) ? -errno : 0;
}

static int read_tree(int directory, unsigned level, struct members *members);

/* A cgroup that is removed meanwhile counts as empty. */
static int read_below(int parent, const char *name, unsigned level, struct members *members)
{
	int fd = open_below(parent, name, O_DIRECTORY), r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = read_tree(fd, level, members);
	return r == -ENOENT || r == -ENODEV ? 0 : r;
}

/* Takes ownership of fd. */
static int read_tree(int fd, unsigned level, struct members *members)
{
	_cleanup_(closedirp) DIR *directory = open_directory(fd);
	const struct dirent *entry;
	int r;

	if (!directory)
		return -errno;
	if (level == LEVELS_MAX || ++members->cgroups > UNIT_CGROUPS_MAX)
		return -E2BIG;
	r = read_procs(fd, members);
	while (r == 0 && (errno = 0, entry = readdir(directory))) {
		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		r = read_below(fd, entry->d_name, level + 1, members);
	}
	return r < 0 ? r : -errno;
}

DEFINE_ORDER(compare, pid_t, )

/* Also removes duplicates: a process that moves meanwhile may be read twice. */
static void sort(struct members *members)
{
	size_t n = 0;

	if (members->n > 0)
		qsort(members->list, members->n, sizeof(members->list[0]), compare);
	for (size_t i = 0; i < members->n; i++)
		if (i == 0 || members->list[i] != members->list[n - 1])
			members->list[n++] = members->list[i];
	members->n = n;
}

int unit_processes(const char *root, const char *cgroup, pid_t **ret, size_t *ret_n)
{
	struct members members = { 0 };
	char path[4096];
	int fd, r;

	if ((size_t)snprintf(path, sizeof(path), "%s%s", root, cgroup) >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open_below(AT_FDCWD, path, O_DIRECTORY);
	if (fd < 0)
		return fd;
	r = read_tree(fd, 0, &members);
	if (r < 0) {
		free(members.list);
		return r;
	}
	if (members.n > 0)
		sort(&members);
	*ret = members.list;
	*ret_n = members.n;
	return 0;
}
