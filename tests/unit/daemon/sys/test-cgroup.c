/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"
#include "scratch.h"

/* ---- cgroup of a unit ---------------------------------------------------------------- */

static int part(const char *path, const char *unit, const char *expected)
{
	char buf[64] = "";
	int r = unit_cgroup(path, unit, buf, sizeof(buf));

	CHECK(strcmp(buf, expected) == 0);
	return r;
}

TEST(cgroup_of_a_unit_ends_with_its_name)
{
	CHECK(part("/system.slice/a.service", "a.service", "/system.slice/a.service") == 0);
	CHECK(part("/a.slice/a-b.slice/x.scope/sub/deep", "x.scope",
		   "/a.slice/a-b.slice/x.scope") == 0);
	CHECK(part("/a.service/a.service", "a.service", "/a.service") == 0);
}

/* systemd escapes names that could be files of the kernel. */
TEST(underscore_before_the_name_is_removed)
{
	CHECK(part("/system.slice/_memory.service/x", "memory.service",
		   "/system.slice/_memory.service") == 0);
	CHECK(part("/system.slice/__x.service", "_x.service", "/system.slice/__x.service") == 0);
}

TEST(unit_that_is_not_in_the_path_is_enodata)
{
	CHECK(part("/system.slice/a.service", "b.service", "") == -ENODATA);
	CHECK(part("/system.slice/xa.service", "a.service", "") == -ENODATA);
	CHECK(part("/system.slice/a.servicex", "a.service", "") == -ENODATA);
	CHECK(part("/", "a.service", "") == -ENODATA);
	CHECK(part("", "a.service", "") == -ENODATA);
	CHECK(part("/0123456789012345678901234567890123456789012345678901234567890123/a.scope",
		   "a.scope", "") == -ENAMETOOLONG);
}

/* ---- a tree of files ----------------------------------------------------------------- */

struct tree {
	struct scratch scratch;
	pid_t *pids;
	size_t n;
};

static struct tree tree_new(const char *procs)
{
	struct tree tree = { .scratch = scratch_new() };

	scratch_mkdir(&tree.scratch, "u");
	scratch_write(&tree.scratch, "u/cgroup.procs", procs);
	return tree;
}

static int read_tree(struct tree *tree)
{
	free(tree->pids);
	tree->pids = NULL;
	tree->n = 0;
	return unit_processes(tree->scratch.path, "/u", &tree->pids, &tree->n);
}

static void tree_end(struct tree *tree)
{
	free(tree->pids);
	scratch_done(&tree->scratch);
}

static void put(struct tree *tree, const char *cgroup, const char *procs)
{
	char file[128];

	scratch_mkdir(&tree->scratch, cgroup);
	snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup);
	scratch_write(&tree->scratch, file, procs);
}

TEST(processes_of_nested_cgroups_belong_to_the_unit)
{
	_cleanup_(tree_end) struct tree tree = tree_new("30\n10\n");

	put(&tree, "u/b", "20\n");
	put(&tree, "u/b/c", "10\n40\n");
	put(&tree, "u/d", "");
	scratch_write(&tree.scratch, "u/cgroup.events", "populated 1\n");
	CHECK(read_tree(&tree) == 0 && tree.n == 4);
	CHECK(tree.pids[0] == 10 && tree.pids[1] == 20 && tree.pids[2] == 30 && tree.pids[3] == 40);
}

TEST(unit_without_processes_is_empty)
{
	_cleanup_(tree_end) struct tree tree = tree_new("");

	CHECK(read_tree(&tree) == 0 && tree.n == 0 && !tree.pids);
}

TEST(missing_cgroup_is_enoent)
{
	_cleanup_(tree_end) struct tree tree = tree_new("1\n");
	char path[5000];

	CHECK(unit_processes(tree.scratch.path, "/v", &tree.pids, &tree.n) == -ENOENT);
	CHECK(unit_processes(tree.scratch.path, "/u/cgroup.procs", &tree.pids, &tree.n) ==
	      -ENOTDIR);
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	CHECK(unit_processes("", path, &tree.pids, &tree.n) == -ENAMETOOLONG);
}

