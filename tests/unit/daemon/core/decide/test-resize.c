/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <errno.h>
#include <string.h>

#include "check.h"
#include "ledger-check.h"
#include "made-gpus.h"
#include "scene.h"

static struct lease *resize(struct scene *scene, uid_t uid, uint64_t id, unsigned cus)
{
	struct request request = request_for(cus);
	struct caller caller = caller_of(uid);
	struct lease *next;

	result_done(&scene->result);
	if (arbiter_plan_resize(scene->arbiter, &caller, id, &request, &next, &scene->result) < 0)
		return NULL;
	next = arbiter_commit(scene->arbiter, next);
	check_promises(scene->arbiter);
	return next;
}

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(resize_keeps_released_cus_charged_until_acknowledged, struct scene *s)
{
	struct lease *lease = grant(s, LAB, 60);
	uint64_t id = lease->id;

	CHECK(resize(s, LAB, id, 30) == lease);
	CHECK(lease->generation == 2 && lease->partitions[0].count == 30);
	CHECK(!grant(s, ANY, 30) && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	CHECK(arbiter_acknowledge(s->arbiter, id, 3) == -ERANGE);
	CHECK(arbiter_acknowledge(s->arbiter, id, 0) == -ERANGE);
	CHECK(arbiter_acknowledge(s->arbiter, id, 1) == 0);
	CHECK(!grant(s, ANY, 30)); /* the CUs of the previous mask are still charged */
	CHECK(arbiter_acknowledge(s->arbiter, id, 2) == 0);
	CHECK(arbiter_acknowledge(s->arbiter, 99, 2) == -ENOENT);
	CHECK(grant(s, ANY, 30));
	CHECK(!resize(s, LAB, id, 45) && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	CHECK(lease->generation == 2);
}

TEST_WITH(a_resize_stays_on_the_cus_that_it_has, struct scene *s)
{
	struct lease *lease = grant(s, LAB, 20);
	struct cuset had = lease->partitions[0].cus;

	CHECK(resize(s, LAB, lease->id, 40));
	CHECK(cuset_within(&had, &lease->partitions[0].cus));
	had = lease->partitions[0].cus;
	CHECK(resize(s, LAB, lease->id, 16));
	CHECK(cuset_within(&lease->partitions[0].cus, &had));
}

TEST_WITH(a_resize_above_the_quota_counts_what_the_lease_has, struct scene *s)
{
	struct lease *lease;

	tenant_of(s, "*")->max_cus = (struct limit){ LIMIT_COUNT, 30 };
	CHECK(grant(s, ANY, 6) && (lease = grant(s, ANY, 16)));
	CHECK(!resize(s, ANY, lease->id, 25) && refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(s->result.refusals[0].held == 22 && s->result.refusals[0].free == 24);
	CHECK(resize(s, ANY, lease->id, 24));
}

TEST_WITH(a_resize_keeps_the_processes_that_root_bound, struct scene *s)
{
	struct lease *lease = grant(s, LAB, 20);

	CHECK(arbiter_bind(s->arbiter, lease->id, 7, false) == 0);
	CHECK(arbiter_bind(s->arbiter, lease->id, 8, true) == 0);
	CHECK(resize(s, LAB, lease->id, 30));
	CHECK(lease_is_bound(lease, 7) && !lease_is_delegated(lease, 7));
	CHECK(lease_is_delegated(lease, 8));
}

TEST(resize_needs_the_owner_and_matching_wants)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *lease = grant(&s, LAB, 20);
	struct request two = request_for(10);
	struct caller lab = caller_of(LAB);
	struct lease *next;

	CHECK(!resize(&s, ANY, lease->id, 10) && s.result.kind == RESULT_NOT_PERMITTED);
	CHECK(!resize(&s, LAB, 77, 10) && s.result.kind == RESULT_NO_SUCH_LEASE);
	two.n_wants = 2;
	two.wants[1] = two.wants[0];
	CHECK(arbiter_plan_resize(s.arbiter, &lab, lease->id, &two, &next, &s.result) == -EINVAL);
	two.n_wants = 1;
	snprintf(two.wants[0].gpu, sizeof(two.wants[0].gpu), "%u", 1 - lease->partitions[0].gpu);
	CHECK(arbiter_plan_resize(s.arbiter, &lab, lease->id, &two, &next, &s.result) == -EINVAL);
	add_tenant(s.arbiter, "others", ANY, CLASS_GUARANTEED);
	strcpy(lease->tenant, "others");
	CHECK(!resize(&s, LAB, lease->id, 10) && s.result.kind == RESULT_NOT_PERMITTED);
	strcpy(lease->tenant, "gone");
	CHECK(!resize(&s, LAB, lease->id, 10) && s.result.kind == RESULT_NO_SUCH_TENANT);
	arbiter_end(s.arbiter, lease, RESULT_OK, "test");
	CHECK(!resize(&s, LAB, lease->id, 10) && s.result.kind == RESULT_INVALID_STATE);
}

/* ---- resizes that release ---------------------------------------------------------- */

TEST_WITH(resize_that_only_releases_is_never_refused, struct scene *s)
{
	struct observed unmanaged_process = {
		.pid = 9, .start_time = 1, .kfd_gpu_id = 5, .queues = 23
	};
	struct lease *lease = grant(s, LAB, 40);

	s->arbiter->gpus[0].info.kfd_gpu_id = 5;
	CHECK(arbiter_observe(s->arbiter, &unmanaged_process, 1) == 0 &&
	      s->arbiter->gpus[0].observed.oversubscribed);
	CHECK(arbiter_drain(s->arbiter, "0", true) == 0);
	CHECK(resize(s, LAB, lease->id, 20) && lease->partitions[0].count == 20);
	CHECK(!resize(s, LAB, lease->id, 40) && refused(s, RESULT_NO_CAPACITY, REASON_DRAIN));
}

TEST_WITH(resize_to_the_same_size_moves_no_cu, struct scene *s)
{
	struct lease *first = grant(s, VR, 15), *middle = grant(s, VR, 15), *lease;
	struct cuset had;

	release(s->arbiter, first->id);
	lease = grant_as(s, VR, "cus=30 shader-engines=2"); /* on both sides of the middle */
	had = lease->partitions[0].cus;
	release(s->arbiter, middle->id);
	CHECK(resize(s, VR, lease->id, 30));
	CHECK(cuset_equal(&had, &lease->partitions[0].cus));
}

TEST_WITH(released_cus_count_for_the_quota_until_acknowledged, struct scene *s)
{
	struct lease *lease;
	unsigned touched;

	s->arbiter->settings->tenants[1].max_cus = (struct limit){ LIMIT_COUNT, 30 };
	lease = grant(s, LAB, 30);
	CHECK(resize(s, LAB, lease->id, 4));
	CHECK(!grant(s, LAB, 20) && refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(ledger_take_touched(s->arbiter, &touched) == lease);
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, 2) == 0);
	CHECK(lease->touched & TOUCH_CHANGED); /* saved: the holder acknowledges only once */
	CHECK(grant(s, LAB, 20));
}

/* Each resize asks for the same CUs in other engines, and no holder acknowledges. */
static void spread(struct scene *s, const struct lease *lease)
{
	for (unsigned engines = 1; engines <= 4; engines++)
		(void)resize_as(s, lease, "cus=15 shader-engines=%u", engines);
	for (unsigned engines = 4; engines > 0; engines--)
		(void)resize_as(s, lease, "cus=15 shader-engines=%u", engines);
}

TEST(resizes_without_acknowledgement_pass_no_quota)
{
	static const char *const keys[] = { "max-cus", "max-fixed-cus" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		_cleanup_(scene_done) struct scene s = scene_of(1);
		struct tenant *tenant = tenant_of(&s, "*");
		struct lease *lease;

		*(i == 0 ? &tenant->max_cus : &tenant->max_fixed_cus) = (struct limit){ LIMIT_COUNT,
											20 };
		lease = grant_as(&s, ANY, "cus=15 shader-engines=1");
		spread(&s, lease);
		CHECK(cuset_count(&lease->partitions[0].occupied) <= 20);
		CHECK(resize_as(&s, lease, "cus=15 shader-engines=3") < 0);
		CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
		CHECK(strcmp(s.result.refusals[0].key, keys[i]) == 0);
		CHECK(resize_as(&s, lease, "cus=4 shader-engines=1") == 0);
		CHECK(arbiter_acknowledge(s.arbiter, lease->id, lease->generation) == 0);
		CHECK(resize_as(&s, lease, "cus=15 shader-engines=2") == 0);
	}
}

static struct request any_shape_request(unsigned cus)
{
	struct request request = request_for(cus);

	request.wants[0].any_shape = true;
	return request;
}

/* A lease of any shape in three engines grows when the fourth one is free, up to its quota: no CU has to be left. */
static void grow_to_quota(struct scene *s, unsigned has, unsigned asks)
{
	struct request now = any_shape_request(has), then = any_shape_request(asks);
	const struct caller any = caller_of(ANY);
	struct lease *engine = grant_as(s, LAB, "shader-engines=1"), *lease, *next;

	tenant_of(s, "*")->max_cus = (struct limit){ LIMIT_COUNT, asks };
	CHECK(engine && (lease = reserve(s->arbiter, ANY, &now, &s->result)));
	release(s->arbiter, engine->id);
	CHECK(arbiter_plan_resize(s->arbiter, &any, lease->id, &then, &next, &s->result) >= 0);
	lease = arbiter_commit(s->arbiter, next);
	CHECK(lease->partitions[0].count == asks);
	CHECK(cuset_count(&lease->partitions[0].occupied) <= asks);
}

TEST(lease_of_any_shape_grows_up_to_the_quota)
{
	for (unsigned has = 1; has < 45; has++)
		for (unsigned asks = has; asks <= has + 15; asks++) {
			_cleanup_(scene_done) struct scene s = scene_of(1);

			grow_to_quota(&s, has, asks);
		}
}

/* On XCCs of 38 CUs each in four engines. */
TEST(lease_of_any_shape_grows_up_to_the_quota_on_several_xccs)
{
	const struct gpu_info gpu = play_gpu("0", 2);

	for (unsigned has = 4; has < 110; has++)
		for (unsigned asks = has; asks <= has + 30; asks++) {
			_cleanup_(scene_done) struct scene s = { .arbiter = arbiter_of(&gpu, 1) };

			add_tenant(s.arbiter, "lab", LAB, CLASS_GUARANTEED);
			grow_to_quota(&s, has, asks);
		}
}

TEST_WITH(resize_to_another_engine_counts_the_one_that_it_leaves, struct scene *s)
{
	struct lease *lease;
	uint32_t engine;

	tenant_of(s, "*")->max_engines = (struct limit){ LIMIT_COUNT, 1 };
	lease = grant_as(s, ANY, "cus=8 shader-engines=1");
	engine = cuset_engines(&lease->partitions[0].cus);
	CHECK(grant_as(s, LAB, "cus=7 shader-engines=1"));
	CHECK(resize_as(s, lease, "cus=15 shader-engines=1") < 0);
	CHECK(refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(strcmp(s->result.refusals[0].key, "max-shader-engines") == 0);
	CHECK(cuset_engines(&lease->partitions[0].occupied) == engine);
	tenant_of(s, "*")->max_engines.value = 2;
	CHECK(resize_as(s, lease, "cus=15 shader-engines=1") == 0);
}

TEST_WITH(refusal_blames_unmanaged_processes_only_if_it_would_fit_without_them, struct scene *s)
{
	struct observed unmanaged_process = {
		.pid = 9, .start_time = 1, .kfd_gpu_id = 5, .queues = 8
	};

	s->arbiter->gpus[0].info.kfd_gpu_id = 5;
	s->arbiter->gpus[0].reserve_queues = 3;
	CHECK(grant_as(s, ANY, "cus=4 queues=15"));
	CHECK(arbiter_observe(s->arbiter, &unmanaged_process, 1) == 0);
	CHECK(!grant_as(s, ANY, "cus=4 queues=8"));
	CHECK(refused(s, RESULT_NO_CAPACITY, REASON_QUEUES));
	CHECK(!grant_as(s, ANY, "cus=4 queues=6"));
	CHECK(refused(s, RESULT_NO_CAPACITY, REASON_UNMANAGED));
}

TEST_WITH(resize_with_exact_or_cus_max_is_refused_with_the_right_reason, struct scene *s)
{
	CHECK(grant(s, ANY, 4));
	CHECK(!grant_as(s, ANY, "cus=60 exact=1"));
	CHECK(refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	CHECK(!grant_as(s, ANY, "cus=0 shader-engines=1 cus-max=5"));
	CHECK(refused(s, RESULT_NEVER_FITS, REASON_SHAPE));
}

TEST_WITH(resize_keeps_released_budgets_charged_until_acknowledged, struct scene *s)
{
	struct budget *charged = &s->arbiter->gpus[0].charged;
	struct lease *lease;

	lease = grant_as(s, LAB,
			 "cus=20 queues=9 processes=3 sdma-queues=4 vram=4096 cooperative=1");
	CHECK(resize(s, LAB, lease->id, 20) && resize(s, LAB, lease->id, 10));
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, 2) == 0); /* not the last generation */
	CHECK(charged->queues == 9 && charged->processes == 3 && charged->sdma_queues == 4);
	CHECK(charged->vram == 4096 && charged->cooperative == 1);
	CHECK(gpu_cus_free(&s->arbiter->gpus[0]) == 40);
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, 3) == 0);
	CHECK(charged->queues == 2 && charged->processes == 1 && charged->sdma_queues == 0);
	CHECK(charged->vram == 0 && charged->cooperative == 0);
	CHECK(gpu_cus_free(&s->arbiter->gpus[0]) == 50);
}

