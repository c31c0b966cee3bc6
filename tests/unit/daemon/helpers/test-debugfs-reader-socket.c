/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Hardware queue descriptors, by a socket of the service that reads them. */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "check.h"
#include "probe-rig.h"
#include "scratch.h"

/* ---- a socket ---------------------------------------------------------------------------- */

static int listen_at(const char *path, int backlog)
{
	int fd = scratch_bind(path, SOCK_STREAM);

	CHECK(listen(fd, backlog) == 0);
	return fd;
}

static int accept_one(int listening)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

FIXTURE(struct stage, stage, probe_stage_new(stage, false), probe_stage_end(stage));

TEST_WITH(the_socket_answers_a_connection_with_the_text, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 4), fd;

	for (unsigned i = 0; i < 3; i++) {
		CHECK(start(stage) == 0 && go_on(stage) == -EAGAIN && is_quiet(stage));
		fd = accept_one(listening);
		CHECK(write(fd, "Process ", 8) == 8);
		wait_readable(stage);
		CHECK(go_on(stage) == -EAGAIN);
		CHECK(write(fd, "1:\n.\n", 5) == 5);
		close(fd);
		CHECK(finish(stage) == 0 && strcmp(stage->text, "Process 1:\n") == 0);
	}
	close(listening);
}

TEST_WITH(missing_socket_or_listener_is_reported, struct stage *stage)
{
	CHECK(start(stage) == -EOPNOTSUPP);
	CHECK(probe_says(stage, "/gpuarb-test-") &&
	      probe_says(stage, "systemctl enable --now gpuarb-mqds.socket"));
	close(listen_at(scratch_at(&stage->scratch, "socket"), 1));
	CHECK(start(stage) == -EOPNOTSUPP);
	CHECK(go_on(stage) == -EAGAIN);
}

TEST_WITH(socket_without_permission_is_reported_with_the_reason, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 1), r;

	if (geteuid() == 0) {
		CHECK(seteuid(NOBODY) == 0);
		r = start(stage);
		CHECK(seteuid(0) == 0);
	} else {
		CHECK(chmod(scratch_at(&stage->scratch, "socket"), 0) == 0);
		r = start(stage);
	}
	CHECK(r == -EACCES && probe_says(stage, "Permission denied"));
	close(listening);
}

TEST_WITH(socket_path_that_is_too_long_is_reported, struct stage *stage)
{
	struct probe_files files = stage->files;
	char name[200];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	files.socket = name;
	probe_stage_read(stage, &files);
	CHECK(start(stage) == -ENAMETOOLONG);
}

TEST_WITH(a_socket_that_has_too_many_waiting_is_tried_another_time, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 0);
	int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strcpy(un.sun_path, scratch_at(&stage->scratch, "socket"));
	CHECK(connect(first, (struct sockaddr *)&un, sizeof(un)) == 0);
	CHECK(start(stage) == -EAGAIN && probe_says(stage, "connect"));
	close(accept_one(listening));
	CHECK(start(stage) == 0);
	close(listening);
	close(first);
}

TEST_WITH(a_text_without_a_line_is_empty, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 1), fd;

	CHECK(start(stage) == 0);
	fd = accept_one(listening);
	CHECK(write(fd, ".\n", 2) == 2);
	close(fd);
	CHECK(finish(stage) == 0 && stage->size == 0);
	close(listening);
}

/* So does systemd where the condition of the service fails: debugfs is not mounted. */
TEST_WITH(a_service_that_does_not_start_is_no_empty_text, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 1);

	CHECK(start(stage) == 0);
	close(accept_one(listening));
	CHECK(finish(stage) == -EOPNOTSUPP);
	CHECK(probe_says(stage, "/sys/kernel/debug/kfd/mqds"));
	close(listening);
}

/* A service that was killed, or could not read all. */
TEST_WITH(a_text_without_the_mark_of_its_end_is_refused, struct stage *stage)
{
	static const char *const texts[] = { "Process 1:\n", "Process 1:\n.", "!\n",
					     "Process 1:\n!\n" };
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 4), fd;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		CHECK(start(stage) == 0);
		fd = accept_one(listening);
		CHECK(write(fd, texts[i], strlen(texts[i])) == (ssize_t)strlen(texts[i]));
		close(fd);
		CHECK(finish(stage) == -EIO && probe_says(stage, "failed"));
	}
	close(listening);
}

TEST_WITH(a_connection_that_is_given_up_is_closed, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 2), fd;
	char c;

	CHECK(start(stage) == 0);
	fd = accept_one(listening);
	probe_cancel(stage->probe);
	CHECK(read(fd, &c, 1) == 0);
	close(fd);
	CHECK(is_quiet(stage) && go_on(stage) == -EAGAIN);

	CHECK(start(stage) == 0);
	fd = accept_one(listening);
	CHECK(start(stage) == 0);
	CHECK(read(fd, &c, 1) == 0);
	close(fd);
	close(listening);
}

/* Writes until nobody reads any more. It is there before who connects: else it had a copy of the
 * other end, and would wait for itself. */
static pid_t writer_new(int listening)
{
	static char bytes[65536];
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		int fd;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(bytes, '\n', sizeof(bytes));
		fd = accept_one(listening);
		while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	return pid;
}

TEST_WITH(a_text_that_does_not_end_is_given_up, struct stage *stage)
{
	int listening = listen_at(scratch_at(&stage->scratch, "socket"), 1), status;
	pid_t writer = writer_new(listening);

	stage->forgets = true;
	CHECK(start(stage) == 0);
	CHECK(finish(stage) == -EFBIG && probe_says(stage, "1024 MiB"));
	CHECK(waitpid(writer, &status, 0) == writer && status == 0);
	close(listening);
}

TEST_WITH(a_socket_takes_a_file_descriptor_too, struct stage *stage)
{
	struct rlimit before, limit;
	int r;

	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = before;
	limit.rlim_cur = open_files();
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = start(stage);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(r == -EMFILE && probe_says(stage, "socket"));
}
