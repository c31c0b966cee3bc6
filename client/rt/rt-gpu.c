/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/rt-gpu.h"

#include <stdio.h>

#include "client/output/fail.h"
#include "client/launch/model-load.h"
#include "client/launch/session.h"
#include "sys/config/profile.h"

static int load_profile(const struct command *command, struct rt_gpu *ret)
{
	struct profile profile;
	int r = model_load_profile(command, &profile);

	if (r != EXIT_OK)
		return r;
	*ret = (struct rt_gpu){ .info = profile.info };
	snprintf(ret->info.name, sizeof(ret->info.name), "%s", command->profile);
	gpu_info_target_name(ret->info.gfx_target, ret->target, sizeof(ret->target));
	return EXIT_OK;
}

/* The GPU without any lease. */
static void take_gpu(const struct gpuarb_gpu *gpu, const struct model *model, struct rt_gpu *ret)
{
	int scheduler = scheduler_from_name(gpu->scheduler);

	*ret = (struct rt_gpu){ .here = true };
	ret->info = (struct gpu_info){
		.geometry = model->geometry,
		.harvest_known = gpu->harvest_known,
		.law_measured = gpu->law[0] == 'm',
		.queue_slots = gpu->queue_slots,
		.process_slots = gpu->process_slots,
		.pipes = gpu->pipes,
		.queues_per_pipe = gpu->queues_per_pipe,
		.sdma_queues = gpu->sdma_queues,
		.vram_bytes = gpu->vram_bytes,
		.scheduler = scheduler < 0 ? SCHEDULER_UNKNOWN : (enum scheduler)scheduler,
	};
	snprintf(ret->info.name, sizeof(ret->info.name), "%s", gpu->name);
	snprintf(ret->info.device, sizeof(ret->info.device), "%s", gpu->device);
	snprintf(ret->target, sizeof(ret->target), "%s", gpu->gfx_target);
}

static int load_gpu(const struct command *command, struct rt_gpu *ret)
{
	_cleanup_(session_done) struct session session = { 0 };
	const struct gpuarb_gpu *gpu;
	struct model model;
	int r = model_find_gpu(command, &session, &gpu, &model);

	if (r == EXIT_OK)
		take_gpu(gpu, &model, ret);
	return r;
}

int rt_gpu_load(const struct command *command, struct rt_gpu *ret)
{
	return command->gpu ? load_gpu(command, ret) : load_profile(command, ret);
}