TEST_WITH(resize_keeps_isolation_and_alone, struct scene *s)
{
	struct lease *lease;

	s->arbiter->settings->tenants[0].alone = true;
	lease = grant(s, VR, 10);
	CHECK(resize_as(s, lease, "cus=10 isolation=cu") < 0);
	CHECK(s->result.kind == RESULT_INVALID_REQUEST);
	s->arbiter->settings->tenants[0].alone =
		false; /* a reload does not change granted leases */
	CHECK(resize(s, VR, lease->id, 12) && lease->partitions[0].alone);
}

TEST_WITH(resize_counts_once_for_the_quota_of_its_user, struct scene *s)
{
	struct lease *lease;

	s->arbiter->settings->tenants[2].max_cus = (struct limit){ LIMIT_COUNT, 20 };
	lease = grant(s, ANY, 20);
	CHECK(lease && resize(s, ANY, lease->id, 20));
	CHECK(!grant(s, ANY, 1) && refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(grant(s, ANY + 1, 20));
}

TEST_WITH(a_realtime_lease_of_any_shape_takes_few_engines, struct scene *s)
{
	struct request request = request_for(7);
	struct lease *lease;

	request.wants[0].any_shape = true;
	lease = reserve(s->arbiter, VR, &request, &s->result);
	CHECK(lease && lease->partitions[0].count == 7);
	CHECK(__builtin_popcount(cuset_engines(&lease->partitions[0].cus)) == 1);
}

TEST_WITH(administrators_may_act_on_every_lease, struct scene *s)
{
	struct caller root = { .administrator = true };
	struct lease *lease = grant(s, ANY, 4), *found = NULL;

	CHECK(ledger_find_owned(s->arbiter, &root, lease->id, &found, &s->result) == 0 &&
	      found == lease);
}
