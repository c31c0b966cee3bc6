/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Floors: what policy keeps for a tenant is granted to it, whatever other tenants do. */

#include "core/decide/floor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lack.h"
#include "ledger-play.h"
#include "lend-rig.h"
#include "scene.h"
#include "seed.h"
#include "wait-rig.h"

#define AR 7 /* a realtime user with a floor */

static struct lease *grant_engines(struct scene *s, uid_t uid, unsigned engines)
{
	return grant_as(s, uid, "shader-engines=%u", engines);
}

static struct tenant *add_floor(struct scene *s, unsigned engines)
{
	struct tenant *tenant = add_tenant(s->arbiter, "ar", AR, CLASS_REALTIME);

	tenant->reserved_engines = engines;
	return tenant;
}

static bool refused_by_floor(const struct scene *s, enum result_kind kind, const char *key)
{
	const struct refusal *refusal = &s->result.refusals[0];

	return refused(s, kind, REASON_FLOOR) && strcmp(refusal->key, key) == 0 &&
	       strcmp(refusal->tenant, "ar") == 0 && refusal->retry == (kind == RESULT_NO_CAPACITY);
}

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(engines_of_a_floor_are_left_by_other_tenants, struct scene *s)
{
	add_floor(s, 1);
	CHECK(!grant(s, ANY, 60) &&
	      refused_by_floor(s, RESULT_NEVER_FITS, "reserved-shader-engines"));
	CHECK(grant(s, ANY, 45));
	CHECK(!grant(s, VR, 15) && s->result.kind == RESULT_NO_CAPACITY);
	CHECK(grant_engines(s, AR, 1)->partitions[0].count == 15);
}

TEST_WITH(floor_is_kept_only_where_its_tenant_may_have_leases, struct scene *s)
{
	struct tenant *ar = add_floor(s, 1);

	ar->reserved_queues = 20;
	ar->only_gpus = strdup("0000:c1:00.0");
	CHECK(ar->only_gpus && grant_as(s, ANY, "cus=30 queues=10"));
	ar->max_leases = (struct limit){ LIMIT_COUNT, 0 };
	free(ar->only_gpus);
	ar->only_gpus = NULL;
	CHECK(grant_as(s, ANY, "cus=30 queues=10"));
}

TEST_WITH(refusal_names_the_floor_that_keeps_what_is_free, struct scene *s)
{
	add_floor(s, 1);
	CHECK(grant(s, ANY, 30));
	CHECK(!grant(s, LAB, 30) &&
	      refused_by_floor(s, RESULT_NO_CAPACITY, "reserved-shader-engines"));
	CHECK(s->result.refusals[0].limit == 15 && s->result.refusals[0].free == 15);
}

TEST_WITH(floor_that_is_held_keeps_nothing_more, struct scene *s)
{
	add_floor(s, 1);
	CHECK(grant_engines(s, AR, 1) && grant(s, ANY, 45));
}

TEST_WITH(floor_of_cus_is_kept_as_whole_engines_for_a_realtime_tenant, struct scene *s)
{
	struct tenant *ar = add_floor(s, 0);

	ar->reserved_cus = (struct limit){ LIMIT_PERCENT, 30 }; /* 18 CUs: two engines */
	CHECK(!grant(s, ANY, 36) && s->result.kind == RESULT_NEVER_FITS);
	CHECK(grant(s, ANY, 30) && grant_engines(s, AR, 2));
}

TEST_WITH(floor_of_cus_of_another_class_is_any_rectangle, struct scene *s)
{
	struct tenant *ar = add_floor(s, 0);

	ar->class = CLASS_GUARANTEED;
	ar->reserved_cus = (struct limit){ LIMIT_COUNT, 10 };
	CHECK(grant(s, ANY, 45) && !grant(s, LAB, 6));
	CHECK(refused_by_floor(s, RESULT_NO_CAPACITY, "reserved-cus"));
	CHECK(grant(s, LAB, 5) && grant(s, AR, 10)->partitions[0].count == 10);
}

