/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The checker of the random tests finds each promise that is broken in a ledger that was sound. */

#include "ledger-check.h"

#include "check.h"
#include "lend-rig.h"
#include "plain-mask.h"

/* A realtime lease of a whole engine, a guaranteed one, and an adaptable one that has the rest. */
struct sound {
	struct lending l;
	struct lease *realtime, *guaranteed, *adaptable;
};

static struct sound sound(void)
{
	struct sound s = { .l = lending_of(1) };

	s.realtime = grant(&s.l.s, VR, 15);
	s.guaranteed = grant(&s.l.s, LAB, 4);
	s.adaptable = borrow(&s.l, 4, 60);
	CHECK(s.realtime && s.guaranteed && s.adaptable && cus_of(s.adaptable) > 4);
	return s;
}

static struct partition *mask_of(struct lease *lease)
{
	return &lease->partitions[0];
}

/* The checker says so, and only since it was broken. */
static void check_found(struct sound *s, const char *what)
{
	char why[256] = "nothing";

	CHECK(!ledger_check(s->l.s.arbiter, why, sizeof(why)));
	if (!strstr(why, what))
		fprintf(stderr, "expected '%s': %s\n", what, why);
	CHECK(strstr(why, what));
}

static void done(struct sound *s)
{
	lending_done(&s->l);
}

/* The lowest CU of the mask; of a word: its lowest bit. */
static unsigned first_pair(const struct cuset *set)
{
	unsigned pair = 0;

	while (!set->pair[pair])
		pair++;
	return pair;
}

static uint32_t lowest(uint32_t word)
{
	return word & -word;
}

FIXTURE(struct sound, s, *s = sound(), done(s));

TEST_WITH(two_leases_on_one_cu_are_found, struct sound *s)
{
	mask_of(s->guaranteed)->occupied = mask_of(s->realtime)->occupied;
	mask_of(s->guaranteed)->cus = mask_of(s->realtime)->occupied;
	mask_of(s->guaranteed)->count = mask_of(s->guaranteed)->effective = 15;
	check_found(s, "share CUs");
}

TEST_WITH(a_lease_on_cus_that_another_one_has_not_returned_is_found, struct sound *s)
{
	/* The borrower was told of a mask that the guaranteed lease still has. */
	cuset_add(&mask_of(s->adaptable)->occupied, &mask_of(s->guaranteed)->cus);
	check_found(s, "has shrunk");
}

TEST_WITH(realtime_leases_in_one_engine_are_found, struct sound *s)
{
	struct partition *p = mask_of(s->guaranteed);
	struct cuset cus = mask_of(s->realtime)->occupied;
	unsigned pair = first_pair(&cus);

	/* Different CUs of the engine: one to each of them. */
	mask_of(s->realtime)->cus.pair[pair] = mask_of(s->realtime)->occupied.pair[pair] =
		lowest(cus.pair[pair]);
	mask_of(s->realtime)->count = mask_of(s->realtime)->effective = 1;
	cus.pair[pair] &= ~lowest(cus.pair[pair]);
	p->cus = p->occupied = cus;
	p->count = p->effective = 14;
	s->guaranteed->class = CLASS_REALTIME;
	check_found(s, "share a shader engine");
}

TEST_WITH(a_lease_in_the_engine_of_one_that_is_alone_is_found, struct sound *s)
{
	struct partition *p = mask_of(s->guaranteed);

	p->alone = true;
	check_found(s, "engine");
}

TEST_WITH(a_mask_that_is_no_rectangle_is_found, struct sound *s)
{
	struct partition *p = mask_of(s->guaranteed);
	struct cuset left = s->l.s.arbiter->gpus[0].all;
	unsigned pair;

	cuset_remove(&left, &mask_of(s->realtime)->occupied);
	pair = first_pair(&left);
	p->cus = (struct cuset){ 0 };
	p->cus.pair[pair] = left.pair[pair];
	p->cus.pair[pair + 1] = lowest(left.pair[pair + 1]);
	p->occupied = p->cus;
	p->count = cuset_count(&p->cus);
	p->effective = 2;
	check_found(s, "no rectangle");
}

TEST_WITH(a_wrong_number_of_cus_is_found, struct sound *s)
{
	mask_of(s->guaranteed)->count++;
	check_found(s, "and not 5");
	mask_of(s->guaranteed)->count--;
	mask_of(s->guaranteed)->effective--;
	check_found(s, "and not 4, 3");
}

TEST_WITH(a_cu_that_the_gpu_does_not_have_is_found, struct sound *s)
{
	mask_of(s->guaranteed)->cus.pair[7] = mask_of(s->guaranteed)->occupied.pair[7] = 1;
	check_found(s, "does not have");
}

TEST_WITH(a_mask_beyond_what_its_lease_occupies_is_found, struct sound *s)
{
	struct cuset *occupied = &mask_of(s->adaptable)->occupied;
	unsigned pair = first_pair(occupied);

	occupied->pair[pair] &= ~lowest(occupied->pair[pair]);
	check_found(s, "within what it occupies");
}

TEST_WITH(a_base_outside_of_the_mask_is_found, struct sound *s)
{
	mask_of(s->adaptable)->adaptation->base = mask_of(s->guaranteed)->cus;
	check_found(s, "not within its mask");
}

TEST(an_xcc_without_a_cu_and_half_a_wgp_are_found)
{
	struct geometry xccs = { .xccs = 2, .engines = 2, .arrays = 1, .array_cus = 4 };
	struct geometry wgps = {
		.xccs = 1, .engines = 2, .arrays = 2, .array_cus = 4, .wgp = true
	};
	struct cuset set = { .pair = { [0] = 1 } };
	struct plain_mask mask;
	struct plain_gpu gpu;

	CHECK(geometry_spread(&xccs, 16) == 0 && geometry_spread(&wgps, 16) == 0);
	plain_gpu_init(&gpu, &xccs);
	plain_mask_init(&mask, &set);
	CHECK(strstr(plain_mask_wrong(&gpu, &mask), "XCC"));
	plain_gpu_init(&gpu, &wgps);
	CHECK(strstr(plain_mask_wrong(&gpu, &mask), "WGP"));
}

TEST(engines_that_differ_in_number_between_xccs_are_no_rectangle)
{
	struct geometry xccs = { .xccs = 2, .engines = 2, .arrays = 1, .array_cus = 4 };
	struct cuset set = { .pair = { [0] = 1, [1] = 1, [8] = 1 } };
	struct plain_mask mask;
	struct plain_gpu gpu;

	CHECK(geometry_spread(&xccs, 16) == 0);
	plain_gpu_init(&gpu, &xccs);
	plain_mask_init(&mask, &set);
	CHECK(!plain_mask_is_rectangle(&gpu, &mask));
	CHECK(plain_mask_effective(&gpu, &mask) == 2);
}

TEST_WITH(sums_that_differ_from_those_of_the_leases_are_found, struct sound *s)
{
	struct gpu *gpu = &s->l.s.arbiter->gpus[0];

	gpu->charged.queues++;
	check_found(s, "sums differ");
	gpu->charged.queues--;
	gpu->taken.pair[0] ^= 1;
	check_found(s, "CUs or engines differ");
	gpu->taken.pair[0] ^= 1;
	gpu->rt_exclusive[3]++;
	check_found(s, "CUs or engines differ");
	gpu->rt_exclusive[3]--;
}

TEST_WITH(a_lease_that_runs_beside_an_exclusive_one_is_found, struct sound *s)
{
	mask_of(s->realtime)->exclusive = true;
	s->l.s.arbiter->gpus[0].n_exclusive++;
	check_found(s, "has not paused");
}
