/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Review of leases against a policy other than the one that granted them. */

#include "check.h"
#include "ledger-check.h"
#include "scene.h"

/* Reviews, and checks the invariants. */
static void review(struct scene *s)
{
	arbiter_review(s->arbiter);
	check_promises(s->arbiter);
}

static bool stays(const struct lease *lease)
{
	return lease->state == STATE_GRANTED && !lease->reason[0];
}

/* Did the review end the lease with this in the reason? */
static bool ended(const struct lease *lease, const char *named)
{
	if (lease->state == STATE_ENDING && lease->cause == RESULT_NOT_PERMITTED &&
	    (lease->touched & TOUCH_ENDING) && strstr(lease->reason, named))
		return true;
	fprintf(stderr, "lease %llu is %s: %s\n", (unsigned long long)lease->id,
		state_names[lease->state], lease->reason);
	return false;
}

TEST(lease_that_policy_would_grant_stays)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *a = grant(&s, VR, 20), *b = grant(&s, LAB, 10), *c = grant(&s, ANY, 30);

	tenant_of(&s, "vr")->max_leases = tenant_of(&s, "vr")->max_gpus =
		(struct limit){ LIMIT_COUNT, 1 };
	tenant_of(&s, "vr")->max_cus = (struct limit){ LIMIT_COUNT, 20 };
	review(&s);
	CHECK(stays(a) && stays(b) && stays(c));
}

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(leases_of_a_tenant_that_is_gone_end, struct scene *s)
{
	struct lease *a = grant(s, VR, 10), *b = grant(s, LAB, 10);

	strcpy(tenant_of(s, "vr")->name, "VR");
	review(s);
	CHECK(ended(a, "tenant vr") && stays(b));
}

TEST_WITH(user_removed_from_a_tenant_loses_its_leases_unless_a_group_may_match, struct scene *s)
{
	struct lease *a = grant(s, VR, 10), *b = grant(s, LAB, 10), *c = grant(s, ANY, 10);

	tenant_of(s, "vr")->users.ids[0] = 77;
	tenant_of(s, "lab")->users.ids[0] = 77;
	tenant_of(s, "lab")->groups.ids = malloc(sizeof(gid_t));
	tenant_of(s, "lab")->groups.ids[0] = 5;
	tenant_of(s, "lab")->groups.n = 1;
	review(s);
	CHECK(ended(a, "uid 1") && stays(b) && stays(c));
}

TEST_WITH(lease_of_a_tenant_that_is_not_open_to_its_user_ends, struct scene *s)
{
	struct tenant *vr = tenant_of(s, "vr"), *lab = tenant_of(s, "lab");
	struct lease *a, *b = grant(s, LAB, 10);
	unsigned uid = vr->users.ids[0];

	vr->users.ids[0] = 77;
	a = grant(s, VR, 10); /* of tenant "*" */
	vr->users.ids[0] = uid;
	tenant_of(s, "*")->open = true;
	review(s);
	CHECK(stays(a) && stays(b));
	vr->unit = strdup("vr.service"); /* it may have been another program */
	tenant_of(s, "*")->open = false;
	review(s);
	CHECK(stays(a));
	free(vr->unit);
	vr->unit = NULL;
	lab->users.ids[0] = 78;
	review(s);
	CHECK(ended(a, "tenant vr") && ended(b, "tenant lab"));
}

TEST_WITH(a_class_above_the_tenants_ends, struct scene *s)
{
	struct lease *a = grant(s, VR, 10), *b = grant(s, LAB, 10);

	tenant_of(s, "vr")->class = CLASS_GUARANTEED;
	review(s);
	CHECK(ended(a, "class") && stays(b));
}

TEST_WITH(a_priority_above_the_tenants_ends_and_the_default_never_does, struct scene *s)
{
	struct lease *a, *b;

	a = grant_as(s, VR, "cus=10 priority=11");
	b = grant(s, VR, 10);
	tenant_of(s, "vr")->priority = PRIORITY_LOW;
	review(s);
	CHECK(ended(a, "priority") && stays(b));
}

TEST_WITH(the_latest_leases_beyond_a_quota_end, struct scene *s)
{
	struct lease *a = grant(s, VR, 15), *b = grant(s, VR, 15), *c = grant(s, VR, 15);

	tenant_of(s, "vr")->max_leases = (struct limit){ LIMIT_COUNT, 2 };
	review(s);
	CHECK(stays(a) && stays(b) && ended(c, "max-leases"));

	/* Ending leases do not count: the others stay. */
	review(s);
	CHECK(stays(a) && stays(b));
	tenant_of(s, "vr")->max_cus = (struct limit){ LIMIT_COUNT, 15 };
	review(s);
	CHECK(stays(a) && ended(b, "max-cus"));
}

