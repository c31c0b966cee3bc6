/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* gpuarb-agent for a rootful container: its library and its socket are mounted into the container, and it runs outside. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/oci/runtime-config.h"

/* Whether programs of the container can load the library, as far as its root file system shows. False: why. */
bool oci_agent_find(struct json_object *config, char library[static PATH_MAX], char *why,
		    size_t size);

/* Adds mounts and variables. Returns the listening socket, or a negative errno. */
int oci_agent_mount(struct json_object *config, const char *library, uint64_t lease);

/* Starts gpuarb-agent, which takes over the file of the socket. pid: the first process of the container. */
int oci_agent_start(uint64_t lease, pid_t pid, int listening);

/* Deletes the file of the socket. */
void oci_agent_delete(int listening);
