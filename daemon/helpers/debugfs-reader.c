/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/debugfs-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fd.h"
#include "util/text.h"
#include "helpers/helper.h"

#define DIE_MSEC 1000

const struct probe_files probe_mqds = {
	.first = "kfd/mqds",
	.second = "kfd/rls",
	.socket = "/run/gpuarb-mqds.socket",
	.unit = "gpuarb-mqds.socket",
};

const struct probe_files probe_hqds = {
	.first = "kfd/hqds",
	.second = "kfd/mqds",
	.socket = "/run/gpuarb-hqds.socket",
	.unit = "gpuarb-hqds.socket",
};

/* grep(1) exits with 1 or 2 where a client has no queue, or has just ended: what it could not read, and why, is in the
 * text. gpuarb-userqs@.service has the same. It takes the place of the shell, so that it is what is killed. */
const struct probe_files probe_userqs = {
	.first = "dri",
	.script = "LC_ALL=C exec grep -H . \"$0\"/client-*/device/name "
		  "\"$0\"/client-*/queue*/mqd_info 2>&1",
	.status_max = 2,
	.socket = "/run/gpuarb-userqs.socket",
	.unit = "gpuarb-userqs.socket",
};

struct probe {
	struct helper
		helper; /* fd: what the text comes from; -1: the text has ended, or nothing was asked */
	const struct probe_files *files;
	char *file, *second; /* NULL: ask at the socket */
	probe_piece_t *piece;
	probe_done_t *done;
	void *userdata;
	uint64_t patience_usec;

	bool asked;
	int child;                     /* a pidfd; -1: none */
	sd_event_source *end_of_child; /* off while its text is read */
	char *text;                    /* PROBE_PIECE_MAX bytes */
	size_t size, taken; /* what was read of it, and what of that the caller has had */
	size_t total;       /* bytes of the text */
};

/* ---- the child ------------------------------------------------------------------------- */

/* A process of its own reads the files, because a read of debugfs may block in the kernel. Its standard
 * error is that of gpuarbd. */
static int spawn_reader(const struct probe *probe, int out, pid_t *ret)
{
	bool both = probe->second && faccessat(AT_FDCWD, probe->second, R_OK, AT_EACCESS) == 0;
	char cat[] = "cat", end[] = "--", sh[] = "sh", option[] = "-c", language[] = "LC_ALL=C";
	char *const copies[] = { cat, end, probe->file, both ? probe->second : NULL, NULL };
	char *const runs[] = { sh, option, (char *)(uintptr_t)probe->files->script, probe->file,
			       NULL };
	char *const *argv = probe->files->script ? runs : copies;
	char *const environment[] = { language, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, pipe;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attributes);
	if (r == 0) {
		sigemptyset(&none);
		sigemptyset(&pipe);
		sigaddset(&pipe, SIGPIPE);
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
						     0);
		if (r == 0)
			r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
		if (r == 0)
			r = posix_spawnattr_setsigmask(&attributes, &none);
		if (r == 0)
			r = posix_spawnattr_setsigdefault(&attributes, &pipe);
		if (r == 0)
			r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
									  POSIX_SPAWN_SETSIGDEF);
		if (r == 0)
			r = posix_spawnp(ret, argv[0], &actions, &attributes, argv, environment);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static void drop_child(struct probe *probe)
{
	probe->end_of_child = sd_event_source_disable_unref(probe->end_of_child);
	if (probe->child >= 0)
		close(probe->child);
	probe->child = -1;
}

static int on_child(sd_event_source *, int, uint32_t, void *userdata);

/* Only this process reaps the child, so the pid is still its own. */
static int watch_child(struct probe *probe, pid_t pid)
{
	int r;

	probe->child = (int)syscall(SYS_pidfd_open, pid, 0);
	if (probe->child < 0)
		return -errno;
	r = sd_event_add_io(probe->helper.event, &probe->end_of_child, probe->child, EPOLLIN,
			    on_child, probe);
	return r < 0 ? r : sd_event_source_set_enabled(probe->end_of_child, SD_EVENT_OFF);
}

