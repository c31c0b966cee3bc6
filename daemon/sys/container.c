/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/fd.h"

static int read_file(const char *proc, pid_t pid, const char *name, char *buf, size_t size)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name);
	return read_text_at(AT_FDCWD, path, buf, size);
}

/* What follows on the line that begins so; NULL: there is no such line, or it has no end. */
static const char *find_line(const char *text, const char *start)
{
	size_t length = strlen(start);

	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		if (strncmp(line, start, length) == 0)
			return line + length;
	return NULL;
}

/* "NSpid:\t4711\t12\t1": the pid in each namespace, the outermost first (proc(5)). */
static int read_status(const char *proc, pid_t pid, struct container_place *ret)
{
	const char *parent, *pids;
	char text[4096], *end;
	int r = read_file(proc, pid, "status", text, sizeof(text));

	if (r < 0)
		return r;
	parent = find_line(text, "PPid:");
	pids = find_line(text, "NSpid:");
	if (!parent || !pids)
		return -ENODATA;
	ret->parent = (pid_t)strtol(parent, NULL, 10);
	ret->depth = 0;
	for (long number; (number = strtol(pids, &end, 10)), end != pids; pids = end) {
		ret->inner_pid = (pid_t)number;
		ret->depth++;
	}
	return 0;
}

/* "0::/PATH" (cgroups(7)); "/../" is outside of the cgroup namespace. The name of a cgroup has no line end. */
static int read_cgroup(const char *proc, pid_t pid, struct container_place *ret)
{
	char text[8192];
	const char *path;
	size_t length;
	int r = read_file(proc, pid, "cgroup", text, sizeof(text));

	if (r < 0)
		return r;
	path = find_line(text, "0::");
	if (!path || *path != '/' || strncmp(path, "/..", 3) == 0)
		return -ENODATA;
	length = strcspn(path, "\n");
	if (length >= sizeof(ret->cgroup))
		return -ENAMETOOLONG;
	memcpy(ret->cgroup, path, length);
	ret->cgroup[length] = '\0';
	return 0;
}

int container_place_read(const char *proc, pid_t pid, struct container_place *ret)
{
	int r = read_status(proc, pid, ret);

	if (r < 0)
		return r;
	return ret->depth < 2 ? -ENODATA : read_cgroup(proc, pid, ret);
}

static bool is_within(const char *cgroup, const char *above)
{
	size_t length = strcmp(above, "/") == 0 ? 0 : strlen(above);

	return strncmp(cgroup, above, length) == 0 &&
	       (cgroup[length] == '/' || cgroup[length] == '\0');
}

int container_read(const char *proc, pid_t pid, struct container_place *ret)
{
	struct container_place place, outside;
	int r = container_place_read(proc, pid, &place);

	if (r < 0)
		return r;
	if (place.inner_pid != 1)
		return -ENODATA;
	r = read_cgroup(proc, place.parent, &outside);
	if (r < 0)
		return r;
	/* This leaves out the root cgroup, too. */
	if (is_within(outside.cgroup, place.cgroup))
		return -ENODATA;
	*ret = place;
	return 0;
}

bool container_has(const struct container_place *container, const struct container_place *process)
{
	return process->depth >= container->depth && is_within(process->cgroup, container->cgroup);
}
