/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* GPUs made by hand. */

#include "core/mask/gpu-info.h"

/* A Radeon VII: 4 engines of 15 CUs, 24 queue slots, 8 process slots. */
struct gpu_info radeon_vii(const char *name);

#define PLAY_SHAPES 4U

/* 0: one shader array, 1: WGPs, 2: several XCCs with a harvest, 3: small. */
struct gpu_info play_gpu(const char *name, unsigned shape);
