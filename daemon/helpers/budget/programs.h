/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The programs of queues.bpf.c in the kernel. Pinned below /sys/fs/bpf, they stay in force when this
 * process ends.
 */

#include <stddef.h>

#include "util/base.h"

/* Maps of the programs; -1: none. */
struct programs {
	int budgets, uses, spaces;
};
#define PROGRAMS_NONE ((struct programs){ -1, -1, -1 })

/* Opens the pinned programs. sysfs: "/sys", or a directory read instead. -ENOENT: there are none that
 * watch the present /dev/kfd. */
int programs_open(const char *sysfs, struct programs *ret);

/* Loads the programs, tries them on /dev/null, and pins them in place of earlier ones. With a sentence in why: -EOPNOTSUPP, this kernel cannot run them; -ENODEV, it has no /dev/kfd;
 * or whatever else the kernel says. */
int programs_load(const char *sysfs, struct programs *ret, char *why, size_t size);

void programs_close(struct programs *programs);

/* Removes the pinned programs, and with them all budgets. 0: there were none, too. */
int programs_remove(void);
