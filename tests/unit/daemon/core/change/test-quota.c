/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* max-cus of a user with several leases: what its adaptable leases borrow makes room for the others. Then other quotas. */

#include <stdlib.h>

#include "check.h"
#include "lend-rig.h"
#include "seed.h"

#define STEPS 400U
#define LEASES 6U
#define GPUS 2U

static struct lending quota_of(size_t gpus, unsigned cus)
{
	struct lending l = lending_of(gpus);

	add_tenant(l.s.arbiter, "students", ANY, CLASS_BESTEFFORT)->max_cus =
		(struct limit){ LIMIT_COUNT, cus };
	return l;
}

/* CUs of a GPU that queues of the user may use now, whatever gpuarbd asked for. */
static unsigned used_by(const struct arbiter *arbiter, unsigned gpu, uid_t uid)
{
	unsigned used = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = lease_partition_on(lease, gpu);

		if (p && lease->owner == uid && !lease->lend.never_granted)
			used += cuset_count(&p->occupied);
	}
	return used;
}

static struct lease *fixed(struct lending *l, uid_t uid, unsigned cus)
{
	return reserve_as(l, uid, "cus=%u queues=2; class=besteffort", cus);
}

/* The request was refused because of max-cus or max-fixed-cus, with these numbers. */
static bool tells_of_quota(const struct lending *l, unsigned held, unsigned free)
{
	const struct refusal *refusal = &l->s.result.refusals[0];

	return refused(&l->s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA) && refusal->held == held &&
	       refusal->free == free;
}

static void follow_all(struct lending *l)
{
	for (size_t i = 0; i < l->s.arbiter->n_leases; i++)
		arbiter_acknowledge(l->s.arbiter, l->s.arbiter->leases[i]->id,
				    l->s.arbiter->leases[i]->generation);
	settle(l);
}

static void rest(struct lending *l)
{
	for (int i = 0; i < 10; i++) {
		follow_all(l);
		pass(l, 2 * SECOND_USEC);
	}
}

TEST(second_lease_of_a_user_has_half_of_its_quota)
{
	_cleanup_(lending_done) struct lending l = quota_of(1, 15);
	struct lease *a = borrow(&l, 1, 60), *b;

	CHECK(cus_of(a) == 15);
	b = borrow(&l, 1, 60);
	CHECK(b && b->state == STATE_ACTIVATING && used_by(l.s.arbiter, 0, ANY) == 15);
	pass(&l, SECOND_USEC / 2);
	CHECK(b->state == STATE_ACTIVATING && used_by(l.s.arbiter, 0, ANY) == 15);
	follow_all(&l);
	CHECK(b->state == STATE_GRANTED && used_by(l.s.arbiter, 0, ANY) <= 15);
	rest(&l);
	CHECK(cus_of(a) >= 7 && cus_of(b) >= 7 && cus_of(a) + cus_of(b) <= 15);
	release(l.s.arbiter, b->id);
	rest(&l);
	CHECK(cus_of(a) == 15);
}

TEST(adaptable_lease_makes_room_under_the_quota_for_a_fixed_one)
{
	_cleanup_(lending_done) struct lending l = quota_of(1, 15);
	struct lease *a = borrow(&l, 1, 60), *b = fixed(&l, ANY, 8);

	CHECK(b && b->state == STATE_ACTIVATING && used_by(l.s.arbiter, 0, ANY) == 15);
	rest(&l);
	CHECK(b->state == STATE_GRANTED && cus_of(b) == 8 && cus_of(a) == 7);
}

