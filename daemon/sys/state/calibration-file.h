/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the owner measured on a GPU: STATE/calibration/GPU.json, a report of gpuarbctl calibrate that root
 * installed. "/" in the name of a partition is "-" in the name of its file.
 */

#include "core/mask/gpu-info.h"
#include "util/diagnostics.h"
#include "util/trust.h"

/*
 * Reads the report of a GPU, if there is one, into info->calibrated and info->law. It is not believed if
 * somebody else than root and the owners could change it, if it is emulated, of another GPU or a newer
 * version, damaged, above 1 MiB, or contradicts itself: info->calibrated.problem and a diagnostic say why.
 */
void calibration_load(const char *state_directory, const struct trust *trust, struct gpu_info *info,
		      struct diagnostics *diagnostics);