TEST_WITH(refusal_names_all_tenants_whose_floors_add_up, struct scene *s)
{
	struct tenant *ar = add_floor(s, 1);
	char line[REFUSAL_TEXT];

	ar->reserved_queues = 12;
	ar = add_tenant(s->arbiter, "b", 8, CLASS_GUARANTEED);
	ar->reserved_cus = (struct limit){ LIMIT_COUNT, 15 };
	ar->reserved_queues = 10;
	CHECK(!grant(s, ANY, 45) && s->result.kind == RESULT_NEVER_FITS);
	CHECK(strcmp(s->result.refusals[0].tenant, "b, ar") == 0 &&
	      s->result.refusals[0].limit == 30);
	refusal_line(&s->result.refusals[0], NULL, line);
	CHECK(strstr(line, "b, ar"));
	CHECK(!grant_as(s, ANY, "cus=4 queues=3"));
	CHECK(strcmp(s->result.refusals[0].tenant, "b, ar") == 0 &&
	      s->result.refusals[0].limit == 22);
}

/* 45 CUs are not those of the engine: with 4 kept in each of two engines, 3 x 11 are left; with 8 in one,
 * 2 x 15. */
TEST_WITH(floor_is_kept_where_it_leaves_the_largest_rectangle, struct scene *s)
{
	struct lease *lease;

	add_floor(s, 1);
	add_tenant(s->arbiter, "b", 8, CLASS_GUARANTEED)->reserved_cus =
		(struct limit){ LIMIT_COUNT, 8 };
	lease = grant_as(s, ANY, "cus=1 cus-min=1 cus-max=60; class=besteffort");
	CHECK(lease && lease->partitions[0].count == 33);
	CHECK(grant(s, 8, 8)->partitions[0].count == 8 && grant_engines(s, AR, 1));
}

TEST_WITH(slots_of_a_floor_are_left_by_other_tenants, struct scene *s)
{
	struct tenant *ar = add_floor(s, 0);

	ar->reserved_queues = 4;
	ar->reserved_processes = 2;
	CHECK(!grant_as(s, ANY, "cus=4 queues=21"));
	CHECK(refused_by_floor(s, RESULT_NEVER_FITS, "reserved-queues"));
	CHECK(grant_as(s, ANY, "cus=4 queues=20 processes=6"));
	CHECK(!grant_as(s, ANY, "cus=4 queues=2 processes=2"));
	CHECK(refused_by_floor(s, RESULT_NO_CAPACITY, "reserved-queues"));
	CHECK(grant_as(s, AR, "cus=4 queues=4 processes=2"));
}

TEST_WITH(slots_of_a_floor_are_not_oversubscribed, struct scene *s)
{
	s->arbiter->settings->oversubscribe_besteffort = true;
	add_floor(s, 0)->reserved_queues = 4;
	CHECK(grant_as(s, ANY, "cus=4 queues=20"));
	CHECK(!grant(s, ANY, 4) && refused_by_floor(s, RESULT_NO_CAPACITY, "reserved-queues"));
}

TEST(floor_on_one_gpu_leaves_the_others_alone)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);

	add_floor(&s, 1)->reserved_gpu = strdup(s.arbiter->gpus[1].info.name);
	CHECK(grant(&s, ANY, 60)->partitions[0].gpu == 0);
	CHECK(!grant(&s, ANY, 60) && grant_engines(&s, AR, 1)->partitions[0].gpu == 1);
}

TEST_WITH(adaptable_lease_borrows_a_floor_and_returns_it, struct scene *s)
{
	struct lease *lease, *ar;

	add_floor(s, 1);
	lease = grant_as(s, ANY, "cus=20 cus-min=15 cus-max=60; adaptable=1");
	CHECK(lease->partitions[0].count == 60);
	ar = grant_engines(s, AR, 1);
	CHECK(ar && ar->state == STATE_ACTIVATING);
	arbiter_lend(s->arbiter, 1000000);
	CHECK(lease->partitions[0].count == 45);
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, lease->generation) == 0);
	arbiter_lend(s->arbiter, 2000000);
	CHECK(ar->state == STATE_GRANTED);
}

TEST_WITH(resize_keeps_its_cus_but_does_not_take_a_floor, struct scene *s)
{
	struct lease *lease = grant(s, LAB, 30);

	add_floor(s, 1);
	CHECK(resize_as(s, lease, "cus=45") == 0);
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, lease->generation) == 0);
	CHECK(resize_as(s, lease, "cus=60") < 0);
	CHECK(s->result.kind == RESULT_NEVER_FITS);
	CHECK(grant_engines(s, AR, 1));
}

