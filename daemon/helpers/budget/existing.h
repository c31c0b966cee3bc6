/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdint.h>

/* The KFD queues of all processes in the cgroup with this id and below it, as sysfs shows them now. sysfs:
 * "/sys", or a directory read instead. Negative: -errno. */
int existing_queues(const char *sysfs, uint64_t cgroup);
