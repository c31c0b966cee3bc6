/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * run --requeue: the command is a child of gpuarbctl. If its lease is revoked, the command is ended:
 * with SIGTERM at once, and with SIGKILL after three quarters of the time until the deadline. If the
 * lease waits again, the command is started again when the lease is granted again.
 *
 * It is ended and not paused, because a process with queues has its process slot and its memory on
 * the GPU, paused or not, and its queues cannot move to another GPU.
 *
 * run --restart-on-reset: when the driver has reset a GPU of the lease, the command has lost its queues. It is ended, if
 * it has not ended by itself, and started again under the same lease when the reset has ended; but not twice
 * within a minute, because it can be what hangs the GPU.
 */

#include "client/options/options.h"

struct supervisor {
	const struct command *command;
	struct gpuarb_lease *lease; /* granted */

	/* In the child: executes the command. Returns the exit code if that fails. */
	int (*execute)(void *userdata);
	/* Before each start: prints what was granted. An exit code. */
	int (*granted)(void *userdata);
	void *userdata;
};

/* Runs the command until it ends by itself, and returns its exit code: 128 + N if signal N ended it.
 * Signals to gpuarbctl go to the command. */
int supervisor_run(const struct supervisor *supervisor);
