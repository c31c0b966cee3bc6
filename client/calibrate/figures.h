/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The program gpuarb-figures, which draws with matplotlib. */

#include <stdio.h>

#include "client/calibrate/calibration.h"

/* Draws the data of a directory into it. Without matplotlib the program says so, and that is no failure. Returns the
 * exit code. */
int figures_draw(const struct command *command, const char *directory);

/* Writes the figures of a report as SVG to out, or why there are none. */
void figures_embed(const struct gpuarb_gpu *gpu, const struct model *model,
		   const struct calibration *c, FILE *out);