TEST(process_of_another_pid_namespace_is_exdev)
{
	_cleanup_(tree_end) struct tree tree = tree_new("12\n0\n13\n");

	CHECK(read_tree(&tree) == -EXDEV && !tree.pids);
}

TEST(file_that_is_no_list_of_processes_is_refused)
{
	static const char *const texts[] = { "x\n",
					     "-3\n",
					     "12",
					     "12 \n",
					     "99999999999\n",
					     "\n",
					     "123456789012345678901234567890123456789\n" };
	_cleanup_(tree_end) struct tree tree = tree_new("");

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		scratch_write(&tree.scratch, "u/cgroup.procs", texts[i]);
		CHECK(read_tree(&tree) == -EBADMSG);
	}
	CHECK(unlink(scratch_at(&tree.scratch, "u/cgroup.procs")) == 0);
	CHECK(mkfifo(scratch_at(&tree.scratch, "u/cgroup.procs"), 0600) == 0);
	CHECK(read_tree(&tree) == -EBADMSG); /* without waiting for the FIFO */
	CHECK(unlink(scratch_at(&tree.scratch, "u/cgroup.procs")) == 0);
	CHECK(symlink("/dev/null", scratch_at(&tree.scratch, "u/cgroup.procs")) == 0);
	CHECK(read_tree(&tree) == -ELOOP);
	CHECK(unlink(scratch_at(&tree.scratch, "u/cgroup.procs")) == 0);
	scratch_mkdir(&tree.scratch, "u/cgroup.procs");
	CHECK(read_tree(&tree) == -EBADMSG);
}

TEST(cgroup_removed_while_it_is_read_is_empty)
{
	_cleanup_(tree_end) struct tree tree = tree_new("7\n");

	scratch_mkdir(&tree.scratch, "u/gone"); /* as if its files were removed already */
	CHECK(read_tree(&tree) == 0 && tree.n == 1);
	CHECK(unlink(scratch_at(&tree.scratch, "u/cgroup.procs")) == 0);
	CHECK(read_tree(&tree) == -ENOENT);
}

TEST(too_deep_or_wide_trees_are_refused)
{
	struct tree tree = tree_new("1\n");
	char path[256] = "u", name[64];

	for (unsigned i = 0; i < 31; i++) {
		strcat(path, "/a");
		put(&tree, path, "2\n");
	}
	CHECK(read_tree(&tree) == 0 && tree.n == 2);
	strcat(path, "/a");
	put(&tree, path, "2\n");
	CHECK(read_tree(&tree) == -E2BIG);
	tree_end(&tree);

	tree = tree_new("1\n");
	for (unsigned i = 1; i < UNIT_CGROUPS_MAX; i++) {
		snprintf(name, sizeof(name), "u/%u", i);
		put(&tree, name, "");
	}
	CHECK(read_tree(&tree) == 0);
	put(&tree, "u/more", "");
	CHECK(read_tree(&tree) == -E2BIG);
	tree_end(&tree);
}

static void write_pids(struct tree *tree, unsigned n)
{
	FILE *file = fopen(scratch_at(&tree->scratch, "u/cgroup.procs"), "we");

	CHECK(file);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%u\n", n - i);
	CHECK(fclose(file) == 0);
}

TEST(more_processes_than_are_read_in_a_moment_are_refused)
{
	_cleanup_(tree_end) struct tree tree = tree_new("");

	write_pids(&tree, UNIT_PROCESSES_MAX);
	CHECK(read_tree(&tree) == 0 && tree.n == UNIT_PROCESSES_MAX);
	for (unsigned i = 0; i < tree.n; i++)
		CHECK(tree.pids[i] == (pid_t)i + 1);
	write_pids(&tree, UNIT_PROCESSES_MAX + 1);
	CHECK(read_tree(&tree) == -E2BIG);
}

