/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/target.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/change/observe.h"
#include "util/log.h"
#include "util/text.h"
#include "sys/cgroup.h"
#include "sys/process.h"

/* amdkfd has a directory for each process that has opened /dev/kfd, named by its pid in the initial
 * namespace (kfd_procfs in drivers/gpu/drm/amd/amdkfd/kfd_process.c). */
static bool uses_kfd(const char *sysfs, pid_t pid)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/class/kfd/kfd/proc/%d", sysfs, (int)pid);

	return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

static int describe(int pidfd, struct observed *ret, char *why, size_t size)
{
	int r = process_pid_of_pidfd(pidfd, &ret->pid);

	if (r == -EBADF)
		return refuse(why, size, r, "the file descriptor of the request is not a pidfd");
	if (r < 0)
		return refuse(why, size, r,
			      "the process has ended, or is in another pid namespace");
	process_describe(ret);
	return 0;
}

int target_check(const char *sysfs, int pidfd, uint64_t start_time, pid_t spared,
		 struct target *ret, char *why, size_t size)
{
	struct observed process = { 0 };
	bool never, kfd;
	int r;

	r = describe(pidfd, &process, why, size);
	if (r < 0)
		return r;
	never = process.pid == 1 || process.pid == getpid() || process.pid == spared ||
		process_is_kernel_thread(process.pid);
	kfd = uses_kfd(sysfs, process.pid);
	if (!process_is_alive(pidfd))
		return refuse(why, size, -ESRCH, "the process has ended");
	if (never)
		return refuse(why, size, -EPERM, "process %d (%s) is never killed or frozen",
			      (int)process.pid, process.command);
	if (process.start_time != start_time)
		return refuse(why, size, -ESRCH,
			      "process %d (%s) has start time %" PRIu64 ", not %" PRIu64
			      ": it is another process",
			      (int)process.pid, process.command, process.start_time, start_time);
	if (!kfd)
		return refuse(why, size, -ENODEV, "process %d (%s) does not use a KFD device",
			      (int)process.pid, process.command);
	*ret = (struct target){ .pidfd = pidfd, .pid = process.pid };
	memcpy(ret->command, process.command, sizeof(ret->command));
	return 0;
}

int target_check_unit(const struct target *target, const char *unit, char *why, size_t size)
{
	struct unit_place place;
	int r = unit_of_process(target->pid, &place);

	if (r >= 0 && process_is_alive(target->pidfd) && strcmp(place.unit, unit) == 0)
		return 0;
	return refuse(why, size, -EPERM, "process %d (%s) is in %s, not in %s", (int)target->pid,
		      target->command, r >= 0 ? place.unit : "no unit", unit);
}

int target_kill(const struct target *target, char *why, size_t size)
{
	if (syscall(SYS_pidfd_send_signal, target->pidfd, SIGKILL, NULL, 0) < 0)
		return refuse(why, size, -errno, "cannot kill process %d (%s): %s",
			      (int)target->pid, target->command, strerror(errno));
	log_notice("process %d (%s): SIGKILL", (int)target->pid, target->command);
	return 0;
}
