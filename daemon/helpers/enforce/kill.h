/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one signal that frees hardware, sent to the process that a pidfd stands for and to no other. */

#include <stddef.h>
#include <sys/types.h>

/* Kills it. spared: a process that is never killed, as are process 1, kernel threads and this
 * program. With a sentence in why: -EBADF, no pidfd; -ESRCH, it has ended; -EPERM, never. */
int kill_process(int pidfd, pid_t spared, char *why, size_t size);
