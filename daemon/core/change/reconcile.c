/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "core/change/arbiter.h"

#include "core/ledger/waiting-queue.h"

/* The one lease of a step. */
static enum step_kind one(enum step_kind kind, struct lease *next, struct move_set *ret)
{
	*ret = (struct move_set){ .next = { next }, .n = 1, .n_first = 1 };
	return kind;
}

enum step_kind arbiter_next_step(struct arbiter *arbiter, uint64_t now_usec, bool blind,
				 unsigned *room_steps, struct move_set *ret)
{
	struct lease *next;
	bool again;

	do {
		if (arbiter_plan_requeue(arbiter, &next) > 0)
			return one(STEP_REQUEUE, next, ret);
		if (!blind && arbiter_plan_next(arbiter, &next) > 0)
			return one(STEP_GRANT, next, ret);
		if (!blind && arbiter_make_room(arbiter, now_usec, room_steps, ret) > 0)
			return STEP_MOVE;
		queue_time_barriers(arbiter, now_usec);
		/* Nothing more is revoked for a lease, or it bars GPUs no more: they are open to others. */
		again = !blind && arbiter->examined != arbiter->changes && !arbiter->paused;
	} while (again && !arbiter->touched);
	if (!again && !arbiter_in_round(arbiter) && arbiter->round_steps > 0 &&
	    arbiter_plan_growth(arbiter, now_usec, &next) > 0)
		return one(STEP_GROW, next, ret);
	return STEP_NONE;
}

void arbiter_step_failed(struct arbiter *arbiter, enum step_kind kind)
{
	if (kind == STEP_GRANT)
		wait_try_again(arbiter); /* no lease behind it may pass it */
	else if (kind == STEP_GROW)
		ledger_grow(arbiter, UINT64_MAX); /* the round is repeated after grow-delay */
}
