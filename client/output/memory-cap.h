/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Whether the kernel caps the memory of a GPU: the dmem controller of cgroups, which an administrator or
 * Slurm can use. gpuarb sets no cap itself.
 */

#include <stdint.h>
#include <sys/types.h>

enum memory_cap {
	MEMORY_CAP_NO_CONTROLLER, /* the kernel has no dmem controller */
	MEMORY_CAP_NO_REGION,     /* it has one, and the driver registered no region for this GPU */
	MEMORY_CAP_NONE,          /* the cgroup of the process, and those above, have no limit */
	MEMORY_CAP_SET,
};

/* root: the prefix of /sys and /proc, "" but in tests; gpu: as "0000:03:00.0/2"; pid: of the process; 0: of
 * none. Writes the smallest limit in bytes for MEMORY_CAP_SET. What cannot be read counts as absent. */
enum memory_cap memory_cap_read(const char *root, const char *gpu, pid_t pid, uint64_t *ret);

/* "not capped (kernel without dmem)", or "capped at 8.0G by its cgroup" */
#define MEMORY_CAP_TEXT 64U
void memory_cap_text(enum memory_cap cap, uint64_t bytes, char ret[static MEMORY_CAP_TEXT]);