TEST(missing_file_descriptors_are_reported)
{
	_cleanup_(tree_end) struct tree tree = tree_new("1\n");
	struct rlimit before, limit;
	unsigned failures = 0;
	int fd, r;

	put(&tree, "u/b", "2\n");
	put(&tree, "u/b/c", "3\n");
	fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
	close(fd);
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	for (limit = before, limit.rlim_cur = (rlim_t)fd;; limit.rlim_cur++, failures++) {
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		r = read_tree(&tree);
		CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
		CHECK(fcntl(0, F_DUPFD_CLOEXEC, 0) == fd);
		close(fd);
		if (r == 0)
			break;
		CHECK(r == -EMFILE && !tree.pids);
	}
	CHECK(failures == 4 && tree.n == 3);
}

/* ---- real cgroups -------------------------------------------------------------------- */

#define SLICE CGROUP_ROOT "/gpuarb.test.slice"
#define UNIT SLICE "/gpuarb-test-%d.service"

static void write_self(const char *cgroup)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, "0", 1) == 1);
	close(fd);
}

static bool has_cgroups_of_its_own(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("cgroup2", CGROUP_ROOT, "cgroup2", 0, NULL) == 0;
}

static pid_t sleeper_new(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void check_place(pid_t pid, const char *unit)
{
	struct unit_place place;

	CHECK(unit_of_process(pid, &place) == 0);
	CHECK(strcmp(place.unit, strrchr(unit, '/') + 1) == 0);
	CHECK(strcmp(place.cgroup, unit + strlen(CGROUP_ROOT)) == 0);
}

static void check_members(const char *unit, pid_t a, pid_t b)
{
	pid_t *pids;
	size_t n;

	CHECK(unit_processes(CGROUP_ROOT, unit + strlen(CGROUP_ROOT), &pids, &n) == 0 && n == 2);
	CHECK((pids[0] == a && pids[1] == b) || (pids[0] == b && pids[1] == a));
	free(pids);
}

/* One process in a unit, another in a nested cgroup. Exits with 77 if cgroups cannot be made. */
static void play_unit(void)
{
	char unit[128], sub[140];
	struct unit_place place;
	pid_t sleeper;

	snprintf(unit, sizeof(unit), UNIT, (int)getpid());
	snprintf(sub, sizeof(sub), "%s/sub", unit);
	if (!has_cgroups_of_its_own() || (mkdir(SLICE, 0755) < 0 && errno != EEXIST))
		_exit(77);
	CHECK(mkdir(unit, 0755) == 0 && mkdir(sub, 0755) == 0);
	write_self(unit);
	sleeper = sleeper_new();
	write_self(sub);
	check_place(sleeper, unit);
	check_place(getpid(), unit);
	check_members(unit, sleeper, getpid());

	write_self(CGROUP_ROOT);
	CHECK(unit_of_process(getpid(), &place) == -ENODATA);
	kill(sleeper, SIGKILL);
	CHECK(waitpid(sleeper, NULL, 0) == sleeper);
	CHECK(unit_of_process(sleeper, &place) == -ESRCH);
	CHECK(rmdir(sub) == 0 && rmdir(unit) == 0);
	rmdir(SLICE);
	_exit(0);
}

TEST(processes_of_a_unit_are_found_in_real_cgroups)
{
	int status;
	pid_t pid;

	if (access("/run/systemd/system", F_OK) == 0 || geteuid() != 0)
		SKIP("cgroups are not ours to play with");
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		play_unit();
	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("there are no cgroups to be had here");
	CHECK(status == 0);
}

TEST(process_without_a_unit_is_reported_with_the_reason)
{
	struct unit_place place = { .unit = "before" };
	int r;

	CHECK(unit_of_process(0, &place) == -ESRCH && unit_of_process(-1, &place) == -ESRCH);
	CHECK(strcmp(place.unit, "before") == 0);
	r = unit_of_process(getpid(), &place);
	printf("here: %d %s %s\n", r, place.unit, place.cgroup);
	CHECK(r == 0 || r == -ENODATA || r == -EOPNOTSUPP);
}
