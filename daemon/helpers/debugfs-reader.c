/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/debugfs-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/helper.h"
#include "sys/process.h"
#include "util/fd.h"
#include "util/text.h"

/* The units of the services have the same scripts: tests/lint/check-units.sh compares them. */
/* clang-format off */
const struct probe_files probe_mqds = {
	.needs = "kfd/mqds",
	.script = "cat kfd/mqds && { ! test -r kfd/rls || cat kfd/rls; } && echo . || echo !",
	.socket = "/run/gpuarb-mqds.socket",
	.name = "gpuarb-mqds",
};

const struct probe_files probe_hqds = {
	.needs = "kfd/hqds",
	.script = "cat kfd/hqds && { ! test -r kfd/mqds || cat kfd/mqds; } && echo . || echo !",
	.socket = "/run/gpuarb-hqds.socket",
	.name = "gpuarb-hqds",
};

/* grep(1) exits with 1 or 2 where a client has no queue, or has just ended: what it could not read, and why, is in the
 * text. */
const struct probe_files probe_userqs = {
	.needs = "dri",
	.script = "LC_ALL=C grep -H . ./dri/client-*/device/name ./dri/client-*/queue*/mqd_info 2>&1; test $? -le 2 && echo . || echo !",
	.socket = "/run/gpuarb-userqs.socket",
	.name = "gpuarb-userqs",
};
/* clang-format on */

struct probe {
	struct helper helper; /* fd: what the text comes from; -1: nothing was asked */
	const struct probe_files *files;
	char *directory, *file; /* NULL: ask at the socket */
	probe_piece_t *piece;
	probe_done_t *done;
	void *userdata;
	uint64_t patience_usec;

	char *text;         /* PROBE_PIECE_MAX bytes */
	size_t size, taken; /* what was read of it, and what of that the caller has had */
	size_t total;       /* bytes of the text */
};

/* ---- asking -------------------------------------------------------------------------- */

/* Does as the service does. What has been given up may go on for some seconds: it has no other descriptor. */
__attribute__((noreturn)) static void run_script(const struct probe *probe, int out)
{
	sigset_t none;
	int null;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(out, STDOUT_FILENO);
	close_range(STDERR_FILENO, UINT32_MAX, 0);
	null = open("/dev/null", O_RDWR);
	if (dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
	    chdir(probe->directory) == 0)
		execlp("timeout", "timeout", "-s", "KILL", PROBE_SCRIPT_SECONDS, "sh", "-c",
		       probe->files->script, NULL);
	_exit(write(STDOUT_FILENO, "!\n", 2) < 2);
}

/* Returns the end of the pipe that reads the text, without blocking. Another process reads the files, because a read
 * of debugfs may block in the kernel. */
static int start_script(const struct probe *probe)
{
	_cleanup_fd_ int in = -1, out = -1;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	in = fds[0];
	out = fds[1];
	if (fcntl(in, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	r = process_fork();
	if (r < 0)
		return r;
	if (r == 0)
		run_script(probe, out);
	return take_fd(&in);
}

static int open_script(struct probe *probe, char *why, size_t size)
{
	int fd;

	if (faccessat(AT_FDCWD, probe->file, R_OK, AT_EACCESS) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return refuse(why, size, -EOPNOTSUPP, "there is no %s", probe->file);
		return refuse(why, size, -errno, "cannot read %s: %s", probe->file,
			      strerror(errno));
	}
	fd = start_script(probe);
	if (fd < 0)
		return refuse(why, size, fd, "cannot start the reader of %s: %s", probe->file,
			      strerror(-fd));
	return helper_watch(&probe->helper, fd, why, size);
}

int probe_start(struct probe *probe, char *why, size_t size)
{
	int r;

	probe_cancel(probe);
	r = probe->file ? open_script(probe, why, size) : helper_open(&probe->helper, why, size);
	if (r >= 0)
		r = helper_await(&probe->helper, probe->patience_usec);
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

/* Is this the last line of a text, which says how the script has ended? */
static bool is_mark(const char *line)
{
	return (line[0] == '.' || line[0] == '!') && line[1] == '\n';
}

/* The size of the whole lines in what was read, without the mark. */
static size_t whole_lines(const struct probe *probe)
{
	const char *newline = memrchr(probe->text, '\n', probe->size);
	size_t size = newline ? (size_t)(newline + 1 - probe->text) : 0;

	if (size >= 2 && is_mark(probe->text + size - 2) &&
	    (size == 2 || probe->text[size - 3] == '\n'))
		size -= 2;
	return size;
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
	probe->taken = whole_lines(probe);
	if (probe->taken > 0)
		return 1;
	if (probe->size == PROBE_PIECE_MAX)
		return refuse(why, size, -EFBIG, "%s has a line that is longer than %u KiB",
			      probe->helper.socket, PROBE_PIECE_MAX / 1024);
	if (r == 0 && probe->total == 0 && !probe->file)
		return refuse(why, size, -EOPNOTSUPP,
			      "%s sends nothing: /sys/kernel/debug/%s does not exist, or the "
			      "service cannot start: see gpuarbctl doctor",
			      probe->helper.socket, probe->files->needs);
	if (r == 0 && (probe->size != 2 || probe->text[0] != '.'))
		return refuse(why, size, -EIO,
			      "cannot read %s: its reader has failed, or was killed: the journal "
			      "may have the reason",
			      probe->helper.socket);
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
	} else if (r != -EAGAIN) {
		end(probe, r, r < 0 ? why : "");
	}
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
	probe->helper.fd = -1;
	probe->files = files;
	probe->patience_usec = patience_usec;
	probe->piece = piece;
	probe->done = done;
	probe->userdata = userdata;
	if (debugfs) {
		probe->directory = strdup(debugfs);
		if (asprintf(&probe->file, "%s/%s", debugfs, files->needs) < 0)
			probe->file = NULL;
		if (!probe->directory || !probe->file)
			return -ENOMEM;
	}
	r = helper_init(&probe->helper, event, SOCK_STREAM, probe->file ?: files->socket,
			files->name, on_text, on_late, probe);
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
	helper_done(&probe->helper);
	free(probe->directory);
	free(probe->file);
	free(probe);
	return NULL;
}