TEST(refusal_counts_what_the_leases_do_not_return)
{
	static const struct {
		unsigned quota, least, most, fixed; /* fixed: of a lease that begins; 0: none */
		unsigned refused, held, fits;
	} table[] = {
		{ 15, 2, 60, 0, 14, 2, 13 },
		/* What a lease that is not granted yet takes from an adaptable one, no other can have. */
		{ 15, 1, 60, 8, 8, 9, 6 },
		{ 30, 10, 20, 0, 25, 10, 20 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(lending_done) struct lending l = quota_of(1, table[i].quota);

		CHECK(borrow(&l, table[i].least, table[i].most));
		CHECK(!table[i].fixed || fixed(&l, ANY, table[i].fixed));
		CHECK(!fixed(&l, ANY, table[i].refused));
		CHECK(tells_of_quota(&l, table[i].held, table[i].fits));
		CHECK(fixed(&l, ANY, table[i].fits));
	}
}

/* Of 30 CUs the quota leaves 10, and the lease returns 19. */
TEST(request_takes_what_the_quota_leaves_and_what_a_lease_returns)
{
	static const unsigned granted[][2] = { { 25, 24 }, { 20, 20 }, { 29, 28 } };

	for (size_t i = 0; i < ARRAY_SIZE(granted); i++) {
		_cleanup_(lending_done) struct lending l = quota_of(1, 30);
		struct lease *a = borrow(&l, 1, 20), *b = fixed(&l, ANY, granted[i][0]);

		CHECK(b && b->state == STATE_ACTIVATING && used_by(l.s.arbiter, 0, ANY) == 20);
		rest(&l);
		CHECK(b->state == STATE_GRANTED && cus_of(b) == granted[i][1]);
		CHECK(cus_of(a) > 0 && used_by(l.s.arbiter, 0, ANY) <= 30);
	}
}

/* CUs of the masks of a user: one in two masks counts once. */
static unsigned all_of(const struct arbiter *arbiter, unsigned gpu, uid_t uid)
{
	struct cuset all = { 0 };

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct partition *p = lease_partition_on(arbiter->leases[i], gpu);

		if (p && arbiter->leases[i]->owner == uid)
			cuset_add(&all, &p->cus);
	}
	return cuset_count(&all);
}

/* The mask of the adaptable lease contains what the inactive one lends: elsewhere it has no room for as much. */
/* A review counts no ending lease: what its user holds is within the quota when they have let go. */
TEST(lease_that_starts_beside_ending_ones_stays_within_a_lower_quota)
{
	_cleanup_(lending_done) struct lending l = quota_of(1, 60);
	struct lease *ends = fixed(&l, ANY, 20), *other = borrow(&l, 4, 60), *starts;

	other->owner = OTHER;
	strcpy(other->tenant, "*");
	starts = borrow(&l, 4, 40);
	CHECK(ends->state == STATE_GRANTED && starts->state == STATE_ACTIVATING);
	l.s.arbiter->settings->tenants[0].max_cus.value = 8;
	arbiter_review(l.s.arbiter);
	settle(&l);
	CHECK(ends->state == STATE_ENDING && starts->state == STATE_ACTIVATING);
	follow(&l, other);
	CHECK(starts->state == STATE_GRANTED && cus_of(starts) == 4);
	CHECK(arbiter_observe(l.s.arbiter, NULL, 0) == 0);
	rest(&l);
	CHECK(cus_of(starts) > 4 && used_by(l.s.arbiter, 0, ANY) <= 8);
}

TEST(lease_that_moves_stays_within_the_quota)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct tenant *tenant = add_tenant(l.s.arbiter, "students", ANY, CLASS_BESTEFFORT);
	struct request engine = request_of("shader-engines=1");
	struct caller lab = caller_of(LAB);
	struct move_set set;
	struct lease *borrower, *fill;

	tenant->max_cus = (struct limit){ LIMIT_COUNT, 27 };
	borrower = borrow(&l, 6, 60);
	tenant->class = CLASS_REALTIME;
	CHECK(grant_as(&l.s, ANY, "cus=12; class=realtime start-inactive=1"));
	for (int i = 0; i < 2; i++) {
		CHECK(fill = grant(&l.s, LAB, 11));
		fixed(&l, LAB, 4);
		release(l.s.arbiter, fill->id);
	}
	rest(&l);
	CHECK(arbiter_plan_moves(l.s.arbiter, &lab, &engine, l.now, MOVE_STEPS, &set) == 1);
	commit_all(&l, &set);
	CHECK(borrower->lend.moves == 1 && all_of(l.s.arbiter, 0, ANY) <= 27);
}

/* A lease is promised no CUs that its quota has no room for: others would shrink for them again and again. */
TEST(masks_come_to_rest_beside_an_inactive_lease_of_the_user)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);
	struct tenant *tenant = add_tenant(l.s.arbiter, "students", ANY, CLASS_BESTEFFORT);
	struct lease *neighbour, *fill, *borrower;
	uint64_t generation;

	tenant->max_cus = (struct limit){ LIMIT_COUNT, 34 };
	CHECK(borrow(&l, 2, 2));
	borrower = borrow(&l, 2, 60);
	tenant->class = CLASS_REALTIME;
	CHECK(grant_as(&l.s, ANY, "cus=18; class=realtime start-inactive=1"));
	neighbour = grant_as(&l.s, OTHER,
			     "cus=2 cus-min=2 cus-max=60; class=besteffort adaptable=1");
	CHECK(neighbour && borrower);
	rest(&l);
	fill = fixed(&l, LAB, 20);
	CHECK(fill);
	rest(&l);
	release(l.s.arbiter, fill->id);
	rest(&l);
	generation = neighbour->generation;
	rest(&l);
	CHECK(neighbour->generation == generation && !partition_is_promised(borrower->partitions));
}

