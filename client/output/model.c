/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/model.h"

#include <errno.h>
#include <stdio.h>

#include "util/base.h"

void model_init(struct model *model, const struct geometry *geometry)
{
	model->geometry = *geometry;
	codec_init(&model->codec, geometry);
	geometry_all(geometry, &model->all);
	model->law = (struct law){ .basis = LAW_ASSUMED };
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
		snprintf(buf, size,
			 "%u XCCs x %u shader engines x %u arrays: more than gpuarbctl supports",
			 gpu->xccs, gpu->shader_engines, gpu->shader_arrays);
		return -EINVAL;
	}
	for (unsigned x = 0; x < gpu->xccs; x++)
		for (unsigned e = 0; e < gpu->shader_engines; e++)
			for (unsigned a = 0; a < gpu->shader_arrays; a++)
				geometry.active[x][e][a] = (uint8_t)min_u(*cus++, UINT8_MAX);

	if (geometry_check(&geometry, buf, size) < 0)
		return -EINVAL;

	model_init(ret, &geometry);
	return 0;
}
