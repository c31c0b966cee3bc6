/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/program/namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/base.h"

#define DEBUG "/sys/kernel/debug"
#define CPU "/sys/devices/system/cpu/cpu0"

static int fail(const char *what, const char *path)
{
	int r = -errno;

	fprintf(stderr, "kfdsim: %s %s: %s\n", what, path, strerror(-r));
	return r;
}

int namespace_private(const char *scratch, char *why, size_t size)
{
	int r;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		r = -errno;
		snprintf(why, size, "no mount namespace of its own (%s): it takes CAP_SYS_ADMIN",
			 strerror(-r));
		return r;
	}
	if (mount("kfdsim", scratch, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0) {
		r = -errno;
		snprintf(why, size, "%s: %s", scratch, strerror(-r));
		return r;
	}
	return 0;
}

static int bind_directory(const char *from, const char *to)
{
	if (mkdir(to, 0755) < 0 && errno != EEXIST)
		return fail("mkdir", to);
	return mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0 ? fail("bind", to) : 0;
}

static int bind_file(const char *from, const char *to)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		return fail("create", to);
	close(fd);
	return mount(from, to, NULL, MS_BIND, NULL) < 0 ? fail("bind", to) : 0;
}

static int copy_link(const char *from, const char *to)
{
	char target[PATH_MAX] = "";

	if (readlink(from, target, sizeof(target) - 1) < 0)
		return fail("read", from);
	return symlink(target, to) < 0 ? fail("link", to) : 0;
}

/* Makes `to` what `from` is: both name the same thing of before and after. */
static int keep(const char *from, const char *to)
{
	struct stat st;

	if (lstat(from, &st) < 0)
		return errno == ENOENT ? 0 : fail("stat", from);
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to);
	return S_ISDIR(st.st_mode) ? bind_directory(from, to) : bind_file(from, to);
}

static int cover(const char *path)
{
	if (mount("kfdsim", path, "tmpfs", MS_NOSUID, "mode=755") < 0)
		return fail("mount", path);
	return 0;
}

/* What is in a directory stays as it was, but for one name, and more can be put there. The
 * covered one is reached by the descriptor. */
static int open_up(const char *path, const char *but)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct dirent *entry;
	DIR *old = opendir(path);
	int r;

	if (!old)
		return fail("open", path);
	r = cover(path);
	while (r == 0 && (entry = readdir(old))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, but) == 0)
			continue;
		snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", dirfd(old), name);
		snprintf(to, sizeof(to), "%s/%s", path, name);
		r = keep(from, to);
	}
	closedir(old);
	return r;
}

static int cover_sys(const char *files)
{
	char from[PATH_MAX];
	int r;

	r = open_up("/sys/devices/virtual", "kfd");
	if (r < 0)
		return r;
	if (mkdir("/sys/devices/virtual/kfd", 0755) < 0)
		return fail("mkdir", "/sys/devices/virtual/kfd");
	snprintf(from, sizeof(from), "%s/kfd", files);
	r = bind_directory(from, "/sys/devices/virtual/kfd/kfd");
	r = r < 0 ? r : open_up("/sys/class", "kfd");
	if (r < 0)
		return r;
	if (mkdir("/sys/class/kfd", 0755) < 0 ||
	    symlink("../../devices/virtual/kfd/kfd", "/sys/class/kfd/kfd") < 0)
		return fail("make", "/sys/class/kfd");
	return 0;
}

static int write_file(const char *path, const char *text)
{
	FILE *stream = fopen(path, "we");

	if (!stream)
		return fail("create", path);
	fputs(text, stream);
	return fclose(stream) != 0 ? fail("write", path) : 0;
}

/* libhsakmt has no GPUs where no processor has a cache in sysfs, as in some virtual machines: the first
 * processor gets one. */
static int cover_cpu(void)
{
	static const struct {
		const char *name, *text;
	} members[] = {
		{ "level", "1\n" },
		{ "type", "Data\n" },
		{ "size", "32K\n" },
		{ "coherency_line_size", "64\n" },
		{ "physical_line_partition", "1\n" },
		{ "ways_of_associativity", "8\n" },
		{ "shared_cpu_map", "1\n" },
		{ "shared_cpu_list", "0\n" },
	};
	char path[PATH_MAX];
	int r;

	if (access(CPU, F_OK) < 0 || access(CPU "/cache/index0", F_OK) == 0)
		return 0;
	r = open_up(CPU, "cache");
	if (r == 0 && (mkdir(CPU "/cache", 0755) < 0 || mkdir(CPU "/cache/index0", 0755) < 0))
		r = fail("mkdir", CPU "/cache/index0");
	for (size_t i = 0; i < ARRAY_SIZE(members) && r == 0; i++) {
		snprintf(path, sizeof(path), CPU "/cache/index0/%s", members[i].name);
		r = write_file(path, members[i].text);
	}
	return r;
}

