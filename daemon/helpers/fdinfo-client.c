/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helpers/fdinfo-client.h"

static bool is_valid(void *answer, size_t length, size_t, const void *)
{
	return drm_scan_check(answer, length) == 0;
}

const struct asker_helper fdinfo_helper = {
	.name = "gpuarb-fdinfo",
	.unit = "gpuarb-fdinfo.socket",
	.most = 1,
	.answer_size = sizeof(struct drm_scan),
	.is_valid = is_valid,
	.lasts = true,
	.repeats = true,
};
