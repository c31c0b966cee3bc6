/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sockets on which gpuarb-agent listens. It deletes their file when it ends. */

#include <stdbool.h>
#include <stdint.h>

#define AGENT_SOCKET 108 /* bytes of a name, which has the form of a path */

/* A new listening socket with a file of this name, or an abstract one. */
int agent_socket_listen(const char *name, bool file);

/* Makes a socket with a file in the directory, after deleting those there that killed agents of this user have left.
 * -ENOENT: the directory cannot be used. */
int agent_socket_make(const char *dir, uint64_t lease, char ret[static AGENT_SOCKET]);
