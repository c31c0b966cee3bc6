/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Objects of the bus as JSON: keys as on the bus with underscores, null for unknown values. `in`
 * and `key` are as in json.h. */

#include "client/output/json.h"
#include "libgpuarb/gpuarb.h"

void json_gpu(struct json_object *in, const char *key, const struct gpuarb_gpu *gpu);
void json_partition(struct json_object *in, const char *key,
		    const struct gpuarb_partition *partition);

/* Adds the keys of the lease to an object. */
void json_lease_into(struct json_object *map, const struct gpuarb_lease_info *lease);

/* The last refusals; an empty array for NULL. */
void json_refusals(struct json_object *in, const char *key, const struct gpuarb *gpuarb);

/* The refusal that lease i of gpuarb_view_leases() waits for the end of, if it waits. */
void json_waits_for(struct json_object *map, const struct gpuarb_view *view, size_t i);

/* All leases of the view, with what waiting ones wait for. */
void json_leases(struct json_object *list, const struct gpuarb_view *view);
