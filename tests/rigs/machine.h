/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shipped daemon on a KFD tree that a test changes as a driver would. */

#include <sys/stat.h>

#include "core/mask/gpu-info.h"
#include "fake-sysfs.h"
#include "live.h"
#include "sys/config/profile.h"

#define MACHINE_GPUS 4

struct machine {
	struct rig rig;
	char sys[80], option[96];
	struct gpu_info gpus[MACHINE_GPUS];
	unsigned replugs;
	sd_bus *bus;
	struct told told;
};

struct gpu_info machine_model(const char *name);

/* Starts the daemon on N Radeon VII; it scans every 100 ms. */
void machine_build(struct machine *machine, size_t n);

void machine_connect(struct machine *machine);

void machine_boot(struct machine *machine);

void machine_halt(struct machine *machine);

/* Replaces the topology by one with the first N GPUs, as after the driver is done. Processes
 * stay. */
void machine_replug(struct machine *machine, size_t n);

uint32_t machine_gpu_id(const struct machine *machine, size_t gpu);

/* Sets the number of compute queues that a process has on a GPU. */
void machine_use(const struct machine *machine, pid_t pid, size_t gpu, unsigned queues);

/* The processes without a lease on the first GPU. Returns how many there are. */
unsigned unmanaged_processes(const struct machine *machine, struct row rows[static ROWS_MAX]);

bool is_unmanaged(const struct machine *machine, pid_t pid, unsigned queues);

/* An empty directory for --debugfs, which is "debug". */
void machine_debugfs(const struct machine *machine);