/* ---- random ------------------------------------------------------------------------------- */

/* The CUs of each lease in the mask that it acknowledged last. */
struct acknowledged {
	unsigned cus[STEPS][GPUS]; /* by id */
};

static void acknowledge(struct arbiter *arbiter, const struct lease *lease,
			struct acknowledged *ret)
{
	arbiter_acknowledge(arbiter, lease->id, lease->generation);
	for (size_t i = 0; !lease->lend.never_granted && i < lease->n_partitions; i++)
		ret->cus[lease->id][lease->partitions[i].gpu] = lease->partitions[i].count;
}

static void step(struct lending *l, unsigned *seed, struct acknowledged *acknowledged)
{
	struct arbiter *arbiter = l->s.arbiter;
	unsigned what = (unsigned)rand_r(seed) % 8;
	struct lease *lease = arbiter->n_leases
				      ? arbiter->leases[(unsigned)rand_r(seed) % arbiter->n_leases]
				      : NULL;

	if (what < 2 && arbiter->n_leases < LEASES)
		borrow(l, 1 + (unsigned)rand_r(seed) % 3, 60);
	else if (what == 2 && arbiter->n_leases < LEASES)
		fixed(l, rand_r(seed) % 2 ? ANY : OTHER, 1 + (unsigned)rand_r(seed) % 20);
	else if (what == 3 && lease)
		release(arbiter, lease->id);
	else if (what < 6 && lease && lease->state != STATE_ENDING)
		acknowledge(arbiter, lease, acknowledged);
	else
		l->now += (unsigned)rand_r(seed) % SECOND_USEC;
	pass(l, SECOND_USEC / 4);
	result_done(&l->s.result);
}

/* Adaptable leases of the user with one want of the same size have about as much as each other on a GPU. */
static bool is_fair(const struct arbiter *arbiter, unsigned gpu)
{
	unsigned least = UINT32_MAX, most = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct partition *p = lease_partition_on(arbiter->leases[i], gpu);

		if (!p || !arbiter->leases[i]->adaptable)
			continue;
		least = p->count < least ? p->count : least;
		most = p->count > most ? p->count : most;
	}
	return most == 0 || 2 * least + 2 >= most;
}

/* What a user has before a change and after it, whichever is more: a lease that moves counts once. */
static unsigned has(const struct arbiter *arbiter, unsigned gpu, const struct acknowledged *before)
{
	unsigned sum = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = lease_partition_on(lease, gpu);

		if (!p || lease->owner != ANY || lease->lend.never_granted)
			continue;
		sum += max_u(before->cus[lease->id][gpu], p->count);
	}
	return sum;
}

static void play(unsigned seed)
{
	unsigned cus = 8 + (unsigned)rand_r(&seed) % 40;
	_cleanup_(lending_done) struct lending l = quota_of(GPUS, cus);
	struct acknowledged before = { 0 };

	for (unsigned i = 0; i < STEPS; i++) {
		step(&l, &seed, &before);
		for (unsigned gpu = 0; gpu < GPUS; gpu++)
			CHECK(has(l.s.arbiter, gpu, &before) <= cus);
	}
	rest(&l);
	for (unsigned gpu = 0; gpu < GPUS; gpu++)
		CHECK(is_fair(l.s.arbiter, gpu) && used_by(l.s.arbiter, gpu, ANY) <= cus);
}

TEST(no_user_has_more_than_its_quota_at_any_time)
{
	play(SEED_OF_RUN("QUOTA_SEED"));
}

/* An adaptable lease gets other CUs, and a request the ones that left its mask: for these it would not shrink. */
/* Also where it was examined in a turn before. */
TEST(waiting_lease_is_over_quota_when_another_lease_of_its_user_begins)
{
	_cleanup_(lending_done) struct lending l = quota_of(1, 36);
	struct lease *lends, *begins, *waits, *next;

	CHECK(fixed(&l, VR, 30));
	lends = reserve_as(&l, LAB,
			   "cus=4 cus-min=4 cus-max=60 queues=2; adaptable=1 class=besteffort");
	begins = borrow(&l, 4, 60);
	CHECK(cus_of(lends) < 30 && begins->lend.never_granted);
	waits = grant_as(&l.s, ANY, "cus=30; wait-usec=3600000000");
	CHECK(waits->state == STATE_WAITING && !waits->wait.over_quota);
	CHECK(arbiter_acknowledge(l.s.arbiter, lends->id, lends->generation) == 0);
	CHECK(arbiter_plan_next(l.s.arbiter, &next) == 0 && !waits->wait.over_quota);
	settle(&l);
	CHECK(begins->state == STATE_GRANTED && cus_of(begins) > 6);
	CHECK(arbiter_plan_next(l.s.arbiter, &next) == 0 && waits->wait.over_quota);
}

