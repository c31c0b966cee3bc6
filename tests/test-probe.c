/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "check.h"
#include "scratch.h"

#define FOR_EVER 60000 /* ms: reached by a failure only */
#define NOBODY	 65534U
#define NOWHERE	 "/nonexistent/socket"

struct stage {
	struct scratch scratch;
	struct probe *probe;
	char *text;
	size_t size;
	char why[300];
};

static struct stage stage_new(void)
{
	struct stage stage = { .scratch = scratch_new() };

	scratch_mkdir(&stage.scratch, "kfd");
	CHECK(probe_new(stage.scratch.path, NOWHERE, &stage.probe) == 0);
	return stage;
}

static void stage_end(struct stage *stage)
{
	free(stage->text);
	stage->probe = probe_free(stage->probe);
	CHECK(!stage->probe);
	scratch_done(&stage->scratch);
}

static int start(struct stage *stage)
{
	return probe_start(stage->probe, stage->why, sizeof(stage->why));
}

static int go_on(struct stage *stage)
{
	free(stage->text);
	stage->text = NULL;
	return probe_read(stage->probe, &stage->text, &stage->size, stage->why,
			  sizeof(stage->why));
}

static void wait_readable(const struct stage *stage)
{
	struct pollfd event = { .fd = probe_fd(stage->probe), .events = POLLIN };

	CHECK(poll(&event, 1, FOR_EVER) == 1);
}

static bool is_quiet(const struct stage *stage)
{
	struct pollfd event = { .fd = probe_fd(stage->probe), .events = POLLIN };

	return poll(&event, 1, 0) == 0;
}

static int finish(struct stage *stage)
{
	int r;

	while ((r = go_on(stage)) == -EAGAIN)
		wait_readable(stage);
	return r;
}

static bool says(const struct stage *stage, const char *words)
{
	if (strstr(stage->why, words))
		return true;
	fprintf(stderr, "it says: %s\n", stage->why);
	return false;
}

/* One that was given up may take a moment to die. */
static int start_patiently(struct stage *stage)
{
	int r;

	while ((r = start(stage)) == -EBUSY)
		wait_readable(stage);
	return r;
}

