/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tables of the GPUs of a snapshot, and of who uses them through the graphics driver. */

#include <stdio.h>

#include "client/options/options.h"

/* The free resources and the state of each GPU of the snapshot. */
void gpu_table(const struct command *command, FILE *out);

/* The processes that have a GPU of the snapshot open through the graphics driver. */
void client_table(const struct command *command, FILE *out);
