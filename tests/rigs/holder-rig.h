/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Holders on an event loop of their own, with what was told of them, and processes to bind. */

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "sys/liveness/holder.h"

struct rig {
	sd_event *event;
	struct store *store;
	struct holders *holders;
	unsigned holders_gone, bound_gone;
	uint64_t lease; /* the last that lost something */
	pid_t pid;
	bool drop; /* drop the lease in the callback */
};

static inline void holder_gone(void *userdata, uint64_t lease)
{
	struct rig *rig = userdata;

	rig->holders_gone++;
	rig->lease = lease;
	if (rig->drop)
		holders_drop(rig->holders, lease);
}

static inline void bound_gone(void *userdata, uint64_t lease, pid_t pid)
{
	struct rig *rig = userdata;

	rig->bound_gone++;
	rig->lease = lease;
	rig->pid = pid;
	if (rig->drop)
		holders_drop(rig->holders, lease);
}

static inline void rig_holders(struct rig *rig)
{
	static const struct holders_callbacks callbacks = { holder_gone, bound_gone };

	CHECK(holders_new(rig->event, rig->store, &callbacks, rig, &rig->holders) == 0);
}

/* Without a service manager. */
static inline void rig_init(struct rig *rig)
{
	struct diagnostics diagnostics = { 0 };

	*rig = (struct rig){ 0 };
	CHECK(unsetenv("NOTIFY_SOCKET") == 0);
	CHECK(sd_event_new(&rig->event) >= 0);
	CHECK(store_new(rig->event, &rig->store, &diagnostics) == 0);
	diagnostics_done(&diagnostics);
	rig_holders(rig);
}

static inline void rig_done(struct rig *rig)
{
	holders_free(rig->holders);
	store_free(rig->store);
	sd_event_unref(rig->event);
}

/* Handles all that is there now, without waiting. */
static inline void settle(struct rig *rig)
{
	int r;

	do {
		r = sd_event_run(rig->event, 0);
		CHECK(r >= 0);
	} while (r > 0);
}

static inline int add(struct rig *rig, uint64_t lease)
{
	int fd = holders_add(rig->holders, lease);

	CHECK(fd >= 0);
	return fd;
}

static inline int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* A process that waits to be killed. */
static inline pid_t start_sleeper(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static inline void kill_and_reap(pid_t pid)
{
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}
