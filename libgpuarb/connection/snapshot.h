/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "libgpuarb/connection/handle.h"

/* gpuarb_look() within another public function. */
int view_new(struct gpuarb *gpuarb, struct gpuarb_view **ret);

/* The name of the GPU whose object path ends with this number, or NULL. */
const char *view_gpu_name(const struct gpuarb_view *view, uint64_t number);
