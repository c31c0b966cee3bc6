/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The connection of this process to gpuarb-agent. The program may close every fd, this one
 * included, and its number may then belong to another file. So every use first compares the inode.
 */

#include <sys/types.h>

#include "libgpuarb/agent/message.h"

struct link {
	int fd; /* -1: none */
	ino_t inode;
};

/* Connects to the abstract socket of this name. -ECONNREFUSED: nothing listens there. -EPERM: a
 * process of another user does. */
int link_open(struct link *link, const char *name);

/* Closes the fd if it still is this connection. */
void link_close(struct link *link);

bool link_is_ours(const struct link *link);

/*
 * Waits for a message or the end of the connection, at most msec milliseconds, or without limit for
 * -1. False: nothing came. Without limit it waits in recv(), which keeps the socket that it started
 * with. poll() looks the number up again whenever it wakes up, so it could wait for another file.
 */
bool link_wait(int fd, int msec);

/* Receives the next grant, waiting up to msec milliseconds. 1: received. 0: nothing came.
 * -ECONNRESET: the connection is closed. -EPROTO: the message is not a grant. */
int link_receive(const struct link *link, int msec, struct agent_grant *ret);

/* Reports that all queues have the masks of this generation, or why they do not (-errno). */
void link_answer(const struct link *link, uint64_t generation, int error);
