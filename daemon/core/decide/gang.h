/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Assigns all wants of a request to GPUs, or none. */

#include "core/decide/admit.h"

/*
 * Finds a GPU for each want, a different GPU for each, and fills partitions[] in the order of
 * the wants. Wants on different GPUs do not influence each other, so the assignment is a
 * bipartite matching, and it is found whenever there is one. Among GPUs that fit it prefers
 * those that the user holds partitions of, if max-gpus bounds them; then those that grant
 * more CUs; then those with fewer CUs free (with spread-gpus: more).
 *
 * *ret_candidates: the GPUs that could ever take one of the wants, as bits; 0 if there are too
 * few GPUs.
 */
int gang_assign(const struct admit_context *admit_context, const struct request *request,
		struct partition *partitions, uint64_t *ret_candidates, struct result *result);
