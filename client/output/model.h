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

/* The one that --gpu or --profile names. Says what is wrong and returns the exit code. */
int model_load(const struct command *command, struct model *ret);

/* Its steps, for who needs more than the shape: is one of the two named, and not both; the GPU,
 * which lasts as long as the session; the profile. */
struct profile;
struct session;
int model_names_gpu(const struct command *command);
int model_find_gpu(const struct command *command, struct session *session,
		   const struct gpuarb_gpu **ret_gpu, struct model *ret);
int model_load_profile(const struct command *command, struct profile *ret);
