/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The systemd unit of a process, and all processes of a unit. A unit can only be frozen as a whole,
 * so the caller has to know all its processes first.
 *
 * Both are snapshots: processes may be added while they are read and afterwards.
 */

#include <stddef.h>
#include <sys/types.h>

#include "util/base.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define UNIT_PROCESSES_MAX 2048U /* gpuarbd describes each, in about 50 microseconds */
#define UNIT_CGROUPS_MAX 512U

struct unit_place {
	char unit[256];    /* "training.service", "session-3.scope" */
	char cgroup[1024]; /* of the unit, not one below it: "/system.slice/training.service" */
};

/* The unit of a process in the system manager; for processes of a user manager it is
 * "user@UID.service". -ESRCH: the process has ended; -ENODATA: it is in no service or scope;
 * -EOPNOTSUPP: no unified cgroup hierarchy. */
int unit_of_process(pid_t pid, struct unit_place *ret);

/* The beginning of a cgroup path up to the unit. -ENODATA: the unit is not in the path;
 * -ENAMETOOLONG. */
int unit_cgroup(const char *path, const char *unit, char *ret, size_t size);

/*
 * The processes of a cgroup and of all cgroups below it, ascending, each once; *ret is for free(),
 * NULL if there is none. root: CGROUP_ROOT. -ENOENT: no such cgroup; -EOPNOTSUPP: a cgroup of
 * threads; -EXDEV: a process outside of this pid namespace, which has no pid here; -E2BIG: more
 * than UNIT_PROCESSES_MAX, UNIT_CGROUPS_MAX or 32 levels; -EBADMSG: not a cgroup.
 */
int unit_processes(const char *root, const char *cgroup, pid_t **ret, size_t *ret_n);
