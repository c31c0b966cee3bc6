/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What policy allows, and what makes no sense whatever policy says. */

#include "check.h"
#include "scene.h"

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(an_aim_above_the_quota_is_refused_and_not_trimmed, struct scene *s)
{
	struct tenant *vr = &s->arbiter->settings->tenants[0];

	vr->max_cus = (struct limit){ LIMIT_PERCENT, 25 };
	CHECK(!grant(s, VR, 16) && refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(s->result.refusals[0].free == 15);
	CHECK(grant(s, VR, 10));
	CHECK(!grant(s, VR, 6) && refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(grant(s, VR, 5));
}

TEST_WITH(a_quota_leaves_fewer_cus_where_they_are_enough, struct scene *s)
{
	struct tenant *vr = &s->arbiter->settings->tenants[0];

	vr->max_cus = vr->max_fixed_cus = (struct limit){ LIMIT_COUNT, 30 };
	vr->class = CLASS_BESTEFFORT;
	CHECK(!grant_as(s, VR, "cus=40 cus-min=31; class=besteffort"));
	CHECK(refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA) && s->result.refusals[0].asked == 31);
	CHECK(!grant_as(s, VR, "cus=40 cus-min=10 exact=1; class=besteffort"));
	CHECK(grant_as(s, VR, "cus=40 cus-min=10; class=besteffort")->partitions[0].count == 30);
	CHECK(!grant_as(s, VR, "cus=40 cus-min=10; class=besteffort"));
	CHECK(refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA) && s->result.refusals[0].asked == 10);
}

TEST_WITH(rounding_up_stops_at_the_quota, struct scene *s)
{
	static const char request[] = "cus=7 cus-min=7 shader-engines=2";

	s->arbiter->settings->tenants[0].max_cus = (struct limit){ LIMIT_COUNT, 7 };
	/* 6 is too few, 8 too many. */
	CHECK(!grant_as(s, VR, "%s", request) && refused(s, RESULT_NEVER_FITS, REASON_SHAPE));
	s->arbiter->settings->tenants[0].max_cus.value = 8;
	CHECK(grant_as(s, VR, "%s", request)->partitions[0].count == 8);
}

TEST(every_number_of_a_tenant_is_kept)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct tenant *vr = &s.arbiter->settings->tenants[0];

	vr->max_leases = vr->max_gpus = (struct limit){ LIMIT_COUNT, 1 };
	CHECK(!grant_as(&s, VR, "cus=4 | cus=4"));
	CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
	CHECK(grant(&s, VR, 4) && !grant(&s, VR, 4));
	CHECK(s.result.kind == RESULT_QUOTA_EXCEEDED);

	vr->max_leases.kind = LIMIT_NONE;
	CHECK(!grant_as(&s, VR, "cus=4 gpu=1"));
	CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA) && s.result.refusals[0].asked == 1 &&
	      s.result.refusals[0].free == 0 && s.result.refusals[0].held == 1);
	vr->max_queues = (struct limit){ LIMIT_COUNT, 3 };
	CHECK(!grant(&s, VR, 4) && s.result.kind == RESULT_QUOTA_EXCEEDED);
	vr->max_queues.kind = LIMIT_NONE;
	vr->max_processes = (struct limit){ LIMIT_COUNT, 1 };
	CHECK(!grant(&s, VR, 4) && s.result.kind == RESULT_QUOTA_EXCEEDED);
	vr->max_processes.kind = LIMIT_NONE;
	vr->max_vram = (struct limit){ LIMIT_COUNT, 4096 };
	CHECK(!grant_as(&s, VR, "cus=4 vram=4097"));
	CHECK(refused(&s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA));
}

TEST_WITH(class_and_priority_stop_at_what_the_tenant_may_have, struct scene *s)
{
	static const char *const requests[] = { "cus=4; class=realtime", "cus=4 priority=8" };

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		CHECK(!grant_as(s, LAB, "%s", requests[i]));
		CHECK(refused(s, RESULT_NOT_PERMITTED, REASON_POLICY));
		CHECK(grant_as(s, VR, "%s", requests[i]));
	}
}

