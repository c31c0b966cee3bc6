/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memory that runs out at any one allocation of a decision: nothing is half done, and the next try
 * succeeds.
 */

#include <stdio.h>
#include <stdlib.h>

#include "check-cond.h"
#include "core/decide/preempt.h"
#include "lack.h"
#include "lend-rig.h"

#define MOST 1000 /* allocations in one try: reached by a failure only */

/* Tries until no allocation is denied. once returns whether it did what it does with memory. */
static void try_all(const char *what, bool (*once)(struct lending *l, long allocations))
{
	unsigned without = 0;

	for (long i = 0; i < MOST; i++) {
		struct lending l = lending_of(1);
		struct settings *settings = l.s.arbiter->settings;
		bool done, enough;

		settings->tenants[settings->n_tenants - 1].preempt = true;
		done = once(&l, i);
		enough = left >= 0;
		left = -1;
		CHECK(done || !enough);
		without += !done;
		scene_done(&l.s);
		if (!enough)
			continue;
		printf("%s: %ld allocations, %u that it fails without\n", what, i, without);
		CHECK(without > 0);
		return;
	}
	CHECK(!"unbounded");
}

static bool plan_preemption(struct lending *l, long allocations)
{
	const struct caller caller = caller_of(VR);
	const struct request request = request_for(30);
	struct lease *all = grant(&l->s, ANY, 30), *ends = grant(&l->s, ANY, 15);
	struct lease *proposal = NULL;
	bool waits;

	arbiter_holder_gone(l->s.arbiter, ends->id);
	left = allocations;
	waits = preempt_plan(l->s.arbiter, &caller, &request, &proposal, &l->s.result) == 0;
	CHECK(waits == (proposal != NULL) && all->state == STATE_GRANTED);
	CHECK(waits || l->s.result.kind == RESULT_NO_MEMORY ||
	      l->s.result.kind == RESULT_NO_CAPACITY);
	CHECK(!waits || proposal->state == STATE_WAITING);
	lease_free(proposal);
	return waits;
}

static bool revoke(struct lending *l, long allocations)
{
	struct lease *all = grant(&l->s, ANY, 30), *ends = grant(&l->s, ANY, 15), *waiting, *next;
	struct request request = request_for(60);
	bool revoked;

	request.wait_usec = SECOND_USEC;
	waiting = reserve(l->s.arbiter, VR, &request, &l->s.result);
	CHECK(waiting && waiting->state == STATE_WAITING);
	arbiter_holder_gone(l->s.arbiter, ends->id);
	CHECK(arbiter_plan_next(l->s.arbiter, &next) == 0);
	left = allocations;
	arbiter_preempt(l->s.arbiter, l->now);
	revoked = all->state == STATE_REVOKING;
	CHECK(revoked == !waiting->wait.refused);
	if (revoked)
		return true;
	left = -1;
	arbiter_preempt(l->s.arbiter, l->now);
	CHECK(all->state == STATE_REVOKING);
	left = -1;
	return false;
}

/* Without memory for the shares it begins with what is free. */
static bool begin(struct lending *l, long allocations)
{
	const struct caller caller = caller_of(ANY);
	struct lease *proposal = NULL;
	struct request request = request_for(15);
	bool promised;

	request.adaptable = true;
	request.wants[0].cus_min = 15;
	request.wants[0].cus_max = 60;
	CHECK(cus_of(borrow(l, 15, 45)) == 45);
	left = allocations;
	if (arbiter_plan(l->s.arbiter, &caller, &request, &proposal, &l->s.result) < 0) {
		CHECK(l->s.result.kind == RESULT_NO_MEMORY);
		return false;
	}
	promised = !cuset_empty(&proposal->partitions[0].promised);
	CHECK(cus_of(proposal) == 15);
	lease_free(proposal);
	return promised;
}

int main(void)
{
	try_all("a plan that preempts", plan_preemption);
	try_all("preemption", revoke);
	try_all("the share of a lease that begins", begin);
	return 0;
}
