/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/model.h"

#include <errno.h>

#include "check.h"

/* A GPU as the daemon describes it: one XCC, two engines of one array. */
static int describe(uint32_t xccs, uint32_t arrays, uint32_t cus, struct model *ret, char *why)
{
	const uint32_t counts[] = { cus, cus };
	const struct gpuarb_gpu gpu = { .xccs = xccs,
					.shader_engines = 2,
					.shader_arrays = arrays,
					.cus_per_shader_array = counts };

	why[0] = '\0';
	return model_of_gpu(&gpu, ret, why, 200);
}

TEST(gpu_that_cannot_exist_has_no_model)
{
	struct model model;
	char why[200];

	CHECK(describe(1, 1, 15, &model, why) == 0 && cuset_count(&model.all) == 30);
	CHECK(describe(99, 1, 15, &model, why) == -EINVAL && why[0]);
	CHECK(describe(1, 99, 15, &model, why) == -EINVAL && why[0]);
	CHECK(describe(1, 1, 300, &model, why) == -EINVAL && why[0]);
	CHECK(describe(1, 0, 15, &model, why) == -EINVAL && why[0]);
}
