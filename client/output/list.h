/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the command line asks of a list: --user, --tenant, --gpu, --state and --columns. */

#include <stdbool.h>
#include <stdint.h>

#include "client/options/options.h"
#include "libgpuarb/gpuarb.h"

/* Whether the filters of the command line leave this lease, user or GPU in lists. */
bool lease_is_listed(const struct command *command, const struct gpuarb_lease_info *lease);
bool user_is_listed(const struct command *command, uint32_t uid);
bool gpu_is_listed(const struct command *command, const struct gpuarb_gpu *gpu);

/* Reports options of a list that name no user, GPU or column. heads: of the only table; NULL:
 * several tables, which take the columns that they have. Returns the exit code. */
int list_check(const struct command *command, const char *const *heads);
