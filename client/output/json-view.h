/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Objects of the bus as JSON: keys as on the bus with underscores, null for unknown values. `in`
 * and `key` are as in json.h. */

#include "client/output/json.h"
#include "libgpuarb/gpuarb.h"

void json_gpu(struct json_object *in, const char *key, const struct gpuarb_gpu *gpu);
void json_lease(struct json_object *in, const char *key, const struct gpuarb_lease_info *lease);
void json_partition(struct json_object *in, const char *key,
		    const struct gpuarb_partition *partition);

/* Adds the keys of the lease to an object. */
void json_lease_into(struct json_object *map, const struct gpuarb_lease_info *lease);

/* The last refusals; an empty array for NULL. */
void json_refusals(struct json_object *in, const char *key, const struct gpuarb *gpuarb);
