/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Moves: an adaptable lease may be given other CUs of the same number if that makes room for a
 * request which would be refused. Only leases move whose holders have acknowledged everything, each
 * at most once in activate-min-interval and never back to where it was before its last move.
 *
 * The request is placed as if leases that may move had no CUs. Then those in its way get other CUs, the largest first, and
 * if there is no room, others move aside for them. A lease that finds none stays in the next try, and the request is
 * placed elsewhere.
 *
 * A lease may move to CUs that another lease leaves for it, or only borrows. Then the other one moves or
 * shrinks first, and the request waits: when the holder has acknowledged that, the moves that are still missing are searched
 * anew, as the ledger may have changed. A step is made only if, in the present ledger, this search finds them, or the
 * request fits after it: floors may be kept elsewhere then.
 */

#include "core/decide/plan.h"

#define MOVES_MAX 16U

/* Of one search: decide/admit.h. */
#define MOVE_STEPS 1024U

/* The next versions of the leases that move, each of another lease. The first n_first are to be saved
 * and committed; the others would follow when these have been acknowledged. */
struct move_set {
	struct lease *next[MOVES_MAX]; /* owned */
	size_t n, n_first;
	unsigned steps; /* that the search took */
};

/* Finds moves after all of which the request fits. 1: *ret has them; 0: there are none, or
 * max_steps are too few to find them. */
int move_find(const struct arbiter *arbiter, const struct asker *asker, uint64_t now_usec,
	      unsigned max_steps, struct move_set *ret);
void move_set_done(struct move_set *set);

/* Finds moves of adaptable leases after which arbiter_plan() grants a request that it refuses or
 * lets wait now. 1, or 0: there are none, or max_steps are too few to find them. */
int arbiter_plan_moves(const struct arbiter *arbiter, const struct caller *caller,
		       const struct request *request, uint64_t now_usec, unsigned max_steps,
		       struct move_set *ret);

/* Finds moves in one step after which arbiter_plan_resize() succeeds. 1, or 0: there are none. */
int arbiter_plan_resize_moves(const struct arbiter *arbiter, uint64_t id,
			      const struct request *request, uint64_t now_usec,
			      struct move_set *ret);
