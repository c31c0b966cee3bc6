/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A wait ends with its event; one that passes the limit ends the test, and prints what it waited for. */

#include "await.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char said[512];

/* Runs the wait in a child with a limit of 24 ms. Returns the signal that ended the child, and has
 * its standard error in said. */
static int ends_with(void (*wait)(void))
{
	int ends[2], status;
	pid_t pid;
	ssize_t n;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(setenv("GPUARB_PATIENCE", "0.0001", 1) == 0);
		CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
		wait();
		_exit(0);
	}
	close(ends[1]);
	n = read(ends[0], said, sizeof(said) - 1);
	CHECK(n >= 0);
	said[n] = '\0';
	close(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void await_silent_descriptor(void)
{
	int silent[2];

	CHECK(pipe(silent) == 0);
	AWAIT_FD(silent[0], POLLIN);
}

static void await_false_state(void)
{
	int sheep = 0;

	AWAIT_STATE(sheep > 99);
}

/* The limit is of the whole wait, not of each event. */
static void await_beside_other_events(void)
{
	struct await await = AWAIT_BEGIN("the last event");
	struct pollfd ready = { .events = POLLIN };
	int always[2];

	CHECK(pipe(always) == 0 && write(always[1], "", 1) == 1);
	ready.fd = always[0];
	for (;;)
		await_fds(&await, &ready, 1);
}

static void await_own_end(void)
{
	AWAIT_END(getpid());
}

TEST(wait_that_passes_the_limit_names_its_place_and_its_event)
{
	CHECK(ends_with(await_silent_descriptor) == SIGABRT);
	CHECK(strstr(said, "test-await.c:") && strstr(said, "not in 0.024 s: silent[0]\n"));
	CHECK(ends_with(await_false_state) == SIGABRT && strstr(said, ": sheep > 99\n"));
	CHECK(ends_with(await_beside_other_events) == SIGABRT);
	CHECK(strstr(said, ": the last event\n"));
	CHECK(ends_with(await_own_end) == SIGABRT && strstr(said, "process"));
}

TEST(wait_ends_with_its_event)
{
	int ends[2], turns = 0;
	pid_t pid;

	CHECK(pipe(ends) == 0 && write(ends[1], "", 1) == 1);
	CHECK(AWAIT_FD(ends[0], POLLIN) == POLLIN);
	close(ends[1]);
	CHECK(read(ends[0], &(char){ 0 }, 1) == 1);
	CHECK(AWAIT_FD(ends[0], POLLIN) == POLLHUP);
	AWAIT_STATE(++turns == 3);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	AWAIT_END(pid);
	CHECK(waitpid(pid, NULL, WNOHANG) == pid);
	AWAIT_END(pid); /* there is none any more */
}
