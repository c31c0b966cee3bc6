/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdio.h>

#include "client/options/options.h"

/* What is free of each GPU, and how it does, as a table. */
void gpu_table(const struct command *command, const struct gpuarb_gpu *gpus, size_t n, FILE *out);
