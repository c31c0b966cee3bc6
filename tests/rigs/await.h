/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How a test waits: for an event, with the one limit that stands here. A wait that passes the limit
 * prints what it waited for, and aborts the test. The environment variable GPUARB_PATIENCE, a
 * number, multiplies the limit: for valgrind. await.sh and tests/python/rig.py read the limit from
 * this file.
 */

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

/* Only a failure takes so long: a machine that compiles and writes beside the tests delays an
 * answer by seconds, and a thousand answers by minutes. */
#define AWAIT_LIMIT_SEC 240

uint64_t await_limit_usec(void);

/* One wait, for one or more events. */
struct await {
	const char *what, *file;
	int line;
	uint64_t deadline; /* of CLOCK_MONOTONIC, in microseconds */
};

struct await await_begin(const char *what, const char *file, int line);
#define AWAIT_BEGIN(what) await_begin((what), __FILE__, __LINE__)

/* Each returns after an event: a descriptor that is ready, a turn of the loop, a message. */
void await_fds(const struct await *await, struct pollfd *fds, size_t n);
void await_loop(const struct await *await, sd_event *event);
void await_bus(const struct await *await, sd_bus *bus);

/* For a condition that no event announces: after some milliseconds. */
void await_moment(const struct await *await);

/* Until the condition holds, which is looked at after each event. */
#define AWAIT_WITH(event, what, cond)                          \
	do {                                                   \
		struct await await_it = AWAIT_BEGIN(what);     \
		while (!(cond)) {                              \
			const struct await *await = &await_it; \
			event;                                 \
		}                                              \
	} while (0)
#define AWAIT(bus, cond) AWAIT_WITH(await_bus(await, (bus)), #cond, (cond))
#define AWAIT_LOOP(loop, cond) AWAIT_WITH(await_loop(await, (loop)), #cond, (cond))
#define AWAIT_STATE(cond) AWAIT_WITH(await_moment(await), #cond, (cond))

/* One turn of the loop, or one message. */
#define AWAIT_TURN(loop, what)                                \
	do {                                                  \
		const struct await await = AWAIT_BEGIN(what); \
		await_loop(&await, (loop));                   \
	} while (0)

/* Until the descriptor has one of the events, POLLIN for example. Returns what it has. */
#define AWAIT_FD(fd, events) await_fd((fd), (events), #fd, __FILE__, __LINE__)
short await_fd(int fd, short events, const char *what, const char *file, int line);

/* Until the process has ended, which need not be a child. */
#define AWAIT_END(pid) await_end((pid), __FILE__, __LINE__)
void await_end(pid_t pid, const char *file, int line);
