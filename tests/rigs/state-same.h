/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Is what was read the lease that was saved? All but what is counted anew: E, use, holders,
 * bound processes, candidates. */

#include <stdbool.h>
#include <string.h>

#include "core/change/arbiter.h"
#include "core/policy/request.h"

static inline bool same_budget(const struct budget *a, const struct budget *b)
{
	return a->queues == b->queues && a->processes == b->processes &&
	       a->sdma_queues == b->sdma_queues && a->cooperative == b->cooperative &&
	       a->vram == b->vram;
}

static inline bool same_partition(const struct partition *a, const struct partition *b)
{
	return a->gpu == b->gpu && cuset_equal(&a->cus, &b->cus) &&
	       cuset_equal(&a->occupied, &b->occupied) && a->count == b->count &&
	       a->asked == b->asked && same_budget(&a->granted, &b->granted) &&
	       same_budget(&a->charged, &b->charged) && a->streams == b->streams &&
	       a->priority == b->priority && a->isolation == b->isolation && a->alone == b->alone &&
	       a->any_shape == b->any_shape;
}

/* request_equal() leaves out what a repetition may change. */
static inline bool same_request(const struct request *a, const struct request *b)
{
	if (!a || !b)
		return a == b;
	return request_equal(a, b) && a->wait_usec == b->wait_usec;
}

static inline bool same_words(const struct lease *a, const struct lease *b)
{
	return a->id == b->id && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->tenant, b->tenant) == 0 && strcmp(a->token, b->token) == 0 &&
	       strcmp(a->unit, b->unit) == 0 && strcmp(a->reason, b->reason) == 0 &&
	       a->class == b->class && a->state == b->state && a->cause == b->cause;
}

static inline bool same_numbers(const struct lease *a, const struct lease *b)
{
	return a->generation == b->generation && a->acknowledged == b->acknowledged &&
	       a->owner == b->owner && a->pid == b->pid && a->deadline_usec == b->deadline_usec &&
	       a->disturbances == b->disturbances && a->adaptable == b->adaptable &&
	       a->passed == b->passed;
}

static inline bool same_lease(const struct lease *a, const struct lease *b)
{
	if (!same_words(a, b) || !same_numbers(a, b) || !same_request(a->request, b->request) ||
	    a->n_partitions != b->n_partitions)
		return false;
	for (size_t i = 0; i < a->n_partitions; i++)
		if (!same_partition(&a->partitions[i], &b->partitions[i]))
			return false;
	return b->n_holders == 0 && b->n_bound == 0 && b->touched == 0 && b->users == 0;
}