/* A lease that was there before the floor keeps what it has; what it returns is kept. */
TEST_WITH(floor_fills_when_older_leases_end, struct scene *s)
{
	struct lease *all = grant(s, ANY, 60);

	add_floor(s, 2);
	CHECK(!grant_engines(s, AR, 1) && s->result.kind == RESULT_NO_CAPACITY);
	release(s->arbiter, all->id);
	CHECK(grant(s, ANY, 30) && !grant(s, ANY, 15) && grant_engines(s, AR, 2));
}

/* Is this, and no more, said of the floors on this GPU? NULL: nothing. */
static bool floors_say(const struct scene *s, const char *key, const char *sum)
{
	_cleanup_(diagnostics_done) struct diagnostics found = { 0 };
	struct gpu_info gpu = radeon_vii("0000:03:00.0");

	if (settings_check_floors(s->arbiter->settings, &gpu, true, &found) == 0)
		return !key && found.n == 0;
	return key && found.n == 1 && found.list[0].error && strstr(found.list[0].text, key) &&
	       strstr(found.list[0].text, sum);
}

TEST_WITH(sum_of_all_floors_is_compared_with_the_gpu, struct scene *s)
{
	struct tenant *a, *b;

	add_floor(s, 2);
	b = add_tenant(s->arbiter, "b", 8, CLASS_GUARANTEED);
	a = &s->arbiter->settings->tenants[1];
	b->reserved_cus = (struct limit){ LIMIT_COUNT, 30 };
	CHECK(floors_say(s, NULL, NULL));
	b->reserved_cus.value = 31;
	CHECK(floors_say(s, "reserved-cus ", " 61 (b 31, ar 30), and 0000:03:00.0 has 60"));
	b->reserved_cus.value = 30;
	a->reserved_engines = 5;
	CHECK(floors_say(s, "reserved-shader-engines ", " 5 (ar 5),"));
	a->reserved_engines = 0;
	a->reserved_cus = (struct limit){ LIMIT_COUNT, 16 }; /* two engines: 30 */
	CHECK(floors_say(s, NULL, NULL));
	a->reserved_queues = 20;
	b->reserved_queues = 5;
	CHECK(floors_say(s, "reserved-queues ", " 25 ("));
	b->reserved_queues = 4;
	a->reserved_processes = 9;
	CHECK(floors_say(s, "reserved-processes ", " 9 (ar 9),"));
	a->reserved_gpu = strdup("0000:04:00.0");
	CHECK(floors_say(s, NULL, NULL));
}

TEST_WITH(floors_that_gpuarbd_cannot_keep_are_a_warning, struct scene *s)
{
	_cleanup_(diagnostics_done) struct diagnostics found = { 0 };
	struct gpu_info gpu = radeon_vii("0000:03:00.0");

	add_floor(s, 5);
	CHECK(settings_check_floors(s->arbiter->settings, &gpu, false, &found) == -ENOSPC);
	CHECK(found.n == 1 && !found.list[0].error &&
	      strstr(found.list[0].text, " has 4: not all of it can be kept free"));
}

/* Is this, and no more, said of the shares? NULL: nothing. */
static bool shares_say(const struct scene *s, const char *key, const char *advice)
{
	_cleanup_(diagnostics_done) struct diagnostics found = { 0 };
	struct gpu_info gpu = radeon_vii("0000:03:00.0");

	settings_check_shares(s->arbiter->settings, &gpu, &found);
	return key ? found.n == 1 && !found.list[0].error && strstr(found.list[0].text, key) &&
			       strstr(found.list[0].text, advice)
		   : found.n == 0;
}

TEST_WITH(share_of_less_than_one_is_named_with_what_would_work, struct scene *s)
{
	struct tenant *tenant = add_floor(s, 0);

	tenant->max_cus = (struct limit){ LIMIT_PERCENT, 2 };
	tenant->max_engines = (struct limit){ LIMIT_PERCENT, 25 };
	CHECK(shares_say(s, NULL, NULL));
	tenant->max_cus.value = 1;
	CHECK(shares_say(s, "tenant ar: max-cus = 1%", "has 60: use 2% or more"));
	tenant->max_cus.kind = LIMIT_NONE;
	tenant->max_engines.value = 24;
	CHECK(shares_say(s, "max-shader-engines = 24%", "has 4: use 25% or more"));
	tenant->only_gpus = strdup("0000:04:00.0");
	CHECK(shares_say(s, NULL, NULL));
}

