/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "check-cond.h"
#include "client/output/model.h"
#include "sys/config/profile.h"

/* The GPU of a shipped profile. */
static inline struct model latency_gpu(const char *name)
{
	struct diagnostics diagnostics = { 0 };
	struct profile profile;
	struct model model;
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/conf/gpus", getenv("GPUARB_SOURCE_ROOT"));
	CHECK(profile_load(dir, name, &profile, &diagnostics) == 0);
	diagnostics_done(&diagnostics);
	model_init(&model, &profile.info.geometry, false);
	return model;
}
