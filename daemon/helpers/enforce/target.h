/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The process that a request names, by a pidfd and its start time.
 *
 * gpuarb-enforce is root and gpuarbd is not, so nothing that gpuarbd says is believed: the process
 * has to use a KFD device at this moment, by what the kernel shows in sysfs. A compromised gpuarbd
 * can end GPU programs, and nothing else.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct target {
	int pidfd; /* not owned */
	pid_t pid;
	uid_t user; /* for whom it is killed or frozen */
	char command[16];
};

/*
 * Fills *ret when the process may be killed, or its unit frozen. sysfs: the directory that the kernel
 * mounts at /sys; start_time: the 22nd field of /proc/PID/stat; user: 0, or the one whose process it has to be: its real, effective and saved uids are
 * that uid, or subordinate uids of it; spared: a process that is never touched, as are process 1,
 * kernel threads and this program. With a sentence in why:
 * -EBADF, no pidfd; -ESRCH, the process has ended, or has another start time; -EPERM, a process that
 * is never touched, or of another user; -ENODEV, the process does not use a KFD device.
 */
int target_check(const char *sysfs, int pidfd, uint64_t start_time, uid_t user, pid_t spared,
		 struct target *ret, char *why, size_t size);

/* Returns 0 when the process may be ended because it has no lease: its effective uid is this one, and none
 * of its uids is root's; -EPERM with a sentence in why otherwise. */
int target_check_unleased(const struct target *target, uid_t user, char *why, size_t size);

/* Writes the text to the terminal of the process, if that belongs to its user. Does not wait. */
void target_tell(const struct target *target, const char *text);

/* Returns 0 when the process is in this systemd unit, all processes of the unit are of the same user,
 * and it is not frozen, or was for this client (held); -EPERM with a sentence in why otherwise. */
int target_check_unit(const struct target *target, const char *unit, bool held, char *why,
		      size_t size);

/* Sends SIGKILL, the one signal after which the kernel takes the hardware back. Returns what
 * pidfd_send_signal(2) says, with a sentence in why. */
int target_kill(const struct target *target, char *why, size_t size);
