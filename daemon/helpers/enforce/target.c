/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/enforce/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/major.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "helpers/enforce-protocol.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/text.h"
#include "sys/cgroup.h"
#include "sys/process.h"
#include "sys/subuid-file.h"
#include "core/observe/attribution.h"

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

/* The file is read again each time: few processes have subordinate uids. */
static bool is_subordinate(uid_t uid, uid_t user)
{
	_cleanup_(diagnostics_done) struct diagnostics diagnostics = { 0 };
	struct subuids subuids = { 0 };
	bool is = subuid_load(&subuids, NULL, &diagnostics) >= 0 &&
		  subuids_user(&subuids, uid) == user;

	subuids_done(&subuids);
	return is;
}

static int check_user(const struct observed *process, uid_t user, char *why, size_t size)
{
	if (user == 0 ||
	    (!process->mixed && (process->uid == user || is_subordinate(process->uid, user))))
		return 0;
	return refuse(why, size, -EPERM, "process %d (%s) belongs to uid %u%s, not to uid %u",
		      (int)process->pid, process->command, process->uid,
		      process->mixed ? " and another one" : "", user);
}

int target_check(const char *sysfs, int pidfd, uint64_t start_time, uid_t user, pid_t spared,
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
	r = check_user(&process, user, why, size);
	if (r < 0)
		return r;
	*ret = (struct target){ .pidfd = pidfd, .pid = process.pid, .user = user };
	memcpy(ret->command, process.command, sizeof(ret->command));
	return 0;
}

static int check_users(const struct target *target, const struct unit_place *place, char *why,
		       size_t size)
{
	_cleanup_(freep) pid_t *pids = NULL;
	size_t n = 0;
	int r = target->user == 0 ? 0 : unit_processes(CGROUP_ROOT, place->cgroup, &pids, &n);

	if (r < 0)
		return refuse(why, size, -EPERM, "cannot read the processes of %s: %s", place->unit,
			      strerror(-r));
	for (size_t i = 0; i < n && r >= 0; i++) {
		struct observed process = { .pid = pids[i] };

		process_describe(&process);
		if (process.start_time > 0)
			r = check_user(&process, target->user, why, size);
	}
	return r;
}

int target_check_unleased(const struct target *target, uid_t user, char *why, size_t size)
{
	uid_t uids[3];

	if (process_uids(target->pid, uids) < 0 || !process_is_alive(target->pidfd))
		return refuse(why, size, -ESRCH, "the process has ended");
	if (uids[1] == user && uids[0] != 0 && uids[1] != 0 && uids[2] != 0)
		return 0;
	return refuse(why, size, -EPERM,
		      "process %d (%s) has uids %u, %u and %u: it is of root, or not of uid %u",
		      (int)target->pid, target->command, uids[0], uids[1], uids[2], user);
}

/* A terminal of devpts: in another one of a container the same number may be a terminal of another
 * user. */
void target_tell(const struct target *target, const char *text)
{
	dev_t terminal = process_terminal(target->pid);
	char path[64], clean[ENFORCE_UNIT_MAX], line[ENFORCE_UNIT_MAX + 96];
	_cleanup_fd_ int fd = -1;
	uid_t uids[3];
	struct stat st;

	if (text[0] == '\0' || major(terminal) < UNIX98_PTY_SLAVE_MAJOR ||
	    major(terminal) >= UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT)
		return;
	snprintf(path, sizeof(path), "/dev/pts/%u",
		 (major(terminal) - UNIX98_PTY_SLAVE_MAJOR) * 256 + minor(terminal));
	fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_rdev != terminal ||
	    process_uids(target->pid, uids) < 0 || st.st_uid != uids[0] ||
	    !process_is_alive(target->pidfd))
		return;
	text_clean(clean, sizeof(clean), text);
	snprintf(line, sizeof(line), "\r\ngpuarb: process %d (%s): %s\r\n", (int)target->pid,
		 target->command, clean);
	if (write(fd, line, strlen(line)) < 0)
		log_info("process %d (%s): its terminal takes no message", (int)target->pid,
			 target->command);
}

/* One that somebody else has frozen must not be thawed later. */
static int check_thawed(const struct unit_place *place, char *why, size_t size)
{
	char path[sizeof(CGROUP_ROOT) + sizeof(place->cgroup) + 16], frozen = '0';
	_cleanup_fd_ int fd = -1;

	snprintf(path, sizeof(path), "%s%s/cgroup.freeze", CGROUP_ROOT, place->cgroup);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read_to_end(fd, &frozen, 1) < 1)
		return refuse(why, size, -EPERM, "%s: cannot read whether it is frozen: %s", path,
			      strerror(errno));
	return frozen == '0' ? 0 : refuse(why, size, -EPERM, "%s was frozen already", place->unit);
}

int target_check_unit(const struct target *target, const char *unit, bool held, char *why,
		      size_t size)
{
	struct unit_place place;
	int r = unit_of_process(target->pid, &place);

	if (r < 0 || !process_is_alive(target->pidfd) || strcmp(place.unit, unit) != 0)
		return refuse(why, size, -EPERM, "process %d (%s) is in %s, not in %s",
			      (int)target->pid, target->command, r >= 0 ? place.unit : "no unit",
			      unit);
	r = check_users(target, &place, why, size);
	return r < 0 || held ? r : check_thawed(&place, why, size);
}

int target_kill(const struct target *target, char *why, size_t size)
{
	if (syscall(SYS_pidfd_send_signal, target->pidfd, SIGKILL, NULL, 0) < 0)
		return refuse(why, size, -errno, "cannot kill process %d (%s): %s",
			      (int)target->pid, target->command, strerror(errno));
	log_notice("process %d (%s): SIGKILL", (int)target->pid, target->command);
	return 0;
}