TEST_WITH(priority_by_class_is_the_highest_of_the_tenant_for_realtime, struct scene *s)
{
	const unsigned by_class = PRIORITY_BY_CLASS;
	struct lease *lease = grant_as(s, VR, "cus=4 priority=%u", by_class);

	CHECK(lease && lease->class == CLASS_REALTIME &&
	      lease->partitions[0].priority == PRIORITY_HIGH);
	lease = grant_as(s, VR, "cus=4 priority=%u; class=besteffort", by_class);
	CHECK(lease && lease->partitions[0].priority == PRIORITY_NORMAL);
	tenant_of(s, "vr")->priority = PRIORITY_LOW;
	lease = grant_as(s, VR, "cus=4 priority=%u; class=realtime", by_class);
	CHECK(lease && lease->partitions[0].priority == PRIORITY_NORMAL);
	CHECK(!grant_as(s, VR, "cus=4 priority=%u; class=realtime", by_class + 1));
}

TEST_WITH(a_tenant_is_the_first_that_matches_or_an_open_one_that_is_named, struct scene *s)
{
	struct tenant *everybody =
		&s->arbiter->settings->tenants[s->arbiter->settings->n_tenants - 1];
	struct request request = request_for(4);

	CHECK(strcmp(grant(s, VR, 4)->tenant, "vr") == 0);
	strcpy(request.tenant, "*");
	CHECK(!reserve(s->arbiter, VR, &request, &s->result));
	CHECK(refused(s, RESULT_NOT_PERMITTED, REASON_POLICY));
	everybody->open = true;
	CHECK(strcmp(reserve(s->arbiter, VR, &request, &s->result)->tenant, "*") == 0);
	strcpy(request.tenant, "vr");
	CHECK(strcmp(reserve(s->arbiter, VR, &request, &s->result)->tenant, "vr") == 0);
	strcpy(request.tenant, "lab");
	CHECK(!reserve(s->arbiter, VR, &request, &s->result));
	CHECK(s->result.kind == RESULT_NOT_PERMITTED);
	strcpy(request.tenant, "nobody");
	CHECK(!reserve(s->arbiter, VR, &request, &s->result));
	CHECK(s->result.kind == RESULT_NO_SUCH_TENANT);
}

TEST_WITH(requests_that_contradict_themselves_are_refused_by_the_key, struct scene *s)
{
	static const struct {
		struct want want;
		const char *key;
	} table[] = {
		{ { .cus = 0 }, "cus or shader-engines" },
		{ { .cus = 10, .cus_min = 11 }, "cus-min 11" },
		{ { .cus = 10, .cus_max = 9 }, "cus-max 9" },
		{ { .cus = 10, .cus_max = 20, .exact = true }, "exact" },
		{ { .cus = 10, .queues = 1, .processes = 2 }, "queues 1" },
		{ { .cus = 10, .queues = 2, .streams = 2 }, "queues 2" },
		{ { .cus = 10, .priority = 17 }, "priority 17" },
		{ { .cus = 10, .isolation = ISOLATION_SHADER_ENGINE }, "isolation" },
	};
	struct request request = request_for(10);

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		request.wants[0] = table[i].want;
		strcpy(request.wants[0].gpu, "any");
		CHECK(!reserve(s->arbiter, ANY, &request, &s->result));
		CHECK(s->result.kind == RESULT_INVALID_REQUEST);
		CHECK(strstr(s->result.sentence, table[i].key));
	}
	request = request_for(10);
	request.wants[0].isolation = ISOLATION_SHARED;
	CHECK(!reserve(s->arbiter, LAB, &request, &s->result));
	request.wants[0].isolation = ISOLATION_DEFAULT;
	request.wants[0].cus_max = 20;
	CHECK(!reserve(s->arbiter, LAB, &request, &s->result));
	CHECK(strstr(s->result.sentence, "cus-max"));
	request.n_wants = 0;
	CHECK(!reserve(s->arbiter, ANY, &request, &s->result));
}

