/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/change/arbiter.h"

#include <errno.h>

#include "check.h"
#include "scene.h"

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(two_realtime_leases_share_no_shader_engine, struct scene *s)
{
	struct lease *a = grant(s, VR, 20), *b = grant(s, VR, 10);

	CHECK(a && b);
	CHECK(!(cuset_engines(&a->partitions[0].cus) & cuset_engines(&b->partitions[0].cus)));
	CHECK(grant(s, VR, 15));
	CHECK(!grant(s, VR, 5) && refused(s, RESULT_NO_CAPACITY, REASON_SHADER_ENGINES));
	CHECK(grant(s, ANY, 10)); /* other classes may use the other CUs of those engines */
}

static bool fits_are(const struct scene *s, enum resource resource, uint64_t below, uint64_t above)
{
	const struct refusal *refusal = &s->result.refusals[0];

	return refusal->fit_resource == resource && refusal->n_fits == 1U + (above > 0) &&
	       refusal->fits[0] == below && (above == 0 || refusal->fits[1] == above);
}

/* Is the request refused to the realtime user for want of engines? */
static bool lacks_engines(struct scene *s, const char *request)
{
	return !grant_as(s, VR, "%s", request) &&
	       refused(s, RESULT_NO_CAPACITY, REASON_SHADER_ENGINES);
}

TEST_WITH(refusal_of_shader_engines_names_how_many_are_free, struct scene *s)
{
	CHECK(grant(s, VR, 15));
	CHECK(lacks_engines(s, "shader-engines=4") && fits_are(s, RESOURCE_SHADER_ENGINES, 3, 0));
	CHECK(grant(s, VR, 30));
	CHECK(lacks_engines(s, "shader-engines=2") && fits_are(s, RESOURCE_SHADER_ENGINES, 1, 0));
	/* One engine has too few CUs. */
	CHECK(lacks_engines(s, "shader-engines=2 cus=30"));
	CHECK(s->result.refusals[0].n_fits == 0 && s->result.refusals[0].free == 1);
	CHECK(grant(s, ANY, 5)); /* in the last engine: it is not whole any more */
	CHECK(lacks_engines(s, "shader-engines=2"));
	CHECK(s->result.refusals[0].n_fits == 0 && s->result.refusals[0].free == 0);
	/* What is left of it can be asked for by CUs. */
	CHECK(lacks_engines(s, "shader-engines=1") && fits_are(s, RESOURCE_CUS, 10, 0));
	CHECK(s->result.refusals[0].free == 0);
}

TEST_WITH(realtime_with_isolation_cu_shares_engines_only_with_isolation_cu, struct scene *s)
{
	CHECK(grant_as(s, VR, "cus=24 isolation=cu shader-engines=4"));
	CHECK(grant_as(s, VR, "cus=24 isolation=cu shader-engines=4"));
	CHECK(!grant(s, VR, 4) && refused(s, RESULT_NO_CAPACITY, REASON_SHADER_ENGINES));
}

