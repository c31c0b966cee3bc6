/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/container.h"

#include <errno.h>

#include "check.h"
#include "scratch.h"
#include "util/base.h"

#define POD "/machine.slice/libpod-1.scope"
#define SESSION "/user.slice/user-7.slice/session-3.scope"

/* A process as /proc shows it; pids: in each namespace. */
static pid_t put(const struct scratch *proc, pid_t pid, pid_t parent, const char *pids,
		 const char *cgroup)
{
	char name[32], text[2048];

	snprintf(name, sizeof(name), "%d", (int)pid);
	scratch_mkdir(proc, name);
	snprintf(name, sizeof(name), "%d/status", (int)pid);
	snprintf(text, sizeof(text),
		 "Name:\ta\\nNSpid:\t9\t1\nPPid:\t%d\nNSpid:\t%d%s\nNSpgid:\t1\n", (int)parent,
		 (int)pid, pids);
	scratch_write(proc, name, text);
	snprintf(name, sizeof(name), "%d/cgroup", (int)pid);
	snprintf(text, sizeof(text), "3:name=x:/0::/y\n0::%s\n", cgroup);
	scratch_write(proc, name, text);
	return pid;
}

static int begins(const struct scratch *proc, pid_t pid)
{
	struct container_place place;

	return container_read(proc->path, pid, &place);
}

static bool has(const struct scratch *proc, pid_t first, pid_t pid)
{
	struct container_place container, place;

	CHECK(container_read(proc->path, first, &container) == 0);
	return container_place_read(proc->path, pid, &place) == 0 &&
	       container_has(&container, &place);
}

/* conmon 10, the first process 20 of the container */
static struct scratch proc_new(void)
{
	struct scratch proc = scratch_new();

	put(&proc, 1, 0, "", "/init.scope");
	put(&proc, 10, 1, "", "/machine.slice/libpod-conmon-1.scope");
	put(&proc, 20, 10, "\t1", POD);
	return proc;
}

TEST(container_begins_with_process_1_in_a_cgroup_where_its_parent_is_not)
{
	_cleanup_(scratch_done) struct scratch proc = proc_new();

	CHECK(begins(&proc, 20) == 0);
	CHECK(begins(&proc, put(&proc, 21, 10, "\t2", POD)) == -ENODATA);
	CHECK(begins(&proc, put(&proc, 22, 10, "", POD)) == -ENODATA); /* --pid=host */
	CHECK(begins(&proc, put(&proc, 23, 20, "\t5\t1", POD "/inner")) == 0);
	CHECK(begins(&proc, put(&proc, 24, 1, "\t1", POD)) == 0); /* its monitor was killed */
	CHECK(begins(&proc, put(&proc, 25, 99, "\t1", POD)) == -ENOENT);
	CHECK(begins(&proc, 99) == -ENOENT);
}

TEST(shared_cgroup_is_not_that_of_a_container)
{
	_cleanup_(scratch_done) struct scratch proc = proc_new();

	put(&proc, 11, 1, "", SESSION);
	put(&proc, 12, 11, "", SESSION "/below");
	put(&proc, 13, 1, "", "/../other");
	CHECK(begins(&proc, put(&proc, 30, 11, "\t1", SESSION)) == -ENODATA); /* unshare --pid */
	CHECK(begins(&proc, put(&proc, 31, 12, "\t1", SESSION)) == -ENODATA);
	CHECK(begins(&proc, put(&proc, 32, 11, "\t1", SESSION "/own")) == 0);
	CHECK(begins(&proc, put(&proc, 33, 10, "\t1", "/")) == -ENODATA);
	CHECK(begins(&proc, put(&proc, 34, 13, "\t1", "/")) == -ENODATA);
	CHECK(begins(&proc, put(&proc, 35, 10, "\t1", "/../x")) == -ENODATA);
	CHECK(begins(&proc, put(&proc, 36, 0, "\t1", POD)) == -ENOENT);
}

TEST(container_has_what_an_engine_adds_and_no_process_from_outside)
{
	_cleanup_(scratch_done) struct scratch proc = proc_new();

	CHECK(has(&proc, 20, put(&proc, 40, 11, "\t7", POD)));
	CHECK(has(&proc, 20, put(&proc, 41, 11, "\t8", POD "/init.scope")));
	CHECK(has(&proc, 20, put(&proc, 42, 11, "\t9\t1", POD "/inner")));
	CHECK(!has(&proc, 20, put(&proc, 43, 1, "", POD)));
	CHECK(!has(&proc, 20, put(&proc, 44, 11, "\t7", POD "x")));
	CHECK(!has(&proc, 20, put(&proc, 45, 11, "\t7", "/machine.slice")));
	CHECK(!has(&proc, 20, put(&proc, 46, 11, "\t7", "/")));
	CHECK(!has(&proc, 20, put(&proc, 47, 11, "\t7", "/machine.slice/libpod-2.scope")));
	put(&proc, 48, 20, "\t5\t1", POD "/inner");
	CHECK(has(&proc, 48, 42) && !has(&proc, 48, 20));
	put(&proc, 49, 40, "\t9", POD "/inner");
	CHECK(!has(&proc, 48, 49));
}

TEST(malformed_files_of_a_process_name_no_place)
{
	static const char *const statuses[] = { "", "PPid:\t1\n", "NSpid:\t5\t1\n",
						"PPid:\t1\nNSpid:\t5\t1", "PPid:\t1\nNSpid:\n" };
	static const char *const cgroups[] = { "",       "0::",      "0::/a",
					       "0::a\n", "1:x:/a\n", "0::/../a\n" };
	_cleanup_(scratch_done) struct scratch proc = proc_new();
	struct container_place place;
	char longest[1100];

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		scratch_write(&proc, "20/status", statuses[i]);
		CHECK(container_read(proc.path, 20, &place) == -ENODATA);
	}
	put(&proc, 50, 10, "\t1", POD);
	for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++) {
		scratch_write(&proc, "50/cgroup", cgroups[i]);
		CHECK(container_place_read(proc.path, 50, &place) == -ENODATA);
	}
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "0::/", 4);
	memcpy(longest + sizeof(longest) - 2, "\n", 2);
	scratch_write(&proc, "50/cgroup", longest);
	CHECK(container_place_read(proc.path, 50, &place) == -ENAMETOOLONG);
}