static void check_no_children(void)
{
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* ---- a directory for debugfs ------------------------------------------------------------ */

TEST(the_file_is_read_by_a_child)
{
	struct stage stage = stage_new();

	scratch_write(&stage.scratch, "kfd/mqds", "Process 1 PASID 0x8001:\n");
	CHECK(start(&stage) == 0 && finish(&stage) == 0);
	CHECK(stage.size == 24 && strcmp(stage.text, "Process 1 PASID 0x8001:\n") == 0);
	check_no_children();
	stage_end(&stage);
}

TEST(one_probe_asks_again_and_again)
{
	struct stage stage = stage_new();
	char text[16];

	for (unsigned i = 0; i < 20; i++) {
		int n = snprintf(text, sizeof(text), "%u\n", i);

		scratch_write(&stage.scratch, "kfd/mqds", text);
		CHECK(start(&stage) == 0 && finish(&stage) == 0);
		CHECK(stage.size == (size_t)n && strcmp(stage.text, text) == 0);
		CHECK(is_quiet(&stage));
	}
	stage_end(&stage);
}

TEST(an_empty_file_and_one_with_zeros_are_texts)
{
	struct stage stage = stage_new();

	scratch_write(&stage.scratch, "kfd/mqds", "");
	CHECK(start(&stage) == 0 && finish(&stage) == 0);
	CHECK(stage.size == 0 && stage.text[0] == '\0');
	scratch_put(&stage.scratch, "kfd/mqds", "a\0b", 3);
	CHECK(start(&stage) == 0 && finish(&stage) == 0);
	CHECK(stage.size == 3 && memcmp(stage.text, "a\0b", 4) == 0);
	stage_end(&stage);
}

static void truncate_mqds(struct stage *stage, off_t size)
{
	scratch_write(&stage->scratch, "kfd/mqds", "x");
	CHECK(truncate(scratch_at(&stage->scratch, "kfd/mqds"), size) == 0);
}

TEST(a_text_is_taken_up_to_its_greatest_length)
{
	struct stage stage = stage_new();

	truncate_mqds(&stage, PROBE_MAX);
	CHECK(start(&stage) == 0 && finish(&stage) == 0 && stage.size == PROBE_MAX);
	truncate_mqds(&stage, (off_t)PROBE_MAX + 1);
	CHECK(start(&stage) == 0 && finish(&stage) == -EFBIG);
	CHECK(says(&stage, "/kfd/mqds is larger than 64 MiB"));
	CHECK(start_patiently(&stage) == 0);
	stage_end(&stage);
	check_no_children();
}

TEST(nothing_to_read_is_told_as_such)
{
	struct stage stage = stage_new();

	CHECK(start(&stage) == -EOPNOTSUPP && says(&stage, "there is no /tmp/gpuarb-test-"));
	CHECK(go_on(&stage) == -EAGAIN && is_quiet(&stage));
	CHECK(rmdir(scratch_at(&stage.scratch, "kfd")) == 0);
	CHECK(start(&stage) == -EOPNOTSUPP);
	scratch_write(&stage.scratch, "kfd", "a file");
	CHECK(start(&stage) == -EOPNOTSUPP);
	CHECK(unlink(scratch_at(&stage.scratch, "kfd")) == 0);
	stage_end(&stage);
}

TEST(what_may_not_be_read_is_told_with_the_reason)
{
	struct stage stage = stage_new();
	int r;

	if (geteuid() != 0) {
		CHECK(chmod(scratch_write(&stage.scratch, "kfd/mqds", "x"), 0) == 0);
		r = start(&stage);
	} else {
		scratch_write(&stage.scratch, "kfd/mqds", "x");
		CHECK(seteuid(NOBODY) == 0); /* the directory is root's alone */
		r = start(&stage);
		CHECK(seteuid(0) == 0);
	}
	CHECK(r == -EACCES && says(&stage, "/kfd/mqds: Permission denied"));
	stage_end(&stage);
}

TEST(what_cat_complains_of_is_passed_on)
{
	struct stage stage = stage_new();

	scratch_mkdir(&stage.scratch, "kfd/mqds");
	CHECK(start(&stage) == 0 && finish(&stage) == -EIO);
	CHECK(says(&stage, "/kfd/mqds: cat: ") && says(&stage, "Is a directory"));
	CHECK(go_on(&stage) == -EAGAIN);
	check_no_children();
	stage_end(&stage);
}

/* A program of ours in the place of cat. */
static void put_cat(struct stage *stage, const char *script)
{
	scratch_mkdir(&stage->scratch, "bin");
	CHECK(chmod(scratch_write(&stage->scratch, "bin/cat", script), 0755) == 0);
	CHECK(setenv("PATH", scratch_at(&stage->scratch, "bin"), 1) == 0);
	scratch_write(&stage->scratch, "kfd/mqds", "x");
}

static char *path_before(void)
{
	char *path = strdup(getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin");

	CHECK(path);
	return path;
}

static void path_back(char *path)
{
	CHECK(setenv("PATH", path, 1) == 0);
	free(path);
}

TEST(a_reader_that_is_killed_has_failed)
{
	struct stage stage = stage_new();
	char *path = path_before();

	put_cat(&stage, "#!/bin/sh\necho half; kill -9 $$\n");
	CHECK(start(&stage) == 0 && finish(&stage) == -EIO && says(&stage, "cat was killed"));
	path_back(path);
	stage_end(&stage);
}

TEST(a_complaint_is_one_line_that_can_be_printed)
{
	struct stage stage = stage_new();
	char *path = path_before();

	put_cat(&stage, "#!/bin/sh\nprintf 'a\\033b\\nc' >&2; exit 1\n");
	CHECK(start(&stage) == 0 && finish(&stage) == -EIO);
	CHECK(says(&stage, "/kfd/mqds: a?b") && !strchr(stage.why, '\n') &&
	      stage.why[strlen(stage.why) - 1] == 'b');
	path_back(path);
	stage_end(&stage);
}

TEST(a_child_that_closes_its_output_is_waited_for)
{
	struct stage stage = stage_new();
	char *path = path_before(), command[400];
	int go;

	/* It goes on when the other end of the FIFO is opened. */
	CHECK(mkfifo(scratch_at(&stage.scratch, "go"), 0600) == 0);
	snprintf(command, sizeof(command), "#!/bin/sh\necho all; exec >&-; read x <%s\n",
		 scratch_at(&stage.scratch, "go"));
	put_cat(&stage, command);
	CHECK(start(&stage) == 0);
	do
		wait_readable(&stage);
	while (go_on(&stage) == -EAGAIN && !is_quiet(&stage));
	CHECK(go_on(&stage) == -EAGAIN);
	go = open(scratch_at(&stage.scratch, "go"), O_WRONLY | O_CLOEXEC);
	CHECK(go >= 0 && write(go, "x\n", 2) == 2);
	close(go);
	CHECK(finish(&stage) == 0 && strcmp(stage.text, "all\n") == 0);
	path_back(path);
	stage_end(&stage);
}

TEST(a_system_without_cat_is_told)
{
	struct stage stage = stage_new();
	char *path = path_before();

	scratch_write(&stage.scratch, "kfd/mqds", "x");
	CHECK(setenv("PATH", "/nonexistent", 1) == 0);
	CHECK(start(&stage) == -ENOENT && says(&stage, "cannot start cat to read /tmp/"));
	path_back(path);
	CHECK(start(&stage) == 0 && finish(&stage) == 0);
	stage_end(&stage);
}

/* The signals of a daemon: the child must not inherit that they are blocked. */
TEST(a_child_has_signals_as_if_nobody_had_touched_them)
{
	struct stage stage = stage_new();
	char *path = path_before();
	sigset_t set, before;

	sigfillset(&set);
	CHECK(sigprocmask(SIG_BLOCK, &set, &before) == 0);
	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	put_cat(&stage, "#!/bin/sh\nwhile read k v; do case $k in SigBlk:|SigIgn:) echo $k $v;; esac; "
			"done </proc/self/status\n");
	CHECK(start(&stage) == 0);
	CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	CHECK(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
	CHECK(finish(&stage) == 0);
	CHECK(strstr(stage.text, "SigBlk: 0000000000000000\n"));
	CHECK(strstr(stage.text, "SigIgn: ")[8 + 12] == '0'); /* SIGPIPE is 0x1000 */
	path_back(path);
	stage_end(&stage);
}

/* Where it would wait for ever: nobody writes to it. */
static void put_fifo(struct stage *stage)
{
	CHECK(mkfifo(scratch_at(&stage->scratch, "kfd/mqds"), 0600) == 0);
}

TEST(asking_waits_for_nothing)
{
	struct stage stage = stage_new();
	char line[] = "late\n";
	int fd;

	put_fifo(&stage);
	CHECK(start(&stage) == 0 && go_on(&stage) == -EAGAIN && is_quiet(&stage));
	fd = open(scratch_at(&stage.scratch, "kfd/mqds"), O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, line, 5) == 5);
	wait_readable(&stage);
	CHECK(go_on(&stage) == -EAGAIN && is_quiet(&stage));
	close(fd);
	CHECK(finish(&stage) == 0 && strcmp(stage.text, "late\n") == 0);
	stage_end(&stage);
}

TEST(a_question_that_is_given_up_leaves_no_child)
{
	struct stage stage = stage_new();

	put_fifo(&stage);
	CHECK(start(&stage) == 0);
	probe_cancel(stage.probe);
	probe_cancel(stage.probe);
	while (waitpid(-1, NULL, WNOHANG | WNOWAIT) >= 0) {
		wait_readable(&stage);
		CHECK(go_on(&stage) == -EAGAIN);
	}
	CHECK(is_quiet(&stage));
	stage_end(&stage);
}

TEST(asking_anew_gives_up_what_was_asked)
{
	struct stage stage = stage_new();

	put_fifo(&stage);
	CHECK(start(&stage) == 0);
	CHECK(start_patiently(&stage) == 0);
	CHECK(unlink(scratch_at(&stage.scratch, "kfd/mqds")) == 0);
	scratch_write(&stage.scratch, "kfd/mqds", "new\n");
	CHECK(start_patiently(&stage) == 0 && finish(&stage) == 0);
	CHECK(strcmp(stage.text, "new\n") == 0);
	stage_end(&stage);
	check_no_children();
}

TEST(a_probe_that_goes_takes_its_child_along)
{
	struct stage stage = stage_new();

	put_fifo(&stage);
	CHECK(start(&stage) == 0);
	stage_end(&stage);
	check_no_children();
	CHECK(!probe_free(NULL));
}

/* Stopped, it does not die of what it is sent until it goes on, but of SIGKILL. */
TEST(a_child_that_is_stopped_dies_all_the_same)
{
	struct stage stage = stage_new();
	char *path = path_before();

	put_cat(&stage, "#!/bin/sh\ntrap '' TERM INT\nkill -STOP $$\n");
	CHECK(start(&stage) == 0);
	CHECK(waitid(P_ALL, 0, &(siginfo_t){0}, WSTOPPED) == 0);
	path_back(path);
	stage_end(&stage);
	check_no_children();
}

static rlim_t open_files(void)
{
	int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);

	CHECK(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

/* Wherever fds run out, what was begun is undone. */
TEST(running_out_of_file_descriptors_leaves_nothing_behind)
{
	struct stage stage = stage_new();
	struct rlimit before, limit;
	unsigned failures = 0;
	rlim_t from;
	int r;

	scratch_write(&stage.scratch, "kfd/mqds", "x");
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	from = open_files();
	for (limit = before, limit.rlim_cur = from;; limit.rlim_cur++) {
		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		r = start(&stage);
		CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
		if (r == 0)
			break;
		CHECK(r == -EMFILE && says(&stage, "Too many open files"));
		CHECK(open_files() == from);
		check_no_children();
		failures++;
	}
	CHECK(failures >= 4 && finish(&stage) == 0);
	stage_end(&stage);
}

/* ---- a socket ---------------------------------------------------------------------------- */

static int listen_at(const char *path, int backlog)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	CHECK(bind(fd, (const struct sockaddr *)&un, sizeof(un)) == 0);
	CHECK(listen(fd, backlog) == 0);
	return fd;
}

static struct stage stage_at_socket(void)
{
	struct stage stage = { .scratch = scratch_new() };

	CHECK(probe_new(NULL, scratch_at(&stage.scratch, "socket"), &stage.probe) == 0);
	return stage;
}

static int accept_one(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

TEST(the_socket_answers_a_connection_with_the_text)
{
	struct stage stage = stage_at_socket();
	int listening = listen_at(scratch_at(&stage.scratch, "socket"), 4), fd;

	for (unsigned i = 0; i < 3; i++) {
		CHECK(start(&stage) == 0 && go_on(&stage) == -EAGAIN && is_quiet(&stage));
		fd = accept_one(listening);
		CHECK(write(fd, "Process ", 8) == 8);
		wait_readable(&stage);
		CHECK(go_on(&stage) == -EAGAIN);
		CHECK(write(fd, "1:\n", 3) == 3);
		close(fd);
		CHECK(finish(&stage) == 0 && strcmp(stage.text, "Process 1:\n") == 0);
	}
	close(listening);
	stage_end(&stage);
}

TEST(a_socket_that_is_not_there_or_that_nobody_listens_at_is_told)
{
	struct stage stage = stage_at_socket();

	CHECK(start(&stage) == -EOPNOTSUPP);
	CHECK(says(&stage, "nobody is at /tmp/gpuarb-test-") &&
	      says(&stage, "systemctl enable --now gpuarb-mqds.socket"));
	close(listen_at(scratch_at(&stage.scratch, "socket"), 1));
	CHECK(start(&stage) == -EOPNOTSUPP);
	CHECK(go_on(&stage) == -EAGAIN);
	stage_end(&stage);
}

TEST(a_socket_for_others_is_told_with_the_reason)
{
	struct stage stage = stage_at_socket();
	int listening = listen_at(scratch_at(&stage.scratch, "socket"), 1), r;

	if (geteuid() == 0) {
		CHECK(seteuid(NOBODY) == 0);
		r = start(&stage);
		CHECK(seteuid(0) == 0);
	} else {
		CHECK(chmod(scratch_at(&stage.scratch, "socket"), 0) == 0);
		r = start(&stage);
	}
	CHECK(r == -EACCES && says(&stage, "Permission denied"));
	close(listening);
	stage_end(&stage);
}

TEST(a_name_that_is_too_long_for_a_socket_is_told)
{
	struct probe *probe;
	char name[200], why[300];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(probe_new(NULL, name, &probe) == 0);
	CHECK(probe_start(probe, why, sizeof(why)) == -ENAMETOOLONG);
	probe_free(probe);
}

TEST(a_socket_that_has_too_many_waiting_is_tried_another_time)
{
	struct stage stage = stage_at_socket();
	int listening = listen_at(scratch_at(&stage.scratch, "socket"), 0);
	struct probe *first;

	CHECK(probe_new(NULL, scratch_at(&stage.scratch, "socket"), &first) == 0);
	CHECK(probe_start(first, stage.why, sizeof(stage.why)) == 0);
	CHECK(start(&stage) == -EAGAIN && says(&stage, "cannot connect to"));
	close(accept_one(listening));
	CHECK(start(&stage) == 0);
	close(listening);
	probe_free(first);
	stage_end(&stage);
}

/* It read nothing, perhaps for it may not. */
TEST(a_reader_that_hangs_up_at_once_leaves_an_empty_text)
{
	struct stage stage = stage_at_socket();
	int listening = listen_at(scratch_at(&stage.scratch, "socket"), 1);

	CHECK(start(&stage) == 0);
	close(accept_one(listening));
	CHECK(finish(&stage) == 0 && stage.size == 0);
	close(listening);
	stage_end(&stage);
}

TEST(a_connection_that_is_given_up_is_closed)
{
	struct stage stage = stage_at_socket();
	int listening = listen_at(scratch_at(&stage.scratch, "socket"), 2), fd;
	char c;

	CHECK(start(&stage) == 0);
	fd = accept_one(listening);
	probe_cancel(stage.probe);
	CHECK(read(fd, &c, 1) == 0);
	close(fd);
	CHECK(is_quiet(&stage) && go_on(&stage) == -EAGAIN);

	CHECK(start(&stage) == 0);
	fd = accept_one(listening);
	CHECK(start(&stage) == 0);
	CHECK(read(fd, &c, 1) == 0);
	close(fd);
	close(listening);
	stage_end(&stage);
}

/* Writes until nobody reads any more. */
static pid_t writer_new(int fd)
{
	static const char bytes[65536];
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	close(fd);
	return pid;
}

TEST(a_text_from_the_socket_is_bounded_too)
{
	struct stage stage = stage_at_socket();
	int listening = listen_at(scratch_at(&stage.scratch, "socket"), 1), status;
	pid_t writer;

	CHECK(start(&stage) == 0);
	writer = writer_new(accept_one(listening));
	CHECK(finish(&stage) == -EFBIG && says(&stage, "/socket is larger than 64 MiB"));
	CHECK(waitpid(writer, &status, 0) == writer && status == 0);
	close(listening);
	stage_end(&stage);
}

TEST(a_socket_takes_a_file_descriptor_too)
{
	struct stage stage = stage_at_socket();
	struct rlimit before, limit;
	struct probe *probe;
	int r;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = before;
	limit.rlim_cur = open_files();
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = start(&stage);
	CHECK(probe_new(NULL, NOWHERE, &probe) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(r == -EMFILE && says(&stage, "cannot make a socket"));
	stage_end(&stage);
}
