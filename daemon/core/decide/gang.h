/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Several wants on as many GPUs: all or none. */

#include "core/decide/admit.h"

/*
 * Finds a GPU for each want, every GPU once; fills partitions[] in the order of the wants.
 * Exact: wants on different GPUs do not touch each other, so this is a matching. Among
 * those that fit it prefers GPUs that the user is on already where max-gpus bounds it,
 * then those that grant more, then those with less left to break up (or, if policy says so,
 * with more: spread_gpus). *ret_candidates: the
 * GPUs that could ever take one of the wants, as bits; 0 where there are too few GPUs.
 */
int gang_assign(const struct admit_context *admit_context, const struct request *request,
		struct partition *partitions, uint64_t *ret_candidates, struct result *result);
