/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * This process's connection to gpuarb-agent. The program may close any fd, ours too, and get the
 * number for a file of its own: so before each use it is looked whether it still is the socket.
 */

#include <sys/types.h>

#include "libgpuarb/agent/message.h"

struct link {
	int fd; /* -1: none */
	ino_t inode;
};

/* Connects to the abstract socket of that name. -ECONNREFUSED: nobody is there. -EPERM: it is
 * another user's. */
int link_open(struct link *link, const char *name);

/* Closes it if it still is ours. */
void link_close(struct link *link);

bool link_is_ours(const struct link *link);

/*
 * Waits until there is something to do, at most for msec; -1: for ever. False: nothing came. For
 * ever is waited in recv(), which stays with the socket that it began with: poll() looks for the
 * number each time it wakes up, and where another socket has it by then, sleeps on without it.
 */
bool link_wait(int fd, int msec);

/* Takes the next grant, waiting up to msec for it: 1. 0: there is none. -ECONNRESET: the other end
 * is gone, or the fd is; -EPROTO: what came is none. */
int link_receive(const struct link *link, int msec, struct agent_grant *ret);

void link_answer(const struct link *link, uint64_t generation, int error);