static int cover_module(const char *sysfs)
{
	char from[PATH_MAX];
	int r;

	snprintf(from, sizeof(from), "%s/module/amdgpu", sysfs);
	if (access(from, F_OK) < 0)
		return 0;
	r = open_up("/sys/module", "amdgpu");
	return r < 0 ? r : bind_directory(from, "/sys/module/amdgpu");
}

/* Devices that programs want; never one of the host's GPUs. */
static int cover_dev(const char *files)
{
	static const char *const wanted[] = {
		"null", "zero",   "full", "random", "urandom", "tty",    "ptmx", "console",
		"pts",  "mqueue", "fd",   "stdin",  "stdout",  "stderr", "log",
	};
	char from[PATH_MAX], to[PATH_MAX];
	int fd, r;

	fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fail("open", "/dev");
	r = cover("/dev");
	for (size_t i = 0; i < ARRAY_SIZE(wanted) && r == 0; i++) {
		snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", fd, wanted[i]);
		snprintf(to, sizeof(to), "/dev/%s", wanted[i]);
		r = keep(from, to);
	}
	close(fd);
	if (r == 0 && mkdir("/dev/shm", 01777) < 0)
		r = fail("mkdir", "/dev/shm");
	if (r == 0 && mount("kfdsim", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		r = fail("mount", "/dev/shm");
	snprintf(from, sizeof(from), "%s/dev/kfd", files);
	r = r < 0 ? r : bind_file(from, "/dev/kfd");
	snprintf(from, sizeof(from), "%s/dev/dri", files);
	return r < 0 ? r : bind_directory(from, "/dev/dri");
}

/* rocminfo runs `lsmod | grep amdgpu` and believes nothing else. */
static int add_lsmod(void)
{
	static const char script[] = "#!/bin/sh\n"
				     "echo 'Module                  Size  Used by'\n"
				     "echo 'amdgpu              10000000  0'\n";
	const char *old = getenv("PATH");
	_cleanup_(freep) char *path = NULL;
	int r;

	if (mkdir("/dev/kfdsim", 0755) < 0)
		return fail("mkdir", "/dev/kfdsim");
	r = write_file("/dev/kfdsim/lsmod", script);
	if (r < 0)
		return r;
	if (chmod("/dev/kfdsim/lsmod", 0755) < 0)
		return fail("chmod", "/dev/kfdsim/lsmod");
	if (asprintf(&path, "/dev/kfdsim:%s", old ? old : "/usr/bin:/bin") < 0)
		return -ENOMEM;
	return setenv("PATH", path, 1) < 0 ? -errno : 0;
}

/* Stands in the scratch directory, which it covers. */
static int cover_debug(const char *scratch)
{
	int r;

	if (chdir(scratch) < 0)
		return fail("go to", scratch);
	r = cover(scratch);
	r = r < 0 ? r : bind_directory("files/debug/kfd", DEBUG "/kfd");
	return r < 0 ? r : bind_directory("files/debug/kfdsim", DEBUG "/kfdsim");
}

int namespace_cover(const char *scratch, const char *sysfs)
{
	_cleanup_(freep) char *here = getcwd(NULL, 0), *files = NULL;
	int r;

	if (!here)
		return fail("find", "the working directory");
	if (asprintf(&files, "%s/files", scratch) < 0)
		return -ENOMEM;
	if (unshare(CLONE_NEWNS) < 0)
		return fail("unshare", "the mount namespace");
	r = cover_module(sysfs);
	r = r < 0 ? r : cover_sys(files);
	r = r < 0 ? r : cover_cpu();
	r = r < 0 ? r : cover_dev(files);
	r = r < 0 ? r : add_lsmod();
	r = r < 0 ? r : cover_debug(scratch);
	return r == 0 && chdir(here) < 0 ? fail("go to", here) : r;
}