TEST_WITH(tenant_with_alone_shares_no_engine_with_any_lease, struct scene *s)
{
	struct lease *lease, *other;

	CHECK(strcmp(s->arbiter->settings->tenants[0].name, "vr") == 0);
	s->arbiter->settings->tenants[0].alone = true;
	lease = grant(s, VR, 10);
	other = grant(s, ANY, 60);
	CHECK(lease && !other && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	CHECK(s->result.refusals[0].free == 45);
	other = grant(s, ANY, 45);
	CHECK(other && !(cuset_engines(&lease->partitions[0].cus) &
			 cuset_engines(&other->partitions[0].cus)));
	CHECK(!grant(s, VR, 10) && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
}

TEST_WITH(best_effort_shares_cus_only_where_both_asked_for_it, struct scene *s)
{
	struct lease *a = grant_as(s, ANY, "cus=60 isolation=shared");
	struct lease *b = grant_as(s, ANY, "cus=60 isolation=shared");

	CHECK(a && b && b->partitions[0].count == 60);
	CHECK(!grant(s, ANY, 10) && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	release(s->arbiter, a->id);
	CHECK(!grant(s, ANY, 10)); /* the other lease still shares them */
	release(s->arbiter, b->id);
	CHECK(grant(s, ANY, 10));
}

TEST_WITH(released_cus_are_granted_again_bit_for_bit, struct scene *s)
{
	struct gpu before, *gpu = &s->arbiter->gpus[0];
	struct lease *keep = grant(s, LAB, 10), *go;

	gpu->changed = false;
	before = *gpu;
	go = grant(s, ANY, 30);
	CHECK(go && memcmp(&before, gpu, sizeof(before)) != 0);
	release(s->arbiter, go->id);
	gpu->changed = false;
	CHECK(keep && memcmp(&before, gpu, sizeof(before)) == 0);
}

TEST_WITH(gpu_whose_number_of_cus_is_doubtful_is_granted_as_a_whole, struct scene *s)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");

	arbiter_free(s->arbiter);
	info.whole_only = true;
	s->arbiter = arbiter_of(&info, 1);
	CHECK(!grant(s, ANY, 59) && refused(s, RESULT_NEVER_FITS, REASON_MASK));
	CHECK(grant(s, ANY, 60));
}

TEST_WITH(gpu_of_an_unknown_generation_is_granted_as_a_whole, struct scene *s)
{
	struct gpu_info info = radeon_vii("0000:03:00.0");
	struct lease *lease;

	arbiter_free(s->arbiter);
	info.gfx_target = 130000;
	s->arbiter = arbiter_of(&info, 1);
	CHECK(!grant(s, ANY, 59) && refused(s, RESULT_NEVER_FITS, REASON_MASK));
	CHECK(strstr(s->result.sentence, "mask") && s->result.refusals[0].fits[0] == 60);
	CHECK(!grant_as(s, ANY, "shader-engines=1"));
	CHECK(refused(s, RESULT_NEVER_FITS, REASON_MASK));

	lease = grant_as(s, ANY, "cus=60 cus-min=4 queues=8; adaptable=1");
	CHECK(lease && cuset_count(&lease->partitions[0].adaptation->base) == 60);
	CHECK(s->arbiter->gpus[0].charged.queues == 8);
	CHECK(!grant(s, ANY, 60) && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	release(s->arbiter, lease->id);

	/* Several may have all CUs. */
	CHECK(grant_as(s, ANY, "cus=60 queues=8 isolation=shared"));
	CHECK(grant_as(s, OTHER, "cus=60 queues=8 isolation=shared"));
}

TEST(each_budget_has_its_own_refusal)
{
	static const struct {
		const char *request;
		enum reason reason; /* of the refusal to grant it twice */
	} table[] = {
		{ "cus=4 queues=13", REASON_QUEUES },
		{ "cus=4 queues=8 processes=5", REASON_PROCESSES },
		{ "cus=4 queues=8 sdma-queues=9", REASON_SDMA },
		{ "cus=4 queues=8 sdma-xgmi-queues=9", REASON_SDMA_XGMI },
		{ "cus=4 queues=8 vram=9G", REASON_VRAM },
		{ "cus=4 queues=8 cooperative=1", REASON_COOPERATIVE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(scene_done) struct scene s = scene_of(1);

		printf("  %s\n", table[i].request);
		CHECK(grant_as(&s, ANY, "%s", table[i].request));
		CHECK(!grant_as(&s, ANY, "%s", table[i].request));
		CHECK(refused(&s, RESULT_NO_CAPACITY, table[i].reason));
	}
}

TEST_WITH(last_slots_are_granted_but_reserved_ones_are_not, struct scene *s)
{
	s->arbiter->gpus[0].reserve_queues = 3; /* as on an MI250: trouble from 22 queues on */
	CHECK(grant_as(s, ANY, "cus=4 queues=21"));
	CHECK(!grant_as(s, ANY, "cus=4 queues=1"));
	CHECK(refused(s, RESULT_NO_CAPACITY, REASON_QUEUES) && s->result.refusals[0].free == 0);
}

TEST_WITH(refusal_for_shape_names_the_next_smaller_and_larger_size, struct scene *s)
{
	CHECK(!grant_as(s, ANY, "cus=31 exact=1"));
	CHECK(refused(s, RESULT_NEVER_FITS, REASON_SHAPE));
	CHECK(fits_are(s, RESOURCE_CUS, 30, 32));
}

TEST_WITH(cus_min_above_the_cus_of_the_engines_never_fits, struct scene *s)
{
	CHECK(!grant_as(s, ANY, "shader-engines=1 cus-min=16"));
	CHECK(refused(s, RESULT_NEVER_FITS, REASON_SHAPE));
	CHECK(grant_as(s, ANY, "shader-engines=1 cus-min=15")->partitions[0].count == 15);
	CHECK(!grant_as(s, ANY, "cus-min=15 shader-engines=5"));
	CHECK(refused(s, RESULT_NEVER_FITS, REASON_SHADER_ENGINES));
}

TEST(unknown_gpu_is_refused_by_name)
{
	struct scene s = scene_of(2), empty = scene_of(0);

	CHECK(!grant_as(&s, ANY, "cus=10 gpu=0 | cus=10 gpu=0000:03:00.0"));
	CHECK(s.result.kind == RESULT_INVALID_REQUEST && strstr(s.result.sentence, "twice"));
	CHECK(!grant_as(&s, ANY, "cus=10 gpu=0 | cus=10 gpu=0000:99:00.0"));
	CHECK(s.result.kind == RESULT_NO_SUCH_GPU && strstr(s.result.sentence, "0000:99"));
	CHECK(!grant_as(&s, ANY, "cus=10 | cus=10 | cus=10"));
	CHECK(refused(&s, RESULT_NEVER_FITS, REASON_ABSENT));
	CHECK(!grant(&empty, ANY, 10) && refused(&empty, RESULT_NEVER_FITS, REASON_ABSENT));
	scene_done(&s);
	scene_done(&empty);
}

TEST(gpu_any_prefers_the_fullest_gpu_that_grants_as_much)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);

	CHECK(grant_as(&s, ANY, "cus=20 gpu=1"));
	CHECK(grant(&s, ANY, 30)->partitions[0].gpu == 1);
	CHECK(grant(&s, ANY, 60)->partitions[0].gpu == 0);
}

TEST(gpu_any_prefers_a_gpu_without_rounding_up)
{
	struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:04:00.0") };
	_cleanup_(scene_done) struct scene s = { 0 };

	gpus[1].geometry =
		(struct geometry){ .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };
	CHECK(geometry_spread(&gpus[1].geometry, 304) == 0);
	s.arbiter = arbiter_of(gpus, 2);
	/* The other GPU would have to grant 32: 24 are too few. */
	CHECK(grant_as(&s, ANY, "cus=30 cus-min=26")->partitions[0].gpu == 0);
}

TEST_WITH(drained_gpu_grants_nothing, struct scene *s)
{
	uint64_t drained;

	CHECK(arbiter_drain(s->arbiter, "9", true) == -ENOENT);
	CHECK(arbiter_plan_drain(s->arbiter, "9", true, &drained) == -ENOENT);
	CHECK(arbiter_plan_drain(s->arbiter, "0", true, &drained) == 0 && drained == 1);
	CHECK(!s->arbiter->gpus[0].draining);
	CHECK(arbiter_drain(s->arbiter, "0", true) == 0);
	CHECK(!grant(s, ANY, 10) && refused(s, RESULT_NO_CAPACITY, REASON_DRAIN));
	CHECK(arbiter_drain(s->arbiter, "0", false) == 0 && grant(s, ANY, 10));
}

TEST_WITH(a_token_finds_the_lease_of_its_uid_while_it_lives, struct scene *s)
{
	struct request request = request_of("cus=4; token=render-7"), other = request;
	struct lease *lease = reserve(s->arbiter, ANY, &request, &s->result);

	CHECK(ledger_find_token(s->arbiter, ANY, "render-7") == lease);
	CHECK(!ledger_find_token(s->arbiter, LAB, "render-7"));
	CHECK(!ledger_find_token(s->arbiter, ANY, ""));
	CHECK(request_equal(lease->request, &other));
	other.wants[0].cus = 5;
	CHECK(!request_equal(lease->request, &other));
	arbiter_holder_gone(s->arbiter, lease->id);
	CHECK(!ledger_find_token(s->arbiter, ANY, "render-7"));
}

/* ---- holders and bound processes --------------------------------------------------- */

TEST_WITH(a_lease_lives_while_it_has_a_holder_or_a_bound_process, struct scene *s)
{
	struct lease *lease = grant(s, ANY, 10);
	uint64_t id = lease->id;

	CHECK(arbiter_bind(s->arbiter, id, 4711, false) == 0);
	arbiter_holder_gone(s->arbiter, id);
	arbiter_holder_gone(s->arbiter, id); /* more often than there were holders */
	CHECK(lease->state == STATE_GRANTED);
	arbiter_bound_gone(s->arbiter, id, 4712);
	CHECK(lease->state == STATE_GRANTED);
	arbiter_bound_gone(s->arbiter, id, 4711);
	CHECK(lease->state == STATE_ENDING && lease->reason[0]);
	CHECK(!grant(s, ANY, 60)); /* charged until a scan shows no process of the lease */
	CHECK(arbiter_observe(s->arbiter, NULL, 0) == 0);
	CHECK(!ledger_find(s->arbiter, id) && grant(s, ANY, 60));
	for (unsigned i = 0; i < LEASE_BOUND_MAX; i++)
		CHECK(arbiter_bind(s->arbiter, id + 1, (pid_t)i + 1, false) == 0);
	CHECK(arbiter_bind(s->arbiter, id + 1, 99, false) == -ENOSPC);
	CHECK(arbiter_bind(s->arbiter, id, 99, false) == -ENOENT);
}

TEST_WITH(lease_that_its_caller_does_not_know_of_ends_although_a_process_is_bound, struct scene *s)
{
	struct lease *lease = grant(s, ANY, 10);

	CHECK(arbiter_bind(s->arbiter, lease->id, 4711, false) == 0);
	CHECK(arbiter_next_deadline(s->arbiter) == UINT64_MAX);
	lease->abandoned = true;
	CHECK(arbiter_next_deadline(s->arbiter) == 0);
	arbiter_expire(s->arbiter, 0);
	CHECK(lease->state == STATE_ENDING && arbiter_next_deadline(s->arbiter) == UINT64_MAX);
}

TEST(gpu_index_in_a_request_is_replaced_by_the_name)
{
	struct gpu_info gpus[] = { radeon_vii("0000:03:00.0"), radeon_vii("0000:43:00.0") };
	_cleanup_(arbiter_freep) struct arbiter *arbiter = arbiter_of(gpus, 2);
	struct request request = request_for(15);
	static const char *const texts[][2] = {
		{ "1", "0000:43:00.0" }, { "0000:03:00.0", "0000:03:00.0" },
		{ "any", "any" },        { "2", "2" },
		{ "01", "01" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		strcpy(request.wants[0].gpu, texts[i][0]);
		ledger_name_gpus(arbiter, &request);
		CHECK(strcmp(request.wants[0].gpu, texts[i][1]) == 0);
	}
}
