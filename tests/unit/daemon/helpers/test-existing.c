/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Queues of a unit that exist before gpuarb-budget counts new ones. */

#include <errno.h>

#include "check.h"
#include "fake-sysfs.h"
#include "helpers/budget/existing.h"
#include "scratch.h"

#define CGROUP_ROOT "/sys/fs/cgroup"

static void add_queue(const char *dir, pid_t pid, const char *name)
{
	char file[128];

	snprintf(file, sizeof(file), FAKE_PROC "/%d/%s/type", (int)pid, name);
	CHECK(fake_sysfs_print(dir, file, "0") == 0);
}

TEST(queues_of_all_contexts_are_counted)
{
	_cleanup_(scratch_done) struct scratch scratch = scratch_new();
	struct stat root;

	CHECK(existing_queues(scratch.path, 1) == 0);
	CHECK(fake_sysfs_mkdir(scratch.path, FAKE_PROC) == 0);
	CHECK(existing_queues(scratch.path, 1) == 0);
	CHECK(stat(CGROUP_ROOT, &root) == 0); /* every process is below it */
	add_queue(scratch.path, getpid(), "queues/0");
	add_queue(scratch.path, getpid(), "queues/17");
	CHECK(existing_queues(scratch.path, root.st_ino) == 2);
	add_queue(scratch.path, getpid(), "context_0/queues/0");
	add_queue(scratch.path, getpid(), "context_12/queues/3");
	CHECK(existing_queues(scratch.path, root.st_ino) == 4);
	add_queue(scratch.path, 1 << 30, "queues/0"); /* no such process */
	CHECK(existing_queues(scratch.path, root.st_ino) == 4);
	CHECK(existing_queues(scratch.path, root.st_ino + 1000000) == 0);
}

TEST(a_sysfs_with_too_long_a_path_is_an_error)
{
	char path[8192];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	CHECK(existing_queues(path, 1) == -ENAMETOOLONG);
}
