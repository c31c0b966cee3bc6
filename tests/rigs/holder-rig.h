/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Holders on an event loop, counts of their callbacks, and processes to bind. */

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check-cond.h"
#include "sys/liveness/holder.h"

struct rig {
	sd_event *event;
	struct store *store;
	struct holders *holders;
	unsigned holders_gone, bound_gone;
	uint64_t lease; /* of the last callback */
	pid_t pid;
	bool drop; /* the callback drops the lease */
};

void rig_holders(struct rig *rig);

/* Starts without a service manager. */
void holder_rig_init(struct rig *rig);

void holder_rig_done(struct rig *rig);

/* Handles all pending events without waiting. */
void holder_rig_settle(struct rig *rig);

int add(struct rig *rig, uint64_t lease);

int open_pidfd(pid_t pid);

/* A process that waits to be killed. */
pid_t start_sleeper(void);

void kill_and_reap(pid_t pid);
