/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The GPUs of the emulated machine: from profiles, whose texts are then written as the kernel would.
 * Negative errno with a sentence on stderr. */

#include <stddef.h>

#include "core/mask/gpu-info.h"
#include "kfdsim/driver/sim.h"

struct machine {
	struct gpu_info gpus[SIM_GPUS_MAX];
	unsigned minors[SIM_GPUS_MAX];
	struct sim_node each[SIM_GPUS_MAX];
	size_t n;
};

/* Cards of these profiles, written to sysfs, a directory that is made. */
int machine_from_profiles(struct machine *machine, const char *profiles, const char *const *names,
			  size_t n, const char *sysfs);

/* Adds what topology has since Linux 6.12, and up to this version of KFD. */
int machine_of_newer(const struct machine *machine, const char *sysfs, unsigned kfd_minor);
