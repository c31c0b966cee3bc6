/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The model of the GPU that --gpu or --profile names. All functions print what failed and return
 * the exit code. */

#include "client/launch/session.h"
#include "client/output/model.h"
#include "sys/config/profile.h"

int model_load(struct command *command, struct model *ret);

/* Its steps, for callers that need more than the shape. */
int model_names_gpu(const struct command *command); /* exactly one of the two options is there */
int model_load_profile(const struct command *command, struct profile *ret);

/* *ret_gpu is valid as long as the snapshot. */
int model_find_gpu(struct command *command, const struct gpuarb_gpu **ret_gpu, struct model *ret);
