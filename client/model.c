/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/model.h"

#include <errno.h>
#include <stdlib.h>

#include "client/fail.h"
#include "client/print.h"
#include "client/session.h"
#include "core/base.h"
#include "sys/profile.h"

static void finish(struct model *model, const struct geometry *geometry, bool measured)
{
	model->geometry = *geometry;
	deal_init(&model->deal, geometry);
	geometry_all(geometry, &model->all);
	model->law = measured ? "measured" : "assumed";
}

int model_of_gpu(const struct gpuarb_gpu *gpu, struct model *ret, char *buf, size_t size)
{
	struct geometry geometry = {
		.xccs = gpu->xccs,
		.engines = gpu->shader_engines,
		.arrays = gpu->shader_arrays,
		.array_cus = CUSET_ARRAY_CUS,
		.wgp = gpu->wgp_mode,
	};
	const uint32_t *cus = gpu->cus_per_shader_array;

	if (gpu->xccs > CUSET_XCCS || gpu->shader_engines > CUSET_ENGINES ||
	    gpu->shader_arrays > CUSET_ARRAYS) {
		snprintf(buf, size, "%u XCCs x %u shader engines x %u arrays: more than "
			 "masks know", gpu->xccs, gpu->shader_engines, gpu->shader_arrays);
		return -EINVAL;
	}
	for (unsigned x = 0; x < gpu->xccs; x++)
		for (unsigned e = 0; e < gpu->shader_engines; e++)
			for (unsigned a = 0; a < gpu->shader_arrays; a++)
				geometry.active[x][e][a] = (uint8_t)min_u(*cus++, UINT8_MAX);

	if (geometry_check(&geometry, buf, size) < 0)
		return -EINVAL;

	finish(ret, &geometry, gpu->law[0] == 'm');
	return 0;
}

static int load_gpu(const struct command *command, struct model *ret)
{
	_cleanup_(session_done) struct session session = {0};
	const struct gpuarb_gpu *gpu;
	char problem[256];
	int r;

	r = session_look(command, &session);
	if (r == EXIT_OK)
		r = session_gpu(command, &session, command->gpu, &gpu);
	if (r != EXIT_OK)
		return r;

	if (model_of_gpu(gpu, ret, problem, sizeof(problem)) < 0)
		return fail(command, EXIT_FAILED, "%s: %s", gpu->name, problem);
	return EXIT_OK;
}

static int load_profile(const struct command *command, struct model *ret)
{
	const char *dir = command->profiles ? command->profiles : GPUARB_PROFILE_DIR;
	_cleanup_(notes_done) struct notes notes = {0};
	struct profile profile;
	int r;

	r = profile_load(dir, command->profile, &profile, &notes);
	if (r >= 0) {
		finish(ret, &profile.info.geometry, profile.info.law_measured);
		return EXIT_OK;
	}

	for (size_t i = 0; i + 1 < notes.n; i++)
		print_line(stderr, "gpuarbctl %s: %s", command->verb, notes.list[i].text);
	return fail(command, r == -ENOENT ? EXIT_USAGE : EXIT_CONFIGURATION, "%s",
		    notes.n > 0 ? notes.list[notes.n - 1].text : "no such profile");
}

int model_load(const struct command *command, struct model *ret)
{
	if (!command->gpu == !command->profile)
		return fail(command, EXIT_USAGE,
			    "for which GPU? --gpu=GPU is one of this machine, --profile=NAME "
			    "a model");

	return command->gpu ? load_gpu(command, ret) : load_profile(command, ret);
}
