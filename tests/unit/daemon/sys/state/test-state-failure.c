/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"
#include "state-rig.h"

TEST(removed_directory_is_enoent)
{
	struct rig *rig = state_rig_new();
	_cleanup_(state_closep) struct state *state = open_state(rig);
	uint64_t first = state_first_id(state);

	CHECK(rmdir(scratch_at(&rig->scratch, "leases")) == 0);
	CHECK(state_save(state, &rig->arbiter, &rig->lease) == -ENOENT);
	CHECK(state_forget(state, 17) == 0);

	CHECK(rmdir(rig->scratch.path) == 0);
	CHECK(state_ids_until(state, first) == -ENOENT);
	CHECK(mkdir(rig->scratch.path, 0700) == 0);
	CHECK(state_ids_until(state, first) == -ENOENT); /* this is a new directory */
	state_rig_free(rig);
}

TEST(unusable_runtime_directory_is_refused)
{
	struct rig *rig = state_rig_new();
	struct state *state = NULL;

	CHECK(state_open(scratch_at(&rig->scratch, "none"), NULL, &state, &rig->diagnostics) ==
	      -ENOENT);
	CHECK(state_says(rig, "/none"));
	scratch_write(&rig->scratch, "leases", "a file");
	CHECK(state_open(rig->scratch.path, NULL, &state, &rig->diagnostics) == -ENOTDIR);
	CHECK(state_says(rig, "/leases"));
	CHECK(unlink(scratch_at(&rig->scratch, "leases")) == 0 && !state);

	if (chown(scratch_mkdir(&rig->scratch, "leases"), 12345, (gid_t)-1) == 0)
		CHECK(state_open(rig->scratch.path, NULL, &state, &rig->diagnostics) == -EPERM &&
		      !state);
	state_rig_free(rig);
}

TEST(failed_write_leaves_the_file_unchanged)
{
	struct rig *rig = state_rig_new();
	_cleanup_(state_closep) struct state *state = open_state(rig);
	struct rlimit limit, small;
	struct stat before, after;
	int r;

	save(rig, state, 17);
	CHECK(stat(scratch_at(&rig->scratch, "leases/17.json"), &before) == 0);

	CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	small = (struct rlimit){ .rlim_cur = 100, .rlim_max = limit.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	r = state_save(state, &rig->arbiter, &rig->lease);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);

	CHECK(r == -EFBIG && !there(rig, "leases/.new"));
	CHECK(stat(scratch_at(&rig->scratch, "leases/17.json"), &after) == 0);
	CHECK(before.st_ino == after.st_ino && before.st_size == after.st_size);
	state_rig_free(rig);
}

/* Mounts a small tmpfs in a mount namespace of this process. */
static bool mount_small(const char *path)
{
	return unshare(CLONE_NEWNS) == 0 && mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", path, "tmpfs", 0, "size=64k,nr_inodes=16") == 0;
}

/* Fills the file system until nothing more fits. */
static void fill(const struct rig *rig)
{
	int fd = open(scratch_at(&rig->scratch, "filler"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char block[4096];

	CHECK(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	CHECK(errno == ENOSPC && close(fd) == 0);
}

static void fill_and_seal(struct rig *rig)
{
	_cleanup_(state_closep) struct state *state = open_state(rig);
	uint64_t first = state_first_id(state);

	save(rig, state, 17);
	fill(rig);
	CHECK(state_save(state, &rig->arbiter, &rig->lease) == -ENOSPC);
	CHECK(state_ids_until(state, first) == -ENOSPC);
	CHECK(!there(rig, "leases/.new") && !there(rig, ".new") && !there(rig, "next-id"));

	CHECK(unlink(scratch_at(&rig->scratch, "filler")) == 0);
	CHECK(state_ids_until(state, first) == 0);
	save(rig, state, 17);
	CHECK(mount("", rig->scratch.path, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	CHECK(state_save(state, &rig->arbiter, &rig->lease) == -EROFS);
	CHECK(state_forget(state, 17) == -EROFS);
}

TEST(full_and_read_only_file_systems_are_reported)
{
	struct rig *rig = state_rig_new();
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		if (!mount_small(rig->scratch.path))
			_exit(77);
		fill_and_seal(rig);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	state_rig_free(rig);
	if (WEXITSTATUS(status) == 77)
		SKIP("a file system of its own needs root");
	CHECK(WEXITSTATUS(status) == 0);
}
