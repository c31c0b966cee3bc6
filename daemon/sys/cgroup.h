/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Which unit of systemd's a process is in, and who else is: a unit is frozen as a whole, so
 * whoever asks for that must know that nobody else is hit.
 *
 * Both answers are of a moment: processes may come while they are read and after.
 */

#include <stddef.h>
#include <sys/types.h>

#include "util/base.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define UNIT_PROCESSES_MAX 65536U
#define UNIT_CGROUPS_MAX 4096U

struct unit_place {
	char unit[256];    /* "training.service", "session-3.scope" */
	char cgroup[1024]; /* of the unit, not of a part of it: "/system.slice/training.service" */
};

/* A process's unit of the system's service manager: of what a user's own manager runs that is
 * "user@UID.service". -ESRCH: it is gone; -ENODATA: it is in no service or scope;
 * -EOPNOTSUPP: there is no unified hierarchy of cgroups here. */
int unit_of_process(pid_t pid, struct unit_place *ret);

/* The part of a cgroup's path that is the unit's. -ENODATA: the unit is not in it;
 * -ENAMETOOLONG. */
int unit_cgroup(const char *path, const char *unit, char *ret, size_t size);

/*
 * The processes of a cgroup and of all those below it, ascending, each once; *ret is for free(),
 * NULL where there is none. root: CGROUP_ROOT. -ENOENT: there is no such cgroup; -EOPNOTSUPP:
 * a cgroup of threads; -EXDEV: one of them is outside of this pid namespace and has no number
 * here; -E2BIG: more than UNIT_PROCESSES_MAX, UNIT_CGROUPS_MAX or 32 levels; -EBADMSG: that is
 * no cgroup.
 */
int unit_processes(const char *root, const char *cgroup, pid_t **ret, size_t *ret_n);