TEST_WITH(only_realtime_lends_and_only_best_effort_borrows, struct scene *s)
{
	static const struct {
		const char *options, *says;
	} refusals[] = {
		{ "class=guaranteed start-inactive=1",
		  "start-inactive: class guaranteed does not lend" },
		{ "class=besteffort start-inactive=1",
		  "start-inactive: class besteffort does not lend" },
		{ "class=realtime adaptable=1", "adaptable: a realtime lease keeps what it has" },
		{ "class=guaranteed adaptable=1", "adaptable: a guaranteed lease keeps" },
		{ "class=realtime start-inactive=1 adaptable=1",
		  "adaptable: a realtime lease keeps" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		printf("  %s\n", refusals[i].options);
		CHECK(!grant_as(s, VR, "cus=10; %s", refusals[i].options));
		CHECK(s->result.kind == RESULT_INVALID_REQUEST);
		CHECK(strstr(s->result.sentence, refusals[i].says));
	}
	CHECK(grant_as(s, VR, "cus=10; class=realtime start-inactive=1")->state == STATE_INACTIVE);
	CHECK(grant_as(s, VR, "cus=10; class=besteffort adaptable=1")->state == STATE_GRANTED);
}

TEST(an_adaptable_lease_is_any_rectangle_and_shares_nothing)
{
	static const struct {
		struct want want;
		const char *key;
	} table[] = {
		{ { .cus = 10, .exact = true }, "exact" },
		{ { .cus = 10, .any_shape = true }, "shape any" },
		{ { .cus = 10, .isolation = ISOLATION_SHARED }, "isolation shared" },
		{ { .cus = 10, .shader_engines = 2 }, "shader-engines" },
		{ { .shader_engines = 1 }, "shader-engines" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_(scene_done) struct scene s = scene_of(1);
		struct request request = request_for(10);

		request.wants[0] = table[i].want;
		strcpy(request.wants[0].gpu, "any");
		request.adaptable = true;
		CHECK(!reserve(s.arbiter, ANY, &request, &s.result));
		CHECK(s.result.kind == RESULT_INVALID_REQUEST);
		CHECK(strstr(s.result.sentence, "want 1: ") &&
		      strstr(s.result.sentence, table[i].key));
		request.adaptable = false;
		CHECK(reserve(s.arbiter, ANY, &request, &s.result));
	}
}

TEST_WITH(limits_of_the_daemon_are_kept, struct scene *s)
{
	s->arbiter->settings->max_leases_per_user = 1;
	CHECK(grant_as(s, ANY, "cus=4 queues=1"));
	CHECK(!grant_as(s, ANY, "cus=4 queues=1"));
	CHECK(s->result.kind == RESULT_TOO_MANY_LEASES);
	s->arbiter->settings->max_leases = 1;
	CHECK(!grant_as(s, LAB, "cus=4 queues=1"));
	CHECK(s->result.kind == RESULT_TOO_MANY_LEASES);
}

TEST_WITH(user_with_max_waiting_leases_cannot_wait_with_another_one, struct scene *s)
{
	s->arbiter->settings->tenants[0].max_waiting = (struct limit){ LIMIT_COUNT, 1 };
	CHECK(grant(s, VR, 20)->state == STATE_GRANTED);
	CHECK(grant_as(s, VR, "cus=60; wait-usec=forever")->state == STATE_WAITING);
	CHECK(!grant_as(s, VR, "cus=60; wait-usec=forever"));
	CHECK(refused(s, RESULT_QUOTA_EXCEEDED, REASON_QUOTA) && s->result.n_refusals == 1);
	CHECK(strcmp(s->result.refusals[0].key, "max-waiting") == 0);
	CHECK(s->result.refusals[0].limit == 1 && s->result.refusals[0].held == 1);
	CHECK(grant_as(s, VR, "cus=4; wait-usec=forever")->state == STATE_GRANTED); /* it fits */
	CHECK(grant_as(s, LAB, "cus=60; wait-usec=forever")->state == STATE_WAITING);
}