TEST_WITH(sum_of_many_floors_names_the_first, struct scene *s)
{
	char name[REQUEST_TEXT];

	for (unsigned i = 0; i < 7; i++) {
		struct tenant *tenant;

		snprintf(name, sizeof(name), "%u-%0*d", i, 60, 0);
		tenant = add_tenant(s->arbiter, name, 20 + i, CLASS_GUARANTEED);
		tenant->reserved_cus = (struct limit){ LIMIT_COUNT, 20 };
	}
	CHECK(floors_say(s, " 140 (", " 20 and 3 more), and 0000:03:00.0 has 60"));
}

/* Plans what is left of the floor on each GPU. */
static void check_floor(struct play *play, unsigned engines)
{
	struct caller caller = caller_of(AR);

	for (unsigned g = 0; g < PLAY_GPUS; g++) {
		struct request request = request_for(0);
		_cleanup_(result_done) struct result result = { 0 };
		struct lease *lease = NULL;

		request.wants[0].shader_engines = engines;
		request.wants[0].queues = 2;
		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%u", g);
		if (arbiter_plan(play->arbiter, &caller, &request, &lease, &result) < 0 &&
		    play->arbiter->gpus[g].observed.excess.queues == 0 &&
		    result.refusals[0].reason != REASON_UNMANAGED &&
		    result.refusals[0].reason != REASON_OVERSUBSCRIBED) {
			fprintf(stderr, "seed %u: %s\n", play->seed, result.sentence);
			CHECK(false);
		}
		lease_free(lease);
	}
}

TEST(unused_floor_is_granted_at_any_time)
{
	unsigned seed = SEED_OF_RUN("SEED");

	for (unsigned run = 0; run < check_rounds(8, 600); run++) {
		struct play play = play_new(seed_nth(seed, run));
		unsigned engines = 1 + run % 2;
		struct tenant *ar = add_tenant(play.arbiter, "ar", AR, CLASS_REALTIME), *b;

		ar->reserved_engines = engines;
		ar->reserved_queues = 2;
		ar->reserved_processes = 1;
		if (engines == 1) {
			b = add_tenant(play.arbiter, "b", 8, CLASS_GUARANTEED);
			b->reserved_cus = (struct limit){ LIMIT_PERCENT, 20 };
		}
		for (unsigned i = 0; i < 150; i++) {
			play_step(&play);
			check_promises(play.arbiter);
			check_floor(&play, engines);
		}
		play_end(&play);
	}
}

/* Where a realtime lease of the tenant has a CU of its engine, its floor keeps no others: the request fits but for the
 * drain. Ended for "can never fit", it would not be granted when the drain ends. */
TEST_WITH(request_that_fits_beside_a_held_floor_waits_for_the_end_of_a_drain, struct scene *s)
{
	struct request request = request_for(50), one = request_for(1);
	struct lease *lease;

	add_floor(s, 1);
	request.wants[0].any_shape = request.wants[0].exact = true;
	CHECK(!ask(s, ANY, request) && refused(s, RESULT_NEVER_FITS, REASON_FLOOR));
	CHECK(ask(s, AR, one) && arbiter_drain(s->arbiter, "0", true) == 0);
	lease = ask(s, ANY, request);
	CHECK(lease && lease->state == STATE_WAITING);
	CHECK(arbiter_drain(s->arbiter, "0", false) == 0);
	CHECK(grant_waiting(s, NULL) == 1 && lease->state == STATE_GRANTED);
}

TEST_WITH(request_that_fits_beside_a_held_floor_waits_behind_a_barrier, struct scene *s)
{
	struct request request = request_for(8), one = request_for(1);
	struct lease *small, *lease;

	add_floor(s, 1);
	request.wants[0].shader_engines = 4;
	CHECK(!ask(s, ANY, request) && refused(s, RESULT_NEVER_FITS, REASON_FLOOR));
	CHECK(ask(s, AR, one) && grant(s, LAB, 20));
	wait_for(s, OTHER, "any", 45);
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++) {
		small = ask(s, ANY, request);
		CHECK(small && small->state == STATE_GRANTED);
		release(s->arbiter, small->id);
		CHECK(grant_waiting(s, NULL) == 0);
	}
	lease = ask(s, ANY, request);
	CHECK(lease && lease->state == STATE_WAITING);
}

