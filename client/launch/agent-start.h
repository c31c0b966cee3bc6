/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* gpuarb-agent: where it is, the sockets on which it listens, whose file it deletes when it ends, and its start. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of programs or libraries: where they are installed, or GPUARB_AGENT_DIR, which is for a gpuarb that is not installed. */
const char *agent_dir(const char *installed);

/* The name of the sockets is in this variable: libgpuarb/agent/link.h. */
#define AGENT_VARIABLE "GPUARB_AGENT"
#define AGENT_SOCKET 108 /* bytes of a name, which has the form of a path */

/* A new listening socket with a file of this name, or an abstract one. */
int agent_socket_listen(const char *name, bool file);

/* Makes a socket with a file in the directory, after deleting those there that killed agents of this user have left.
 * -ENOENT: the directory cannot be used. */
int agent_socket_make(const char *dir, uint64_t lease, char ret[static AGENT_SOCKET]);

/* Starts the agent of a lease, which listens on both sockets. root: the first process of the command, and its pidfd.
 * quiet: without standard error. Does not wait until the agent follows the lease: the first queue of the command does. */
int agent_start(const char *program, uint64_t lease, pid_t root, const int listening[static 2],
		int process, bool quiet);
