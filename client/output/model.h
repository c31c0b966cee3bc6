/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shape of one GPU, here or from a profile: what masks are explained against. */

#include "client/options/options.h"
#include "core/mask/codec.h"
#include "core/mask/geometry.h"

struct model {
	struct geometry geometry;
	struct codec codec;
	struct cuset all;
	const char *law; /* measured, assumed */
};

void model_init(struct model *model, const struct geometry *geometry, bool measured);

/* What a GPU of the daemon's looks like. -EINVAL, with the sentence in buf, where the
 * daemon describes a shape that cannot be. */
int model_of_gpu(const struct gpuarb_gpu *gpu, struct model *ret, char *buf, size_t size);
