/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lend-rig.h"

#include "check-cond.h"
#include "ledger-check.h"

void commit_all(struct lending *l, struct move_set *set)
{
	for (size_t i = 0; i < set->n_first; i++)
		arbiter_commit(l->s.arbiter, TAKE_PTR(set->next[i]));
	move_set_done(set);
}

void settle(struct lending *l)
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
	check_promises(l->s.arbiter);
}

void pass(struct lending *l, uint64_t usec)
{
	l->now += usec;
	arbiter_expire(l->s.arbiter, l->now);
	settle(l);
}

struct lending lending_of(size_t gpus)
{
	return (struct lending){ .s = scene_of(gpus), .now = 100 * SECOND_USEC };
}

void lending_done(struct lending *l)
{
	scene_done(&l->s);
}

struct lease *reserve_as(struct lending *l, uid_t uid, const char *format, ...)
{
	struct lease *lease;
	va_list args;

	va_start(args, format);
	lease = grant_list(&l->s, uid, format, args);
	va_end(args);
	settle(l);
	return lease;
}

struct lease *borrow(struct lending *l, unsigned least, unsigned most)
{
	return reserve_as(l, ANY, "cus=%u cus-min=%u cus-max=%u queues=2; adaptable=1", least,
			  least, most);
}

struct lease *keep_inactive(struct lending *l, unsigned cus)
{
	return reserve_as(l, VR, "cus=%u queues=2; start-inactive=1", cus);
}

int activate(struct lending *l, uint64_t id, bool active)
{
	struct caller caller = caller_of(VR);
	int r;

	result_done(&l->s.result);
	r = set_active(l->s.arbiter, &caller, id, active, &l->s.result);
	settle(l);
	return r;
}

void follow(struct lending *l, const struct lease *lease)
{
	CHECK(arbiter_acknowledge(l->s.arbiter, lease->id, lease->generation) == 0);
	settle(l);
}

void follow_each(struct lending *l)
{
	for (size_t i = 0; i < l->s.arbiter->n_leases; i++)
		if (l->s.arbiter->leases[i]->generation > l->s.arbiter->leases[i]->acknowledged)
			follow(l, l->s.arbiter->leases[i]);
}

unsigned cus_of(const struct lease *lease)
{
	return lease->partitions[0].count;
}

struct contest contest_of(enum enforce_step enforce)
{
	struct contest c = { .l = lending_of(1) };

	add_tenant(c.l.s.arbiter, "borrowers", ANY, CLASS_BESTEFFORT)->enforce = enforce;
	c.rt = keep_inactive(&c.l, 15);
	c.borrower = borrow(&c.l, 4, 60);
	CHECK(activate(&c.l, c.rt->id, true) == 0);
	return c;
}
