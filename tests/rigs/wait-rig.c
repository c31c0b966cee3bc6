/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait-rig.h"

#include "check-cond.h"
#include "ledger-check.h"

struct lease *ask(struct scene *s, uid_t uid, struct request request)
{
	request.wait_usec = 1000000;
	return reserve(s->arbiter, uid, &request, &s->result);
}

struct lease *wait_for(struct scene *s, uid_t uid, const char *gpu, unsigned cus)
{
	struct request request = request_for(cus);
	struct lease *lease;

	snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%s", gpu);
	lease = ask(s, uid, request);
	CHECK(lease && lease->state == STATE_WAITING);
	return lease;
}

struct lease *grant_on(struct scene *s, uid_t uid, const char *gpu, unsigned cus)
{
	struct request request = request_for(cus);

	snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%s", gpu);
	return reserve(s->arbiter, uid, &request, &s->result);
}

size_t grant_waiting(struct scene *s, uint64_t *ids)
{
	struct lease *next;
	size_t n = 0;

	while (arbiter_plan_next(s->arbiter, &next) == 1) {
		struct lease *lease = ledger_find(s->arbiter, next->id);

		CHECK(lease->state == STATE_WAITING && arbiter_commit(s->arbiter, next) == lease);
		CHECK(lease->state == STATE_GRANTED && lease->n_partitions > 0);
		check_promises(s->arbiter);
		if (ids)
			ids[n] = lease->id;
		n++;
	}
	check_promises(s->arbiter);
	return n;
}

unsigned touched_of(struct scene *s, uint64_t id, struct lease *ret)
{
	unsigned all = 0, touched;
	struct lease *lease;

	while ((lease = ledger_take_touched(s->arbiter, &touched))) {
		if (lease->id == id) {
			all |= touched;
			if (ret)
				*ret = *lease;
		}
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
	}
	return all;
}

void forget_touched(struct scene *s)
{
	touched_of(s, 0, NULL);
}