TEST_WITH(ended_lease_frees_its_quota_for_the_next_one, struct scene *s)
{
	struct lease *a = grant(s, ANY, 20), *b = grant(s, ANY, 30), *c = grant(s, ANY, 10);

	tenant_of(s, "*")->max_cus = (struct limit){ LIMIT_PERCENT, 50 };
	review(s);
	CHECK(stays(a) && ended(b, "max-cus") && stays(c));
}

TEST(each_limit_of_a_tenant_is_reviewed_for_each_gpu)
{
	static const struct {
		const char *key;
		uint64_t limit;
	} table[] = { { "max-queues", 5 }, { "max-processes", 3 }, { "max-vram", 4096 } };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct limit limit = { LIMIT_COUNT, table[i].limit };
		_cleanup_(scene_done) struct scene s = scene_of(2);
		struct request request = request_for(4);
		struct want *want = &request.wants[0];
		struct lease *leases[3];
		char reason[128];

		want->queues = 3;
		want->processes = 2;
		want->vram = 4096;
		for (size_t j = 0; j < 3; j++) { /* two on one GPU, and one on another */
			strcpy(want->gpu, j == 1 ? "1" : "0");
			leases[j] = reserve(s.arbiter, ANY, &request, &s.result);
		}
		tenant_of(&s, "*")->max_queues = i == 0 ? limit : (struct limit){ 0 };
		tenant_of(&s, "*")->max_processes = i == 1 ? limit : (struct limit){ 0 };
		tenant_of(&s, "*")->max_vram = i == 2 ? limit : (struct limit){ 0 };
		review(&s);
		snprintf(reason, sizeof(reason), "%s of tenant * is %u, and uid 3 has %u",
			 table[i].key, (unsigned)table[i].limit,
			 (unsigned)(i == 0   ? 6
				    : i == 1 ? 4
					     : 8192));
		CHECK(stays(leases[0]) && stays(leases[1]) && ended(leases[2], reason));
	}
}

TEST(gpus_are_counted_over_all_leases_of_the_user)
{
	_cleanup_(scene_done) struct scene s = scene_of(4);
	struct request request = request_for(10);
	struct lease *leases[3];

	for (size_t i = 0; i < 3; i++) {
		snprintf(request.wants[0].gpu, sizeof(request.wants[0].gpu), "%zu", i / 2);
		leases[i] = reserve(s.arbiter, ANY, &request, &s.result);
	}
	tenant_of(&s, "*")->max_gpus = (struct limit){ LIMIT_PERCENT, 25 };
	s.arbiter->gpus[3].absent = true; /* a quarter of three GPUs, rounded down, is none */
	tenant_of(&s, "*")->max_gpus.value = 34;
	review(&s);
	CHECK(stays(leases[0]) && stays(leases[1]));
	CHECK(ended(leases[2], "max-gpus"));
}

TEST_WITH(what_a_lease_releases_does_not_count_in_a_review, struct scene *s)
{
	struct lease *a = grant_as(s, ANY, "shader-engines=1 queues=4");

	CHECK(resize_as(s, a, "cus=16 shader-engines=4 queues=2") == 0);
	CHECK(cuset_count(&a->partitions[0].occupied) > 20);
	tenant_of(s, "*")->max_cus = (struct limit){ LIMIT_COUNT, 20 };
	review(s);
	CHECK(stays(a));
	tenant_of(s, "*")->max_cus.value = 16;
	tenant_of(s, "*")->max_queues = (struct limit){ LIMIT_COUNT, 2 };
	review(s);
	CHECK(stays(a));
	tenant_of(s, "*")->max_cus.value = 15;
	review(s);
	CHECK(ended(a, "max-cus"));
}

TEST_WITH(users_and_tenants_are_counted_apart, struct scene *s)
{
	struct lease *a = grant(s, 10, 20), *b = grant(s, 11, 20), *c = grant(s, LAB, 20);

	tenant_of(s, "*")->max_cus = (struct limit){ LIMIT_COUNT, 20 };
	tenant_of(s, "*")->max_leases = (struct limit){ LIMIT_COUNT, 1 };
	review(s);
	CHECK(stays(a) && stays(b) && stays(c));
}

TEST_WITH(waiting_lease_is_not_reviewed, struct scene *s)
{
	struct lease *a = grant(s, ANY, 60), *b;

	b = grant_as(s, ANY, "cus=30; wait-usec=1000000");
	CHECK(b && b->state == STATE_WAITING);
	tenant_of(s, "*")->max_leases = (struct limit){ LIMIT_COUNT, 1 };
	review(s);
	CHECK(stays(a) && b->state == STATE_WAITING);
}
