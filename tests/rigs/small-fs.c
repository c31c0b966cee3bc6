/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "small-fs.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"

#define PAGE 4096

int small_fs_run(void (*play)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* Fails in a chroot, where "/" is no mount point. */
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			_exit(77);
		play();
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

void small_fs_mount(struct rig *rig, const char *options)
{
	rig_new(rig);
	CHECK(mount("none", rig_path(rig, "run"), "tmpfs", 0, options) == 0);
}

void small_fs_fill(const struct rig *rig, unsigned pages)
{
	static const char junk[PAGE] = { 1 };
	int fd = open(rig_path(rig, "run/junk"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	struct stat st;

	CHECK(fd >= 0);
	while (write(fd, junk, sizeof(junk)) > 0)
		continue;
	while (write(fd, junk, 1) > 0)
		continue;
	CHECK(fstat(fd, &st) == 0);
	if (pages > 0)
		CHECK(ftruncate(fd, st.st_size > pages * PAGE
					    ? (st.st_size + PAGE - 1) / PAGE * PAGE - pages * PAGE
					    : 0) == 0);
	close(fd);
}

void small_fs_empty(const struct rig *rig)
{
	CHECK(unlink(rig_path(rig, "run/junk")) == 0);
}

void small_fs_done(struct rig *rig)
{
	if (rig->daemon > 0 || rig->manager > 0)
		rig_stop(rig);
	CHECK(umount2(rig_path(rig, "run"), MNT_DETACH) == 0);
	rig_done(rig);
	_exit(0);
}
