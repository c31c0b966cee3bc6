/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The geometry and codec of one GPU, of this machine or of a profile. */

#include "client/options/options.h"
#include "core/mask/codec.h"
#include "core/mask/geometry.h"
#include "core/mask/law.h"

struct model {
	struct geometry geometry;
	struct codec codec;
	struct cuset all;
	struct law law; /* assumed, until model_load() has read it */
};

void model_init(struct model *model, const struct geometry *geometry);

/* The model of a GPU of the daemon. -EINVAL with an error in buf: the geometry is impossible. */
int model_of_gpu(const struct gpuarb_gpu *gpu, struct model *ret, char *buf, size_t size);
