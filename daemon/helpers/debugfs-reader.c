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
	char *file, *second; /* NULL: ask at the socket */
	char *script;        /* NULL: copy both files */
	int status_max;      /* that means success */
	char *socket;
	const char *unit;
	int epoll;

	bool asked;
	int in;             /* -1: the text has ended, or nothing was asked */
	int child;          /* a pidfd; -1: none */
	char *text;         /* PROBE_PIECE_MAX bytes */
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
	char *const runs[] = { sh, option, probe->script, probe->file, NULL };
	char *const *argv = probe->script ? runs : copies;
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

	/* Only this process reaps the child, so the pid is still its own. */
	probe->child = (int)syscall(SYS_pidfd_open, pid, 0);
	if (probe->child < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
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
	close(probe->child);
	probe->child = -1;
	return true;
}

/* Reaps a child that was given up. */
static bool child_is_gone(struct probe *probe)
{
	int status;

	return probe->child < 0 || child_ended(probe, &status);
}

/* ---- life ------------------------------------------------------------------------------ */

static int watch(struct probe *probe, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(probe->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int probe_new(const char *debugfs, const struct probe_files *files, struct probe **ret)
{
	_cleanup_(probe_freep) struct probe *probe = calloc(1, sizeof(*probe));

	if (!probe)
		return -ENOMEM;
	probe->in = probe->epoll = probe->child = -1;
	if (debugfs && asprintf(&probe->file, "%s/%s", debugfs, files->first) < 0) {
		probe->file = NULL;
		return -ENOMEM;
	}
	if (debugfs && files->second &&
	    asprintf(&probe->second, "%s/%s", debugfs, files->second) < 0) {
		probe->second = NULL;
		return -ENOMEM;
	}
	probe->script = files->script ? strdup(files->script) : NULL;
	probe->status_max = files->status_max;
	probe->unit = files->unit;
	probe->socket = strdup(files->socket);
	if (!probe->socket || (files->script && !probe->script))
		return -ENOMEM;
	probe->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (probe->epoll < 0)
		return -errno;
	*ret = TAKE_PTR(probe);
	return 0;
}

int probe_fd(const struct probe *probe)
{
	return probe->epoll;
}

/* An fd that is closed leaves the epoll by itself: nobody else has a copy. */
static void close_in(struct probe *probe)
{
	if (probe->in >= 0)
		close(probe->in);
	probe->in = -1;
}

void probe_cancel(struct probe *probe)
{
	close_in(probe);
	free(probe->text);
	probe->text = NULL;
	probe->size = probe->taken = probe->total = 0;
	if (!child_is_gone(probe)) {
		syscall(SYS_pidfd_send_signal, probe->child, SIGKILL, NULL, 0);
		if (probe->asked)
			watch(probe, probe->child); /* a later call reaps it */
	}
	probe->asked = false;
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
	if (probe->child >= 0)
		close(probe->child); /* init reaps the child after this process */
	if (probe->epoll >= 0)
		close(probe->epoll);
	free(probe->socket);
	free(probe->script);
	free(probe->second);
	free(probe->file);
	free(probe);
	return NULL;
}

static const char *from(const struct probe *probe)
{
	return probe->file ? probe->file : probe->socket;
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
	return fd;
}

int probe_start(struct probe *probe, char *why, size_t size)
{
	int r;

	probe_cancel(probe);
	if (!child_is_gone(probe))
		return refuse(why, size, -EBUSY, "the reader of %s that was given up has not ended",
			      probe->file);

	if (probe->file)
		r = start_child(probe, why, size);
	else
		r = helper_connect(probe->socket, SOCK_STREAM, probe->unit, why, size);
	if (r < 0)
		return r;
	probe->in = r;
	probe->asked = true;
	r = watch(probe, probe->in);
	if (r < 0) {
		probe_cancel(probe);
		return refuse(why, size, r, "cannot wait for the text of %s: %s", from(probe),
			      strerror(-r));
	}
	return 0;
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
		n = read(probe->in, probe->text + probe->size, PROBE_PIECE_MAX - probe->size);
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
		return refuse(why, size, r, "cannot read %s: %s", from(probe), strerror(-r));
	if (probe->total > PROBE_MAX)
		return refuse(why, size, -EFBIG, "%s is larger than %u MiB", from(probe),
			      PROBE_MAX / 1024 / 1024);
	probe->taken = r == 0 ? probe->size : whole_lines(probe);
	if (probe->taken > 0)
		return 1;
	if (probe->size == PROBE_PIECE_MAX)
		return refuse(why, size, -EFBIG, "%s has a line that is longer than %u KiB",
			      from(probe), PROBE_PIECE_MAX / 1024);
	return r;
}

/* After the last byte the exit status says whether that was the whole file. */
static int end_child(struct probe *probe, char *why, size_t size)
{
	int status;

	if (!child_ended(probe, &status))
		return -EAGAIN;
	if (status >= 0 && status <= probe->status_max)
		return 0;
	if (status < 0)
		return refuse(why, size, -EIO, "cannot read %s: the reader was killed",
			      probe->file);
	return refuse(why, size, -EIO, "cannot read %s: the reader exited with status %d",
		      probe->file, status);
}

static int take_text(struct probe *probe, char *why, size_t size)
{
	int r;

	if (probe->in < 0)
		return end_child(probe, why, size);
	r = next_piece(probe, why, size);
	if (r != 0)
		return r;
	close_in(probe);
	if (probe->child < 0)
		return 0;
	r = watch(probe, probe->child);
	if (r < 0)
		return refuse(why, size, r, "cannot wait for the reader: %s", strerror(-r));
	return end_child(probe, why, size);
}

int probe_read(struct probe *probe, const char **ret_text, size_t *ret_size, char *why, size_t size)
{
	int r;

	if (!probe->asked) {
		child_is_gone(probe);
		return -EAGAIN;
	}
	r = take_text(probe, why, size);
	if (r > 0) {
		*ret_text = probe->text;
		*ret_size = probe->taken;
	} else if (r != -EAGAIN) {
		probe_cancel(probe); /* the child of a text that has ended was reaped */
	}
	return r;
}
