/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "await.h"
#include "check-cond.h"
#include "rig-internal.h"

static _Noreturn void execute_manager(const struct rig *rig, const char *hardware,
				      const char *options)
{
	const char *program[16] = { rig->user > 0 ? rig_path(rig, "service-manager")
						  : getenv("SERVICE_MANAGER") };
	char text[256], *rest = NULL;
	size_t n = 1;

	CHECK(program[0]);
	snprintf(text, sizeof(text), "%s", options);
	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		CHECK(n < 12);
		program[n++] = word;
	}
	program[n++] = "--";
	program[n] = rig_daemon(rig);
	rig_execute(rig, hardware, program);
}

void rig_start_managed(struct rig *rig, const char *hardware, const char *options)
{
	pid_t parent = getpid();
	int in[2], out[2];

	CHECK(rig->daemon == 0 && rig->manager == 0);
	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	rig->manager = fork();
	CHECK(rig->manager >= 0);
	if (rig->manager == 0) {
		rig_become_user(rig);
		rig_die_with_parent(parent);
		CHECK(dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0);
		execute_manager(rig, hardware, options);
	}
	close(in[0]);
	close(out[1]);
	rig->say = in[1];
	rig->hear = out[0];
	rig->heard_size = 0;
	rig_hear(rig, "ready");
}

/* What it ends with is the daemon's own status. */
void rig_stop_manager(struct rig *rig)
{
	int status;

	rig_say(rig, "stop");
	status = rig_await_end(rig->manager);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(rig->say);
	close(rig->hear);
	rig->manager = rig->daemon = 0;
}

void rig_say(struct rig *rig, const char *format, ...)
{
	char line[64];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	CHECK(n > 0 && (size_t)n < sizeof(line) - 1);
	line[n++] = '\n';
	CHECK(write(rig->say, line, (size_t)n) == n);
}

/* The next line, without its newline. */
static void hear_line(struct rig *rig, const struct await *await,
		      char ret[static sizeof(rig->heard)])
{
	struct pollfd ready = { .fd = rig->hear, .events = POLLIN };
	char *end;

	while (!(end = memchr(rig->heard, '\n', rig->heard_size))) {
		ssize_t n;

		CHECK(rig->heard_size < sizeof(rig->heard));
		await_fds(await, &ready, 1);
		n = read(rig->hear, rig->heard + rig->heard_size,
			 sizeof(rig->heard) - rig->heard_size);
		CHECK(n > 0);
		rig->heard_size += (size_t)n;
	}
	*end++ = '\0';
	memcpy(ret, rig->heard, (size_t)(end - rig->heard));
	rig->heard_size -= (size_t)(end - rig->heard);
	memmove(rig->heard, end, rig->heard_size);
}

/* A daemon that a sanitizer has ended is none that was killed. */
static bool is_failure(const char *line)
{
	return strcmp(line, "failed") == 0 ||
	       (strncmp(line, "died ", 5) == 0 && strcmp(line, "died SIGKILL") != 0 &&
		strcmp(line, "died 0") != 0);
}

const char *rig_hear(struct rig *rig, const char *word)
{
	const struct await await = AWAIT_BEGIN(word);
	static char line[sizeof(rig->heard)];
	size_t length = strlen(word);

	for (;;) {
		hear_line(rig, &await, line);
		sscanf(line, "started %d", &rig->daemon);
		sscanf(line, "ready %d", &rig->ready);
		if (strncmp(line, word, length) == 0 && (line[length] == ' ' || !line[length]))
			return line + length + (line[length] == ' ');
		if (is_failure(line) && (!rig->may_fail || line[0] == 'f')) {
			fprintf(stderr, "%s, and not %s\n", line, word);
			abort();
		}
	}
}

void rig_await_ready(struct rig *rig)
{
	while (rig->ready != rig->daemon)
		rig_hear(rig, "ready");
}

void rig_crash(struct rig *rig)
{
	rig_say(rig, "kill");
	rig_hear(rig, "died");
	rig_hear(rig, "ready");
}

void rig_restart(struct rig *rig)
{
	rig_say(rig, "restart");
	CHECK(strcmp(rig_hear(rig, "died"), "0") == 0);
	rig_hear(rig, "ready");
}

void rig_down(struct rig *rig)
{
	rig_say(rig, "hold");
	rig_say(rig, "kill");
	rig_hear(rig, "died");
	rig->daemon = 0;
}

void rig_up(struct rig *rig)
{
	rig_say(rig, "go");
	rig_hear(rig, "ready");
}

void rig_await_stored(struct rig *rig, unsigned n)
{
	rig_say(rig, "stored");
	for (const char *has = rig_hear(rig, "holds"); strtoul(has, NULL, 10) != n;)
		has = rig_hear(rig, "stored");
}
