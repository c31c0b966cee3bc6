/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A ledger with a clock: leases that lend and borrow. */

#include "scene.h"

#define SECOND_USEC UINT64_C(1000000)

struct lending {
	struct scene s;
	uint64_t now;
};

static inline bool is_sound(const struct arbiter *arbiter)
{
	char why[256];

	if (ledger_check(arbiter, why, sizeof(why)))
		return true;
	fprintf(stderr, "%s\n", why);
	return false;
}

/* What a daemon does after everything. */
static inline void settle(struct lending *l)
{
	struct lease *lease;
	unsigned touched;

	do {
		arbiter_lend(l->s.arbiter, l->now);
		while ((lease = ledger_take_touched(l->s.arbiter, &touched)))
			if (touched & TOUCH_REMOVED)
				lease_free(lease);
		if (arbiter_plan_growth(l->s.arbiter, l->now, &lease) > 0)
			arbiter_commit(l->s.arbiter, lease);
	} while (l->s.arbiter->touched);
	CHECK(is_sound(l->s.arbiter));
}

static inline void pass(struct lending *l, uint64_t usec)
{
	l->now += usec;
	arbiter_expire(l->s.arbiter, l->now);
	settle(l);
}

static inline struct lending lending_of(size_t gpus)
{
	return (struct lending){ .s = scene_of(gpus), .now = 100 * SECOND_USEC };
}

/* An adaptable lease of anybody's. */
static inline struct lease *borrow(struct lending *l, unsigned least, unsigned most)
{
	struct request request = request_for(least);
	struct lease *lease;

	request.wants[0].cus_min = least;
	request.wants[0].cus_max = most;
	request.wants[0].queues = 2;
	request.adaptable = true;
	lease = reserve(l->s.arbiter, ANY, &request, &l->s.result);
	settle(l);
	return lease;
}

static inline struct lease *keep_inactive(struct lending *l, unsigned cus)
{
	struct request request = request_for(cus);
	struct lease *lease;

	request.start_inactive = true;
	request.wants[0].queues = 2;
	lease = reserve(l->s.arbiter, VR, &request, &l->s.result);
	settle(l);
	return lease;
}

/* 0, or the error. */
static inline int activate(struct lending *l, uint64_t id, bool active)
{
	struct caller caller = caller_of(VR);
	int r;

	result_done(&l->s.result);
	r = active ? arbiter_activate(l->s.arbiter, &caller, id, &l->s.result)
		   : arbiter_deactivate(l->s.arbiter, &caller, id, &l->s.result);
	settle(l);
	return r;
}

static inline void follow(struct lending *l, const struct lease *lease)
{
	CHECK(arbiter_acknowledge(l->s.arbiter, lease->id, lease->generation) == 0);
	settle(l);
}

static inline unsigned cus_of(const struct lease *lease)
{
	return lease->partitions[0].count;
}
