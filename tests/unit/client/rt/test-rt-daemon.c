/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Checks the assumptions of rt plan about gpuarbd against core: the longest activation, and how
 * often masks change.
 */

#include "check.h"
#include "lend-rig.h"
#include "random-geometry.h"
#include "rt-rig.h"
#include "seed.h"

/* ---- activation ---------------------------------------------------------------------------- */

/* Acknowledges all changes until all CUs are borrowed. */
static void share_out(struct lending *l)
{
	const struct arbiter *arbiter = l->s.arbiter;

	for (unsigned i = 0; i < 4 * 10; i++) {
		for (size_t k = 0; k < arbiter->n_leases; k++)
			if (arbiter->leases[k]->acknowledged != arbiter->leases[k]->generation)
				follow(l, arbiter->leases[k]);
		pass(l, SECOND_USEC);
	}
}

static unsigned borrowers_of(const struct arbiter *arbiter, const struct lease *from)
{
	unsigned n = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++)
		n += arbiter->leases[i] != from &&
		     cuset_overlap(&arbiter->leases[i]->partitions[0].occupied,
				   &from->partitions[0].cus);
	return n;
}

static void climb(struct lending *l, unsigned to_kill)
{
	struct lease *lease;

	while (to_kill > 0) {
		enum enforce_step enforce_step = arbiter_next_enforce_step(l->s.arbiter, l->now,
									   &lease);

		to_kill -= enforce_step == ENFORCE_STEP_KILL;
		CHECK(enforce_step != ENFORCE_STEP_NONE ||
		      arbiter_next_deadline(l->s.arbiter) != UINT64_MAX);
		if (enforce_step == ENFORCE_STEP_NONE)
			pass(l, arbiter_next_deadline(l->s.arbiter) - l->now);
	}
	settle(l);
}

/* The time from the activation until the last borrower without an acknowledgement is killed. */
static uint64_t until_killed(const struct rt_daemon *daemon, unsigned borrowers)
{
	struct lending l = lending_of(1);
	uint64_t began;
	struct lease *rt;

	l.s.arbiter->settings->activate_grace_usec = daemon->activate_grace;
	l.s.arbiter->settings->enforce_delay_usec = daemon->enforce_delay;
	add_tenant(l.s.arbiter, "borrowers", ANY, CLASS_BESTEFFORT)->enforce = ENFORCE_STEP_KILL;
	rt = keep_inactive(&l, 45);
	for (unsigned i = 0; i < borrowers; i++)
		borrow(&l, 3, 60);
	share_out(&l);
	CHECK(borrowers_of(l.s.arbiter, rt) > 0);
	began = l.now;
	CHECK(activate(&l, rt->id, true) == 0 && rt->state == STATE_ACTIVATING);
	climb(&l, borrowers_of(l.s.arbiter, rt));
	/* The kernel removes the queues, and a scan sees it. */
	CHECK(rt->state == STATE_ACTIVATING && arbiter_observe(l.s.arbiter, NULL, 0) == 0);
	settle(&l);
	CHECK(rt->state == STATE_GRANTED);
	began = l.now - began;
	lending_done(&l);
	return began;
}

TEST(the_activation_bound_covers_the_enforcement_of_the_daemon)
{
	unsigned seed = SEED_OF_RUN("SEED");
	struct gpu_info gpu = radeon_vii("g");

	seed_rand(seed);
	for (unsigned i = 0; i < check_rounds(100, 1000); i++) {
		struct rt_rig rig = RT_RIG_INIT(rig);

		rt_rig_needs(&rig, 15)->start_inactive = true;
		rig.set.daemon.activate_grace = 1000 * (1 + below(4000));
		rig.set.daemon.enforce_delay = 1000 * (1 + below(4000));
		rig.set.preemption_timeout = 1000 * (1 + below(9000));
		_cleanup_(rt_plan_freep) struct rt_plan *plan = rt_rig_plan_on(&rig, &gpu);

		CHECK(plan->partitions[0].activation ==
		      until_killed(&rig.set.daemon, 1 + below(4)) + rig.set.preemption_timeout +
			      SCAN_WHILE_ENDING_USEC);
	}
}

/* ---- changes of masks ---------------------------------------------------------------------- */

#define BORROWERS 3U

struct watch {
	struct lending l;
	struct lease *rt[2], *borrower[BORROWERS];
	uint64_t generation[BORROWERS],
		changed[BORROWERS]; /* when its mask last changed of itself */
	unsigned rounds, given;
};

/* Masks that changed at this time, by an activation or by growth. The bound of rt plan counts for each
 * borrower how often its mask changes: others of the GPU may change in between. */
static void count_changes(struct watch *w, bool activated)
{
	uint64_t interval = w->l.s.arbiter->settings->activate_min_interval_usec;

	for (unsigned i = 0; i < BORROWERS; i++) {
		uint64_t times = w->borrower[i]->generation - w->generation[i];

		CHECK(times <= 1); /* and not twice for one cause */
		w->generation[i] += times;
		w->given += activated && times > 0;
		if (activated || times == 0)
			continue;
		CHECK(w->changed[i] == 0 || w->l.now - w->changed[i] >= interval);
		w->changed[i] = w->l.now;
		w->rounds++;
	}
}

static void act(struct watch *w)
{
	struct lease *rt = w->rt[below(2)], *borrower = w->borrower[below(BORROWERS)];
	bool inactive = rt->state == STATE_INACTIVE;

	switch (below(4)) {
	case 0:
		CHECK(activate(&w->l, rt->id, inactive) == 0);
		count_changes(w, inactive);
		return;
	case 1:
		if (borrower->acknowledged != borrower->generation)
			follow(&w->l, borrower);
		break;
	default: pass(&w->l, 1 + below(2000000));
	}
	count_changes(w, false);
}

TEST(a_mask_changes_once_per_activation_and_at_most_once_per_interval)
{
	unsigned seed = SEED_OF_RUN("SEED");
	struct watch w = { .l = lending_of(1) };

	seed_rand(seed);
	w.l.s.arbiter->settings->activate_min_interval_usec = 5000000;
	for (unsigned i = 0; i < 2; i++)
		w.rt[i] = keep_inactive(&w.l, 15);
	for (unsigned i = 0; i < BORROWERS; i++)
		w.borrower[i] = borrow(&w.l, 4, 60);
	for (unsigned i = 0; i < BORROWERS; i++)
		w.generation[i] = w.borrower[i]->generation;
	for (unsigned i = 0; i < check_rounds(8000, 20000); i++)
		act(&w);
	printf("masks changed %u times of themselves, and for %u activations\n", w.rounds, w.given);
	CHECK_REACHED(w.rounds > 100 && w.given > 100);
	scene_done(&w.l.s);
}