/* Returns the end of the pipe that reads its output, without blocking. */
static int child_start(struct probe *probe)
{
	_cleanup_fd_ int in = -1, out = -1;
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	in = fds[0];
	out = fds[1];
	if (fcntl(in, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = spawn_reader(probe, out, &pid);
	if (r < 0)
		return r;
	r = watch_child(probe, pid);
	if (r < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		drop_child(probe);
		return r;
	}
	r = in;
	in = -1;
	return r;
}

/* Whether the child has ended and was reaped; *ret_status is its exit status, -1 after a signal. */
static bool child_ended(struct probe *probe, int *ret_status)
{
	siginfo_t info = { 0 };
	int r;

	do
		r = waitid(P_PIDFD, (id_t)probe->child, &info, WEXITED | WNOHANG);
	while (r < 0 && errno == EINTR);
	if (r == 0 && info.si_pid == 0)
		return false;
	*ret_status = r == 0 && info.si_code == CLD_EXITED ? info.si_status : -1;
	drop_child(probe);
	return true;
}

/* Reaps a child that was given up. */
static bool child_is_gone(struct probe *probe)
{
	int status;

	return probe->child < 0 || child_ended(probe, &status);
}

/* ---- asking -------------------------------------------------------------------------- */

static int start_child(struct probe *probe, char *why, size_t size)
{
	int fd;

	if (faccessat(AT_FDCWD, probe->file, R_OK, AT_EACCESS) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return refuse(why, size, -EOPNOTSUPP, "there is no %s", probe->file);
		return refuse(why, size, -errno, "cannot read %s: %s", probe->file,
			      strerror(errno));
	}
	fd = child_start(probe);
	if (fd < 0)
		return refuse(why, size, fd, "cannot start the reader of %s: %s", probe->file,
			      strerror(-fd));
	return helper_watch(&probe->helper, fd, why, size);
}

int probe_start(struct probe *probe, char *why, size_t size)
{
	int r;

	probe_cancel(probe);
	if (!child_is_gone(probe))
		return refuse(why, size, -EBUSY, "the reader of %s that was given up has not ended",
			      probe->file);

	r = probe->file ? start_child(probe, why, size) : helper_open(&probe->helper, why, size);
	if (r >= 0)
		r = helper_await(&probe->helper, probe->patience_usec);
	probe->asked = r >= 0;
	if (r < 0)
		probe_cancel(probe);
	return r < 0 ? r : 0;
}

void probe_go_on(struct probe *probe)
{
	helper_await(&probe->helper, probe->patience_usec);
}

void probe_cancel(struct probe *probe)
{
	helper_close(&probe->helper);
	helper_await(&probe->helper, 0);
	free(probe->text);
	probe->text = NULL;
	probe->size = probe->taken = probe->total = 0;
	probe->asked = false;
	if (child_is_gone(probe))
		return;
	syscall(SYS_pidfd_send_signal, probe->child, SIGKILL, NULL, 0);
	sd_event_source_set_enabled(probe->end_of_child, SD_EVENT_ON); /* on_child() reaps it */
}

static void end(struct probe *probe, int r, const char *why)
{
	probe_cancel(probe);
	probe->done(probe->userdata, r, why);
}

/* ---- reading ------------------------------------------------------------------------- */

/* Keeps what the caller has not had. */
static int make_room(struct probe *probe)
{
	if (!probe->text)
		probe->text = malloc(PROBE_PIECE_MAX);
	if (!probe->text)
		return -ENOMEM;
	probe->size -= probe->taken;
	memmove(probe->text, probe->text + probe->taken, probe->size);
	probe->taken = 0;
	return 0;
}

/* Reads until the piece is full. 0: the end of the text. */
static int read_piece(struct probe *probe)
{
	ssize_t n = 1;

	while (probe->size < PROBE_PIECE_MAX && n != 0) {
		n = read(probe->helper.fd, probe->text + probe->size,
			 PROBE_PIECE_MAX - probe->size);
		if (n < 0 && errno != EINTR)
			return -errno;
		probe->size += n > 0 ? (size_t)n : 0;
		probe->total += n > 0 ? (size_t)n : 0;
	}
	return n > 0;
}

/* The size of the whole lines in what was read. */
static size_t whole_lines(const struct probe *probe)
{
	const char *newline = memrchr(probe->text, '\n', probe->size);

	return newline ? (size_t)(newline + 1 - probe->text) : 0;
}

/* 1: a piece is complete. 0: the text has ended. */
static int next_piece(struct probe *probe, char *why, size_t size)
{
	int r = make_room(probe);

	if (r >= 0)
		r = read_piece(probe);
	if (r < 0 && r != -EAGAIN)
		return refuse(why, size, r, "cannot read %s: %s", probe->helper.socket,
			      strerror(-r));
	if (probe->total > PROBE_MAX)
		return refuse(why, size, -EFBIG, "%s is larger than %u MiB", probe->helper.socket,
			      PROBE_MAX / 1024 / 1024);
	probe->taken = r == 0 ? probe->size : whole_lines(probe);
	if (probe->taken > 0)
		return 1;
	if (probe->size == PROBE_PIECE_MAX)
		return refuse(why, size, -EFBIG, "%s has a line that is longer than %u KiB",
			      probe->helper.socket, PROBE_PIECE_MAX / 1024);
	return r;
}

static int on_text(sd_event_source *, int, uint32_t, void *userdata)
{
	struct probe *probe = userdata;
	char why[256] = "out of memory";
	int r = next_piece(probe, why, sizeof(why));

	if (r > 0) {
		r = probe->piece(probe->userdata, probe->text, probe->taken, why, sizeof(why));
		if (r < 0)
			end(probe, r, why);
	} else if (r == 0 &&
		   probe->child >= 0) { /* its exit status says whether that was all of it */
		helper_close(&probe->helper);
		sd_event_source_set_enabled(probe->end_of_child, SD_EVENT_ON);
	} else if (r != -EAGAIN) {
		end(probe, r, why);
	}
	return 0;
}

static int on_child(sd_event_source *, int, uint32_t, void *userdata)
{
	struct probe *probe = userdata;
	char why[256] = "";
	int status, r = 0;

	if (!child_ended(probe, &status) || !probe->asked)
		return 0;
	if (status < 0)
		r = refuse(why, sizeof(why), -EIO, "cannot read %s: the reader was killed",
			   probe->file);
	else if (status > probe->files->status_max)
		r = refuse(why, sizeof(why), -EIO,
			   "cannot read %s: the reader exited with status %d", probe->file, status);
	end(probe, r, why);
	return 0;
}

static int on_late(sd_event_source *, uint64_t, void *userdata)
{
	end(userdata, -ETIMEDOUT, "they were not read in time");
	return 0;
}

/* ---- life ------------------------------------------------------------------------------ */

int probe_new(sd_event *event, const char *debugfs, const struct probe_files *files,
	      uint64_t patience_usec, probe_piece_t *piece, probe_done_t *done, void *userdata,
	      struct probe **ret)
{
	_cleanup_(probe_freep) struct probe *probe = calloc(1, sizeof(*probe));
	int r;

	if (!probe)
		return -ENOMEM;
	probe->helper.fd = probe->child = -1;
	probe->files = files;
	probe->patience_usec = patience_usec;
	probe->piece = piece;
	probe->done = done;
	probe->userdata = userdata;
	if (debugfs && asprintf(&probe->file, "%s/%s", debugfs, files->first) < 0)
		probe->file = NULL;
	if (debugfs && files->second &&
	    asprintf(&probe->second, "%s/%s", debugfs, files->second) < 0)
		probe->second = NULL;
	if (debugfs && (!probe->file || (files->second && !probe->second)))
		return -ENOMEM;
	r = helper_init(&probe->helper, event, SOCK_STREAM, probe->file ?: files->socket,
			files->unit, on_text, on_late, probe);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(probe);
	return 0;
}

struct probe *probe_free(struct probe *probe)
{
	if (!probe)
		return NULL;

	probe_cancel(probe);
	if (probe->child >= 0) {
		struct pollfd end = { .fd = probe->child, .events = POLLIN };

		poll(&end, 1, DIE_MSEC);
		child_is_gone(probe);
	}
	drop_child(probe); /* init reaps a child that has not ended after this process */
	helper_done(&probe->helper);
	free(probe->second);
	free(probe->file);
	free(probe);
	return NULL;
}