TEST(request_takes_no_place_of_cus_that_have_left_a_mask)
{
	play(172);
	play(183);
}

/* ---- max-fixed-cus ------------------------------------------------------------------------ */

/* A lease of `run --cus=N` may be moved, and never returns a CU. */
TEST(base_counts_as_fixed_beyond_the_least_one)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);

	add_tenant(l.s.arbiter, "batch", ANY, CLASS_BESTEFFORT)->max_fixed_cus =
		(struct limit){ LIMIT_COUNT, 15 };
	CHECK(!borrow(&l, 17, 60) && refused(&l.s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(borrow(&l, 11, 60) && l.s.arbiter->leases[0]->adaptable);
	CHECK(!fixed(&l, ANY, 6) && refused(&l.s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(l.s.result.refusals[0].held == 10 && l.s.result.refusals[0].free == 5);
	CHECK(fixed(&l, ANY, 5));
	CHECK(borrow(&l, 1, 60)); /* it holds none, so its end is no help */
	CHECK(!fixed(&l, ANY, 1) && l.s.result.refusals[0].n_leases == 2);
	CHECK(l.s.result.refusals[0].leases[0] == 1 && l.s.result.refusals[0].leases[1] == 2);
}

/* A user with a lease of some CUs asks for the whole GPU: the refusal names the most that is granted. */
TEST(refusal_for_a_quota_names_the_most_cus_that_are_granted)
{
	for (unsigned shape = 0; shape < PLAY_SHAPES; shape++) {
		struct gpu_info info = play_gpu("0", shape);
		_cleanup_(scene_done) struct scene s = { .arbiter = arbiter_of(&info, 1) };
		unsigned cus = s.arbiter->gpus[0].cus, fits;
		struct tenant *tenant = add_tenant(s.arbiter, "students", ANY, CLASS_BESTEFFORT);
		unsigned held = grant(&s, ANY, cus / 5)->partitions[0].count;

		for (unsigned most = held; most < cus; most++) {
			struct lease *lease;

			tenant->max_cus = (struct limit){ LIMIT_COUNT, most };
			CHECK(!grant(&s, ANY, cus));
			CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
			fits = s.result.refusals[0].n_fits ? (unsigned)s.result.refusals[0].fits[0]
							   : 0;
			CHECK(fits <= most - held);
			for (unsigned n = fits + 1; n <= most - held; n++) {
				lease = grant(&s, ANY, n);
				CHECK(!lease || lease->partitions[0].count <= fits);
				if (lease)
					release(s.arbiter, lease->id);
			}
			if (fits == 0)
				continue;
			CHECK(lease = grant(&s, ANY, fits));
			CHECK(lease->partitions[0].count == fits);
			release(s.arbiter, lease->id);
		}
	}
}

/* ---- max-shader-engines ------------------------------------------------------------------- */

/* A user with a lease asks for as many CUs as whole engines have, or else for what the refusal names. */
TEST(request_has_what_is_left_of_the_engines_that_its_user_has)
{
	for (unsigned engines = 1; engines < 4; engines++)
		for (unsigned held = 1; held < 15; held++) {
			_cleanup_(scene_done) struct scene s = scene_of(1);
			unsigned least = max_u(engines * (15 - held), (engines - 1) * 15);
			struct lease *a, *b;
			uint32_t used;

			add_tenant(s.arbiter, "students", ANY, CLASS_BESTEFFORT)->max_engines =
				(struct limit){ LIMIT_COUNT, engines };
			CHECK(a = grant(&s, ANY, held));
			b = grant(&s, ANY, engines * 15);
			if (!b) {
				CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
				CHECK(s.result.refusals[0].n_fits == 1);
				b = grant(&s, ANY, (unsigned)s.result.refusals[0].fits[0]);
			}
			CHECK(b && b->partitions[0].count >= least);
			used = cuset_engines(&a->partitions[0].cus) |
			       cuset_engines(&b->partitions[0].cus);
			CHECK((unsigned)__builtin_popcount(used) <= engines);
		}
}
