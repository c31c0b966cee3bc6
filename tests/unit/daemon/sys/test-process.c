/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/observe/attribution.h"
#include "core/policy/caller.h"

#define NOBODY 65534U

/* A process that reports when it is ready and then waits to be killed. */
struct child {
	pid_t pid;
	int ready; /* one byte, or end of file after exec */
};

static void wait_for_ever(int ready)
{
	CHECK(write(ready, "r", 1) == 1);
	for (;;)
		pause();
}

static struct child start(void (*run)(int ready))
{
	struct child child;
	int fds[2];

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	child.pid = fork();
	CHECK(child.pid >= 0);
	if (child.pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		run(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	child.ready = fds[0];
	return child;
}

static void wait_ready(const struct child *child)
{
	char c;

	CHECK(read(child->ready, &c, 1) >= 0);
	close(child->ready);
}

static void end(const struct child *child)
{
	CHECK(kill(child->pid, SIGKILL) == 0);
	CHECK(waitpid(child->pid, NULL, 0) == child->pid);
}

static int open_pidfd(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	CHECK(fd >= 0);
	return fd;
}

static void check_gone(const struct observed *row)
{
	CHECK(row->start_time == 0 && row->uid == (uid_t)-1);
	CHECK(row->command[0] == '\0' && row->n_ancestors == 0);
}

TEST(a_zombie_does_not_run)
{
	struct child child = start(wait_for_ever);
	siginfo_t info;

	CHECK(process_runs(child.pid, child.pid) && process_runs(getpid(), getpid()));
	CHECK(!process_runs(getpid(), child.pid)); /* a thread of another process */
	CHECK(kill(child.pid, SIGKILL) == 0);
	CHECK(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK(!process_runs(child.pid, child.pid));
	CHECK(waitpid(child.pid, NULL, 0) == child.pid && !process_runs(child.pid, child.pid));
	close(child.ready);
}

TEST(process_is_described_with_its_ancestors)
{
	struct observed row = { .pid = getpid(), .vram = 7, .queues = 3 };

	CHECK(prctl(PR_SET_NAME, "tester") == 0);
	process_describe(&row);
	CHECK(row.start_time > 0 && row.uid == geteuid());
	CHECK(strcmp(row.command, "tester") == 0);
	CHECK(getppid() <= 1 || (row.n_ancestors > 0 && row.ancestors[0] == getppid()));
	for (size_t i = 0; i < row.n_ancestors; i++)
		CHECK(row.ancestors[i] > 1);
	CHECK(row.pid == getpid() && row.vram == 7 && row.queues == 3);
}

static void run_renamed(int ready)
{
	CHECK(prctl(PR_SET_NAME, ") R 1 (\x1b[1m\n\xff)") == 0);
	wait_for_ever(ready);
}

TEST(command_cannot_forge_fields_or_control_characters)
{
	_cleanup_(end) struct child child = start(run_renamed);
	struct observed row = { .pid = child.pid };

	wait_ready(&child);
	process_describe(&row);
	CHECK(strcmp(row.command, ") R 1 (?[1m?"
				  "?)") == 0);
	CHECK(row.start_time > 0 && row.n_ancestors > 0 && row.ancestors[0] == getpid());
}

TEST(ended_process_is_described_by_zeros)
{
	struct child child = start(wait_for_ever);
	struct observed row = {
		.pid = child.pid,
		.start_time = 9,
		.uid = 9,
		.command = "x",
		.n_ancestors = 2,
	};

	wait_ready(&child);
	end(&child);
	process_describe(&row);
	check_gone(&row);
	row.pid = 0;
	process_describe(&row);
	check_gone(&row);
	row.pid = -1;
	process_describe(&row);
	check_gone(&row);
}

static void run_as_nobody(int ready)
{
	CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0); /* which makes it undumpable */
	wait_for_ever(ready);
}

TEST(undumpable_process_has_its_own_uid)
{
	struct child child;
	struct observed row;
	pid_t pid;
	uid_t uid;
	int fd;

	if (geteuid() != 0)
		SKIP("only root can become somebody else");
	child = start(run_as_nobody);
	row = (struct observed){ .pid = child.pid };
	wait_ready(&child);
	process_describe(&row);
	CHECK(row.uid == NOBODY);
	fd = open_pidfd(child.pid);
	CHECK(process_of_pidfd(fd, &pid, &uid) == 0 && pid == child.pid && uid == NOBODY);
	close(fd);
	end(&child);
}

/* The last of a chain of processes returns the number of its ancestors. */
static int descend(unsigned depth)
{
	struct observed row = { .pid = getpid() };
	pid_t pid;
	int status;

	if (depth == 0) {
		process_describe(&row);
		return (int)row.n_ancestors;
	}
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(descend(depth - 1));
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* A process may end between the opening of its directory and that of a file in it. */
TEST(process_whose_files_cannot_be_opened_is_described_by_zeros)
{
	struct observed row = { .pid = getpid() };
	struct rlimit before, limit;
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	close(fd);
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = (struct rlimit){ (rlim_t)fd + 1, before.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	process_describe(&row);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	check_gone(&row);
}

/* Files lack first for what tells the pid, and then for what tells the user. */
TEST(pidfd_of_a_process_is_no_other_file_where_files_lack)
{
	int fd = open_pidfd(getpid()), first = fcntl(0, F_DUPFD_CLOEXEC, 0);
	struct rlimit before;
	pid_t pid;
	uid_t uid;

	close(first);
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	for (rlim_t more = 0; more < 2; more++) {
		struct rlimit limit = { (rlim_t)first + more, before.rlim_max };

		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		CHECK(process_of_pidfd(fd, &pid, &uid) == -EMFILE);
	}
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(process_of_pidfd(fd, &pid, &uid) == 0 && pid == getpid());
	close(fd);
}

TEST(number_of_ancestors_is_bounded)
{
	CHECK(descend(OBSERVED_ANCESTORS + 4) == (int)OBSERVED_ANCESTORS);
}

TEST(pidfd_gives_pid_and_uid)
{
	struct child child = start(wait_for_ever);
	int fd = open_pidfd(child.pid);
	pid_t pid = 0;
	uid_t uid = 1;

	wait_ready(&child);
	CHECK(process_of_pidfd(fd, &pid, &uid) == 0);
	CHECK(pid == child.pid && uid == geteuid());
	end(&child);
	close(fd);
}

TEST(process_is_opened_if_it_is_still_the_same)
{
	struct child child = start(wait_for_ever);
	uint64_t start_time;
	pid_t pid;
	uid_t uid;
	int fd;

	wait_ready(&child);
	start_time = process_start_time(child.pid);
	fd = process_open(child.pid, start_time, &uid);
	CHECK(fd >= 0 && uid == geteuid());
	CHECK(process_of_pidfd(fd, &pid, &uid) == 0 && pid == child.pid);
	close(fd);
	CHECK(process_open(child.pid, start_time + 1, &uid) == -ESRCH);
	CHECK(process_open(child.pid, 0, &uid) == -ESRCH);
	CHECK(process_open(0, start_time, &uid) == -ESRCH);
	end(&child);
	CHECK(process_open(child.pid, start_time, &uid) == -ESRCH);
}

TEST(ended_process_is_esrch_reaped_or_not)
{
	struct child child = start(wait_for_ever);
	int fd = open_pidfd(child.pid);
	siginfo_t info;
	pid_t pid = 42;
	uid_t uid = 43;

	wait_ready(&child);
	CHECK(kill(child.pid, SIGKILL) == 0);
	CHECK(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK(process_of_pidfd(fd, &pid, &uid) == -ESRCH);
	CHECK(waitpid(child.pid, NULL, 0) == child.pid);
	CHECK(process_of_pidfd(fd, &pid, &uid) == -ESRCH);
	CHECK(pid == 42 && uid == 43);
	close(fd);
}

TEST(object_that_is_no_pidfd_is_ebadf)
{
	int fds[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_t pid = 42;
	uid_t uid = 43;

	CHECK(file >= 0 && pipe2(fds, O_CLOEXEC) == 0);
	CHECK(process_of_pidfd(file, &pid, &uid) == -EBADF);
	CHECK(process_of_pidfd(fds[0], &pid, &uid) == -EBADF);
	close(file);
	close(fds[0]);
	close(fds[1]);
	CHECK(process_of_pidfd(file, &pid, &uid) == -EBADF);
	CHECK(process_of_pidfd(-1, &pid, &uid) == -EBADF);
	CHECK(process_of_pidfd(INT_MAX, &pid, &uid) == -EBADF && pid == 42 && uid == 43);
}

/* What the kernel shows of a DMA buffer that its user has named "\nPid:\t1": in a mount namespace of its
 * own, this process sees such a text about a pipe. */
static int believes_forged_text(void)
{
	char directory[] = "/tmp/gpuarb-test-XXXXXX", path[64];
	int fds[2], r;
	FILE *file;
	pid_t pid;
	uid_t uid;

	if (pipe2(fds, O_CLOEXEC) < 0 || !mkdtemp(directory))
		return 2;
	snprintf(path, sizeof(path), "%s/%d", directory, fds[0]);
	file = fopen(path, "we");
	if (!file || fprintf(file, "size:\t4096\nname:\t\nPid:\t%d\n", (int)getpid()) < 0 ||
	    fclose(file) != 0)
		return 2;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(directory, "/proc/self/fdinfo", NULL, MS_BIND, NULL) < 0)
		r = 3;
	else
		r = process_of_pidfd(fds[0], &pid, &uid) == -EBADF ? 0 : 1;
	unlink(path);
	rmdir(directory);
	return r;
}

TEST(text_of_the_kernel_with_a_pid_makes_no_pidfd)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0)
		_exit(believes_forged_text());
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 3)
		SKIP("nothing can be mounted over /proc/self/fdinfo here");
	CHECK(WEXITSTATUS(status) == 0);
}

/* Tells its id, and ends when the other end is closed. */
static void *thread_of_pid(void *end)
{
	pid_t id = gettid();

	CHECK(write(*(int *)end, &id, sizeof(id)) == sizeof(id));
	CHECK(read(*(int *)end, &id, 1) == 0);
	return NULL;
}

TEST(pidfd_of_a_thread_is_not_that_of_its_process)
{
	int ends[2], fd, r;
	pthread_t thread;
	pid_t id, pid;
	uid_t uid;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	CHECK(pthread_create(&thread, NULL, thread_of_pid, &ends[1]) == 0);
	CHECK(read(ends[0], &id, sizeof(id)) == sizeof(id));
	fd = (int)syscall(SYS_pidfd_open, id, O_EXCL); /* PIDFD_THREAD */
	r = fd < 0 ? -errno : process_of_pidfd(fd, &pid, &uid);
	close(ends[0]);
	CHECK(pthread_join(thread, NULL) == 0);
	close(ends[1]);
	if (fd < 0)
		SKIP("pidfds of threads need Linux 6.9");
	close(fd);
	CHECK(r == -EINVAL);
}

/* In a new pid namespace with its own /proc: 0 if a process outside of it cannot be found. */
static int find_outside(int fd)
{
	pid_t pid;
	uid_t uid;

	if (mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("proc", "/proc", "proc", 0, NULL) < 0)
		return 77;
	return process_of_pidfd(fd, &pid, &uid) == -ESRCH ? 0 : 1;
}

TEST(process_outside_of_the_pid_namespace_is_esrch)
{
	int fd = open_pidfd(getpid()), status;
	pid_t outer = fork(), inner;

	CHECK(outer >= 0);
	if (outer == 0) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(77);
		inner = fork();
		if (inner == 0)
			_exit(find_outside(fd));
		CHECK(waitpid(inner, &status, 0) == inner && WIFEXITED(status));
		_exit(WEXITSTATUS(status));
	}
	CHECK(waitpid(outer, &status, 0) == outer && WIFEXITED(status));
	close(fd);
	if (WEXITSTATUS(status) == 77)
		SKIP("namespaces are not allowed here");
	CHECK(WEXITSTATUS(status) == 0);
}

TEST(executable_is_read_from_proc)
{
	struct caller caller = { .uid = 5, .pid = 6 };
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	CHECK(n > 0);
	path[n] = '\0';
	process_place(getpid(), &caller);
	CHECK(strcmp(caller.executable, path) == 0);
	CHECK(caller.uid == 5 && caller.pid == 6);
}

static char long_path[PATH_MAX];

static void run_long_path(int ready)
{
	(void)ready; /* closed by exec */
	execl(long_path, long_path, "1000", (char *)NULL);
	_exit(127);
}

static void copy_file(const char *from, const char *to)
{
	char buf[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	ssize_t n;

	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK(write(out, buf, (size_t)n) == n);
	close(in);
	close(out);
}

TEST(executable_with_too_long_a_path_is_unknown)
{
	char dir[] = "/tmp/test-process-XXXXXX", deep[512];
	struct caller caller = { .executable = "before" };
	struct child child;

	CHECK(mkdtemp(dir));
	snprintf(deep, sizeof(deep), "%s/%0250d", dir, 1);
	CHECK(mkdir(deep, 0700) == 0);
	snprintf(long_path, sizeof(long_path), "%s/sleep", deep);
	copy_file("/bin/sleep", long_path);

	child = start(run_long_path);
	wait_ready(&child);
	process_place(child.pid, &caller);
	CHECK(caller.executable[0] == '\0');
	end(&child);
	CHECK(unlink(long_path) == 0 && rmdir(deep) == 0 && rmdir(dir) == 0);
}

TEST(place_of_an_ended_process_is_unknown)
{
	struct child child = start(wait_for_ever);
	pid_t pids[] = { 0, -1, child.pid };

	wait_ready(&child);
	end(&child);
	for (size_t i = 0; i < 3; i++) {
		struct caller caller = { .unit = "u", .slice = "s", .executable = "e" };

		process_place(pids[i], &caller);
		CHECK(!caller.unit[0] && !caller.slice[0] && !caller.executable[0]);
	}
}

static bool write_pid(const char *dir, pid_t pid)
{
	char path[256];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	stream = fopen(path, "we");
	if (!stream)
		return false;
	fprintf(stream, "%d\n", (int)pid);
	return fclose(stream) == 0;
}

/* A service in a slice as systemd makes it, then a process outside of both. */
static bool place_in_cgroup(const char *root, const struct child *child)
{
	struct caller caller = { 0 };
	char slice[128], unit[192];
	bool placed;

	snprintf(slice, sizeof(slice), "%s/gpuarbtest%d.slice", root, (int)getpid());
	snprintf(unit, sizeof(unit), "%s/render.service", slice);
	placed = mkdir(slice, 0755) == 0 && mkdir(unit, 0755) == 0 && write_pid(unit, child->pid);
	if (placed) {
		process_place(child->pid, &caller);
		CHECK(strcmp(caller.unit, "render.service") == 0);
		CHECK(strncmp(caller.slice, "gpuarbtest", 10) == 0);
		CHECK(write_pid(root, child->pid));
		process_place(child->pid, &caller);
		CHECK(!caller.unit[0] && !caller.slice[0] && caller.executable[0]);
	}
	rmdir(unit);
	rmdir(slice);
	return placed;
}

TEST(unit_and_slice_are_read_from_the_cgroup)
{
	struct child child = start(wait_for_ever);
	bool placed;

	wait_ready(&child);
	placed = place_in_cgroup("/sys/fs/cgroup/unified", &child) ||
		 place_in_cgroup("/sys/fs/cgroup", &child);
	end(&child);
	if (!placed)
		SKIP("no cgroup can be made here");
}
