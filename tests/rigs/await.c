/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "await.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "check-cond.h"

#define MOMENT_USEC 5000U

uint64_t await_limit_usec(void)
{
	const char *text = getenv("GPUARB_PATIENCE");
	double factor = text ? strtod(text, NULL) : 1;

	return (uint64_t)(1000000.0 * AWAIT_LIMIT_SEC * (factor > 0 ? factor : 1));
}

static uint64_t now_usec(void)
{
	struct timespec now;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

struct await await_begin(const char *what, const char *file, int line)
{
	return (struct await){ what, file, line, now_usec() + await_limit_usec() };
}

static _Noreturn void await_fail(const struct await *await)
{
	fprintf(stderr, "%s:%d: not in %g s: %s\n", await->file, await->line,
		(double)await_limit_usec() / 1e6, await->what);
	abort();
}

/* What is left until the limit. */
static uint64_t await_left(const struct await *await)
{
	uint64_t now = now_usec();

	if (now >= await->deadline)
		await_fail(await);
	return await->deadline - now;
}

void await_fds(const struct await *await, struct pollfd *fds, size_t n)
{
	int r;

	do {
		r = poll(fds, n, (int)(await_left(await) / 1000) + 1);
		CHECK(r >= 0 || errno == EINTR);
	} while (r <= 0);
}

void await_loop(const struct await *await, sd_event *event)
{
	int r;

	do {
		r = sd_event_run(event, await_left(await));
		CHECK(r >= 0);
	} while (r == 0);
}

void await_bus(const struct await *await, sd_bus *bus)
{
	uint64_t left = await_left(await);
	int r = sd_bus_process(bus, NULL);

	CHECK(r >= 0);
	if (r == 0)
		CHECK(sd_bus_wait(bus, left) >= 0);
}

void await_moment(const struct await *await)
{
	const struct timespec moment = { .tv_nsec = MOMENT_USEC * 1000 };

	await_left(await);
	nanosleep(&moment, NULL);
}

short await_fd(int fd, short events, const char *what, const char *file, int line)
{
	const struct await await = await_begin(what, file, line);
	struct pollfd ready = { .fd = fd, .events = events };

	await_fds(&await, &ready, 1);
	return ready.revents;
}

void await_end(pid_t pid, const char *file, int line)
{
	char what[64];
	int fd = pidfd_open(pid, 0);

	if (fd < 0) {
		CHECK(errno == ESRCH);
		return;
	}
	snprintf(what, sizeof(what), "the end of process %d", (int)pid);
	await_fd(fd, POLLIN, what, file, line);
	close(fd);
}
