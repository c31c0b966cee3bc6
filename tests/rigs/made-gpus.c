/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "made-gpus.h"

#include <stdio.h>

#include "check-cond.h"

struct gpu_info radeon_vii(const char *name)
{
	struct gpu_info info = {
		.geometry = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16 },
		.gfx_target = 90006,
		.harvest_known = true,
		.law.basis = LAW_MEASURED,
		.queue_slots = 24,
		.process_slots = 8,
		.pipes = 4,
		.queues_per_pipe = 8,
		.sdma_queues = 16,
		.sdma_xgmi_queues = 16, /* for tests: the card has none */
		.vram_bytes = UINT64_C(16) << 30,
		.scheduler = SCHEDULER_HWS,
	};

	snprintf(info.name, sizeof(info.name), "%s", name);
	snprintf(info.device, sizeof(info.device), "Radeon VII");
	CHECK(geometry_spread(&info.geometry, 60) == 0);
	return info;
}

struct gpu_info play_gpu(const char *name, unsigned shape)
{
	static const struct geometry shapes[PLAY_SHAPES] = {
		{ .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16 },
		{ .xccs = 1, .engines = 4, .arrays = 2, .array_cus = 10, .wgp = true },
		{ .xccs = 4, .engines = 4, .arrays = 1, .array_cus = 10 },
		{ .xccs = 1, .engines = 2, .arrays = 1, .array_cus = 8 },
	};
	static const unsigned cus[PLAY_SHAPES] = { 60, 72, 152, 16 };
	struct gpu_info info = radeon_vii(name);

	info.geometry = shapes[shape];
	CHECK(geometry_spread(&info.geometry, cus[shape]) == 0);
	return info;
}
