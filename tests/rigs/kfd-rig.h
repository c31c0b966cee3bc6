/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A simulated sysfs in a scratch directory, and the GPUs that the kfd backend reads from it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check-cond.h"
#include "util/base.h"
#include "core/mask/geometry.h"
#include "fake-sysfs.h"
#include "hw/hw.h"

#define RIG_GPUS 80U
#define NODE(i) FAKE_NODES "/" #i

struct rig {
	char dir[32];
	struct hw *hw;
	struct diagnostics diagnostics;
	struct gpu_info gpus[RIG_GPUS];
	int n;
};

void kfd_rig_start(struct rig *rig, const struct gpu_info *gpus, size_t n);

/* Lists the GPUs again, and checks that geometry_check() accepts each of them. */
int kfd_rig_list(struct rig *rig);

void kfd_rig_end(struct rig *rig);

/* Whether a diagnostic contains both words. */
bool kfd_rig_says(const struct rig *rig, const char *file, const char *word);

struct geometry shape(unsigned xccs, unsigned engines, unsigned arrays, unsigned array_cus,
		      bool wgp, unsigned cus);

struct gpu_info kfd_radeon_vii(void);

struct gpu_info mi300x_cpx(unsigned bus, unsigned partition);

/* Makes two GPUs. Tests damage node 1; node 2 must always be listed. */
void start_two(struct rig *rig);

/* Checks that node 1 is listed with a warning about the file. */
void check_degraded(struct rig *rig, const char *file);

void put_path(const struct rig *rig, const char *file, char *buf, size_t size);

void in_place_of(struct rig *rig, const char *file, const char *kind);

/* What in_place_of() can put in the place of a file. */
static const char *const intruders[] = { "nothing", "directory", "pipe", "loop",
					 "empty",   "binary",    "large" };

/* Checks two GPUs with one after the other in place of this file. */
void with_each_intruder(const char *file, void (*check)(struct rig *rig, const char *file));

/* The same with each of n values in the file. NULL: its line is missing. */
struct kfd_value {
	const char *key, *value;
};
void with_each_value(const char *file, const struct kfd_value *values, size_t n,
		     void (*check)(struct rig *rig, const char *file));
