/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The processes of a container, as a container engine adds them: `podman exec` starts a program that does not descend from
 * the container's first process, but is in its cgroup and in its pid namespace.
 *
 * The kernel vouches for both. A process cannot enter a cgroup or a pid namespace without rights on it, and one outside of
 * all containers has no pid in an inner namespace, in whichever cgroup it is.
 */

#include <stdbool.h>
#include <sys/types.h>

/* Where a process of an inner pid namespace is. */
struct container_place {
	pid_t parent;
	unsigned depth;    /* in how many pid namespaces it has a pid, from that of /proc on */
	pid_t inner_pid;   /* in the innermost */
	char cgroup[1024]; /* in the unified hierarchy, "/machine.slice/libpod-….scope" */
};

/* proc: "/proc". -ENOENT, -ESRCH: it has ended; -ENODATA: it is in no inner pid namespace, there is no unified hierarchy,
 * or it is outside of the cgroup namespace of this process; -ENAMETOOLONG. */
int container_place_read(const char *proc, pid_t pid, struct container_place *ret);

/* The place of a process with which a container with a cgroup of its own begins: it is process 1 of an inner pid
 * namespace, and its parent is in another cgroup, which is not below. -ENODATA: it is no such process. */
int container_read(const char *proc, pid_t pid, struct container_place *ret);

/* Is the process in the cgroup of the container or below, and as deep in pid namespaces? */
bool container_has(const struct container_place *container, const struct container_place *process);