/* Bases are placed where an engine is claimed already. Beside three engines of a floor there is no other place. */
TEST(base_moves_to_free_engines_that_no_floor_keeps)
{
	for (unsigned engines = 0; engines < 4; engines++) {
		_cleanup_(lending_done) struct lending l = lending_of(1);
		struct lease *a, *b;

		add_floor(&l.s, engines)->reserved_queues = 2;
		CHECK(grant(&l.s, LAB, 11));
		a = borrow(&l, 1, 60);
		CHECK(engines == 3 || cus_of(a) == 45);
		b = borrow(&l, 1, 60);
		follow(&l, a);
		follow(&l, b);
		CHECK(engines == 3 || cus_of(a) + cus_of(b) >= 44);
		CHECK(grant_engines(&l.s, AR, engines > 0 ? engines : 1));
	}
}

TEST(base_of_the_same_tenant_moves_on_gpus_without_its_floor)
{
	_cleanup_(lending_done) struct lending l = lending_of(2);
	struct tenant *tenant = add_floor(&l.s, 2);

	CHECK(tenant->reserved_gpu = strdup(l.s.arbiter->gpus[0].info.name));
	CHECK(grant_as(&l.s, LAB, "cus=11 gpu=1"));
	CHECK(cus_of(reserve_as(&l, AR,
				"gpu=1 cus=1 cus-min=1 cus-max=60 queues=2; adaptable=1 "
				"class=besteffort")) == 45);
}

/* The programs of its tenant take few CUs of an engine: its realtime lease still has a whole one, whatever others take. */
TEST(programs_of_its_tenant_leave_a_floor_of_engines)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);

	add_floor(&l.s, 1);
	CHECK(grant(&l.s, LAB, 11));
	for (unsigned i = 0; i < 3; i++) {
		reserve_as(&l, AR,
			   "cus=1 cus-min=1 cus-max=60 queues=2; adaptable=1 class=besteffort");
		follow_each(&l);
	}
	for (unsigned cus = 45; cus > 0; cus--)
		grant_as(&l.s, ANY, "cus=%u exact=1", cus);
	CHECK(grant_engines(&l.s, AR, 1));
}

TEST(leases_of_its_tenant_fill_a_floor_with_as_many_cus_as_an_engine_has)
{
	_cleanup_(lending_done) struct lending l = lending_of(1);

	add_floor(&l.s, 1);
	CHECK(reserve_as(&l, AR, "cus=15 cus-min=15 cus-max=15; adaptable=1 class=besteffort"));
	CHECK(grant(&l.s, ANY, 45));
}

/* So a program of a CU does not fill one. */
TEST(engine_without_a_cu_does_not_make_others_smaller)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");
	_cleanup_(lending_done) struct lending l = { .now = 100 * SECOND_USEC };

	info.geometry.active[0][3][0] = 0;
	l.s.arbiter = arbiter_of(&info, 1);
	add_tenant(l.s.arbiter, "lab", LAB, CLASS_GUARANTEED);
	add_floor(&l.s, 1);
	CHECK(reserve_as(&l, AR,
			 "cus=1 cus-min=1 cus-max=60 queues=2; adaptable=1 class=besteffort"));
	for (unsigned cus = 45; cus > 0; cus--)
		grant_as(&l.s, ANY, "cus=%u exact=1", cus);
	CHECK(grant_engines(&l.s, AR, 1));
}

static const struct scene *scarce; /* what a request is planned in without memory */

static int plan_without_memory(long allocations)
{
	const struct caller caller = caller_of(ANY);
	const struct request request = request_for(15);
	_cleanup_(lease_freep) struct lease *lease = NULL;
	_cleanup_(result_done) struct result result = { 0 };
	int r;

	lack_left = allocations;
	r = arbiter_plan(scarce->arbiter, &caller, &request, &lease, &result);
	CHECK((r == 0) == (lease != NULL));
	return r;
}

TEST_WITH(request_beside_a_floor_is_planned_whole_or_not, struct scene *s)
{
	add_floor(s, 1);
	scarce = s;
	CHECK(lack_each("arbiter_plan", plan_without_memory) >= 4);
}
