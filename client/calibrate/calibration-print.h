/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints a calibration as text or as a JSON report. */

#include <stdio.h>

#include "client/calibrate/calibration.h"
#include "client/options/options.h"

void calibration_print_text(const struct command *command, const struct gpuarb_gpu *gpu,
			    const struct calibration *calibration, FILE *out);
void calibration_print_json(const struct gpuarb_gpu *gpu, const struct model *model,
			    const struct calibration *calibration, FILE *out);

/* Adds the steps that failed to a JSON report. */
struct json_object;
void calibration_print_missing(struct json_object *map, const struct calibration *calibration);

/* Both, for an issue. 0. */
int calibration_print_submission(const struct gpuarb_gpu *gpu, const struct model *model,
				 const struct calibration *calibration, FILE *out);

/* Draws the data of a directory into it: page.c. Without matplotlib gpuarb-figures says so, and that is no failure.
 * Returns the exit code. */
int figures_draw(const struct command *command, const char *directory);

/* One page of HTML with plots: page.c. A negative errno, or -EPROTO: gpuarb-figures has said why it failed. */
int page_print(const struct gpuarb_gpu *gpu, const struct model *model,
	       const struct calibration *calibration, FILE *out);
