/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The report of a calibration. */

#include "client/calibrate/calibration.h"

struct json_object;

struct json_object *calibration_report(const struct gpuarb_gpu *gpu, const struct model *model,
				       const struct calibration *calibration);

/* Adds the steps that failed. */
void calibration_report_missing(struct json_object *map, const struct calibration *calibration);
