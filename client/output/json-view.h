/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The bus contract's things as JSON: names as on the bus with underscores, null for what
 * is not known. Each goes into `in` as client/output/json.h says. */

#include "client/output/json.h"
#include "libgpuarb/gpuarb.h"

void json_gpu(struct json_object *in, const char *key, const struct gpuarb_gpu *gpu);
void json_lease(struct json_object *in, const char *key, const struct gpuarb_lease_info *lease);
void json_partition(struct json_object *in, const char *key,
		    const struct gpuarb_partition *partition);

/* Fills an object with the lease's keys. */
void json_lease_into(struct json_object *map, const struct gpuarb_lease_info *lease);

/* What refused last; an empty array for NULL. */
void json_refusals(struct json_object *in, const char *key, const struct gpuarb *gpuarb);
