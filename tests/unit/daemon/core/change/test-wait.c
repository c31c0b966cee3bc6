/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Waiting leases: when a request waits, the order of grants, deadlines and ends. */

#include <errno.h>

#include "check.h"
#include "wait-rig.h"

TEST(request_without_room_waits_if_it_may)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *lease;

	CHECK(grant_on(&s, ANY, "0", 40));
	forget_touched(&s);
	lease = wait_for(&s, ANY, "0", 30);
	CHECK(lease->n_partitions == 0 && !lease->partitions && lease->generation == 1);
	CHECK(lease->wait.candidates == 1 && lease->wait.passed == 0 &&
	      lease->deadline_usec == UINT64_MAX);
	CHECK(strstr(reason_of(s.arbiter, lease), "30 CUs on 0000:03:00.0"));
	CHECK(refused(&s, RESULT_NO_CAPACITY, REASON_CUS) && s.result.refusals[0].retry);
	CHECK(s.result.sentence[0] && queue_position(s.arbiter, lease) == 1);
	CHECK(lease->request && lease->request->wants[0].cus == 30 && lease->n_holders == 1);
	CHECK(touched_of(&s, lease->id, NULL) == TOUCH_ADDED);
	CHECK(grant_waiting(&s, NULL) == 0 && touched_of(&s, lease->id, NULL) == 0);
}

TEST(request_that_waiting_cannot_help_is_refused)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);

	CHECK(grant(&s, ANY, 60));
	CHECK(!ask(&s, ANY, request_for(200)) && refused(&s, RESULT_NEVER_FITS, REASON_CUS));
	CHECK(!ask(&s, ANY, request_of("cus=4 priority=11")) &&
	      refused(&s, RESULT_NOT_PERMITTED, REASON_POLICY));
	CHECK(!s.result.refusals[0].retry);
	/* Even if CUs are taken at the same time. */
	CHECK(!ask(&s, ANY, request_of("cus=4 vram=17G")) &&
	      refused(&s, RESULT_NEVER_FITS, REASON_VRAM));
	CHECK(arbiter_drain(s.arbiter, "0", true) == 0);
	CHECK(!ask(&s, ANY, request_of("cus=4 vram=17G")) &&
	      refused(&s, RESULT_NEVER_FITS, REASON_VRAM));
	CHECK(!s.result.refusals[0].retry);
}

TEST(granted_waiting_lease_equals_any_other_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *first = grant(&s, ANY, 40), *lease = wait_for(&s, ANY, "any", 30);

	lease->deadline_usec = 1000;
	release(s.arbiter, first->id);
	forget_touched(&s);
	CHECK(grant_waiting(&s, NULL) == 1);
	CHECK(lease->state == STATE_GRANTED && lease->partitions[0].count == 30);
	CHECK(lease->generation == 1 && lease->acknowledged == 1 && !*reason_of(s.arbiter, lease));
	CHECK(lease->deadline_usec == UINT64_MAX && lease->wait.candidates == 0 && !lease->request);
	CHECK(lease->n_holders == 1 && queue_position(s.arbiter, lease) == 0);
	CHECK(touched_of(&s, lease->id, NULL) == TOUCH_COMMITTED);
	CHECK(gpu_cus_free(&s.arbiter->gpus[0]) == 30);
	release(s.arbiter, lease->id);
	CHECK(gpu_cus_free(&s.arbiter->gpus[0]) == 60);
}

TEST(waiting_leases_are_granted_by_class_and_then_by_age)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *all = grant(&s, ANY, 60);
	struct lease *any[2], *lab[2];
	uint64_t ids[4];

	any[0] = wait_for(&s, ANY, "any", 60);
	lab[0] = wait_for(&s, LAB, "any", 60);
	any[1] = wait_for(&s, ANY, "any", 60);
	lab[1] = wait_for(&s, LAB, "any", 60);
	const uint64_t order[] = { lab[0]->id, lab[1]->id, any[0]->id, any[1]->id };

	for (unsigned i = 0; i < 4; i++)
		CHECK(queue_position(s.arbiter, ledger_find(s.arbiter, order[i])) == i + 1);
	release(s.arbiter, all->id);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(grant_waiting(&s, ids) == 1 && ids[0] == order[i]);
		release(s.arbiter, ids[0]);
	}
}

TEST(all_waiting_leases_that_fit_are_granted_in_one_round)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *all = grant(&s, ANY, 60);
	uint64_t ids[4], first = wait_for(&s, ANY, "any", 20)->id;

	wait_for(&s, OTHER, "any", 50);
	wait_for(&s, ANY, "any", 20);
	wait_for(&s, ANY, "any", 20);
	release(s.arbiter, all->id);
	CHECK(grant_waiting(&s, ids) == 3);
	CHECK(ids[0] == first && ids[1] == first + 2 && ids[2] == first + 3);
	CHECK(s.arbiter->n_waiting == 1 && s.arbiter->waiting[0]->wait.passed == 2);
}

/* ---- ends -------------------------------------------------------------------------- */

TEST(waiting_lease_is_removed_when_its_last_holder_closes)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *all = grant(&s, ANY, 60), *lease = wait_for(&s, ANY, "any", 20), gone = { 0 };
	uint64_t id = lease->id;

	CHECK(arbiter_bind(s.arbiter, id, 77, false) == 0 &&
	      arbiter_bind(s.arbiter, id, 77, false) == 0);
	CHECK(lease->n_bound == 1);
	forget_touched(&s);
	arbiter_holder_gone(s.arbiter, id);
	CHECK(lease->state == STATE_WAITING);
	arbiter_bound_gone(s.arbiter, id, 77);
	CHECK(!ledger_find(s.arbiter, id) && s.arbiter->n_waiting == 0);
	CHECK(touched_of(&s, id, &gone) == (TOUCH_ENDING | TOUCH_REMOVED));
	CHECK(gone.state == STATE_ENDING && gone.cause == RESULT_OK && gone.reason[0]);
	release(s.arbiter, all->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	check_promises(s.arbiter);
}

TEST(waiting_lease_ends_at_its_deadline_with_a_reason)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *leases[4], gone;
	uint64_t id;

	CHECK(grant(&s, ANY, 60) && arbiter_next_deadline(s.arbiter) == UINT64_MAX);
	for (uint64_t i = 0; i < 4; i++) {
		leases[i] = wait_for(&s, ANY, "any", 10);
		leases[i]->deadline_usec = i < 3 ? 3000 - 1000 * i : UINT64_MAX;
	}
	forget_touched(&s);
	id = leases[2]->id;
	CHECK(arbiter_next_deadline(s.arbiter) == 1000);
	arbiter_expire(s.arbiter, 999);
	CHECK(s.arbiter->n_waiting == 4);
	arbiter_expire(s.arbiter, 1000);
	CHECK(s.arbiter->n_waiting == 3 && arbiter_next_deadline(s.arbiter) == 2000);
	CHECK(touched_of(&s, id, &gone) == (TOUCH_ENDING | TOUCH_REMOVED));
	CHECK(gone.cause == RESULT_TIMED_OUT);
	CHECK(strstr(gone.reason, "10 CUs on 0000:03:00.0"));
	arbiter_expire(s.arbiter, 5000);
	CHECK(s.arbiter->n_waiting == 1 && ledger_find(s.arbiter, leases[3]->id));
	CHECK(arbiter_next_deadline(s.arbiter) == UINT64_MAX);
	check_promises(s.arbiter);
}

TEST(long_reason_is_cut_between_utf8_characters)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	uint64_t id = grant(&s, ANY, 10)->id;
	struct lease lease;
	char text[256] = "x";

	for (size_t i = 1; i + 2 < sizeof(text); i += 2)
		memcpy(&text[i], "ü", 2);
	for (size_t odd = 0; odd < 2; odd++, id = grant(&s, ANY, 10)->id) {
		arbiter_end(s.arbiter, ledger_find(s.arbiter, id), RESULT_OK, &text[odd]);
		CHECK(touched_of(&s, id, &lease) & TOUCH_ENDING);
		CHECK(strlen(lease.reason) == REQUEST_TEXT - 1 - odd);
		CHECK(strncmp(lease.reason, &text[odd], REQUEST_TEXT - 1 - odd) == 0);
	}
}

/* ---- waiting leases and other operations ------------------------------------------- */

TEST(token_finds_a_waiting_lease_before_and_after_its_grant)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *all = grant(&s, ANY, 60), *lease;
	struct request request = request_of("cus=20; token=render-7");

	lease = ask(&s, ANY, request);
	CHECK(ledger_find_token(s.arbiter, ANY, "render-7") == lease);
	CHECK(request_equal(lease->request,
			    &request)); /* the time that it may wait is not compared */
	release(s.arbiter, all->id);
	CHECK(grant_waiting(&s, NULL) == 1);
	CHECK(ledger_find_token(s.arbiter, ANY, "render-7") == lease);
	CHECK(request_equal(lease->request, &request));
}

TEST(next_version_of_a_waiting_lease_keeps_the_request_of_its_token)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct caller caller = caller_of(ANY);
	struct lease *all = grant(&s, ANY, 60), *next;
	struct request request = request_of("cus=20; token=render-7"), more = request_for(24);

	ask(&s, ANY, request);
	release(s.arbiter, all->id);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 1);
	CHECK(next->request && request_equal(next->request, &request) && next->n_holders == 1);
	next = arbiter_commit(s.arbiter, next);
	CHECK(arbiter_plan_resize(s.arbiter, &caller, next->id, &more, &next, &s.result) == 0);
	CHECK(next->request && request_equal(next->request, &request));
	arbiter_commit(s.arbiter, next);
	check_promises(s.arbiter);
}

TEST(waiting_lease_cannot_be_resized_or_acknowledged)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *lease;

	CHECK(grant(&s, ANY, 60));
	lease = wait_for(&s, ANY, "any", 20);
	CHECK(resize_as(&s, lease, "cus=10") < 0);
	CHECK(s.result.kind == RESULT_INVALID_STATE && strstr(s.result.sentence, "waiting"));
	CHECK(arbiter_acknowledge(s.arbiter, lease->id, 1) == 0);
	CHECK(arbiter_acknowledge(s.arbiter, lease->id, 2) == -ERANGE);
}

TEST(waiting_lease_counts_for_max_leases)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);

	s.arbiter->settings->tenants[1].max_leases = (struct limit){ LIMIT_COUNT, 2 };
	CHECK(grant(&s, LAB, 60) && wait_for(&s, LAB, "any", 10));
	CHECK(!ask(&s, LAB, request_for(10)) && s.result.kind == RESULT_QUOTA_EXCEEDED);
	s.arbiter->settings->max_leases_per_user = 1;
	CHECK(wait_for(&s, ANY, "any", 10) && !ask(&s, ANY, request_for(10)));
	CHECK(s.result.kind == RESULT_TOO_MANY_LEASES);
}

TEST(request_above_what_is_left_of_the_quota_may_wait)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *held, *waits;

	s.arbiter->settings->tenants[1].max_cus = (struct limit){ LIMIT_COUNT, 30 };
	held = grant(&s, LAB, 20);
	CHECK(!grant(&s, LAB, 20) && s.result.kind == RESULT_QUOTA_EXCEEDED);
	waits = wait_for(&s, LAB, "any", 20);
	CHECK(waits->wait.over_quota && strstr(reason_of(s.arbiter, waits), "max-cus"));
	CHECK(grant(&s, ANY, 30)); /* it is in nobody's way */
	CHECK(grant_waiting(&s, NULL) == 0);
	release(s.arbiter, held->id);
	CHECK(grant_waiting(&s, NULL) == 1 && waits->state == STATE_GRANTED);
}

TEST(request_above_the_whole_quota_does_not_wait)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);

	s.arbiter->settings->tenants[1].max_cus = (struct limit){ LIMIT_COUNT, 30 };
	CHECK(!ask(&s, LAB, request_for(40)) && s.result.kind == RESULT_QUOTA_EXCEEDED);
	CHECK(grant(&s, LAB, 20));
	CHECK(!ask(&s, LAB, request_for(40)) && s.result.kind == RESULT_QUOTA_EXCEEDED);
}

TEST(process_is_not_attributed_to_a_waiting_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct observed row = { .pid = 1000 + ANY,
				.start_time = 1,
				.uid = ANY,
				.kfd_gpu_id = 1,
				.queues = 2,
				.unit = "u.service" };
	struct lease *all, *lease;

	s.arbiter->gpus[0].info.kfd_gpu_id = 1;
	all = grant(&s, VR, 60);
	lease = wait_for(&s, ANY, "any", 20);
	strcpy(lease->unit, row.unit);
	CHECK(arbiter_observe(s.arbiter, &row, 1) == 0);
	CHECK(lease->observed.processes == 0 && s.arbiter->gpus[0].observed.unmanaged.queues == 2);

	/* When the lease is granted, the process is attributed to it. */
	arbiter_holder_gone(s.arbiter, all->id);
	CHECK(arbiter_observe(s.arbiter, &row, 1) == 0 && grant_waiting(&s, NULL) == 1);
	CHECK(arbiter_observe(s.arbiter, &row, 1) == 0);
	CHECK(lease->observed.processes == 1 && s.arbiter->gpus[0].observed.unmanaged.queues == 0);
}

TEST(uncommitted_grant_keeps_waiting_and_later_leases_are_examined)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *all = grant(&s, ANY, 60), *next = NULL;
	struct lease *first = wait_for(&s, ANY, "any", 20), *second = wait_for(&s, ANY, "any", 20);

	release(s.arbiter, all->id);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 1 && next->id == first->id);
	lease_free(next); /* it could not be saved */
	CHECK(arbiter_plan_next(s.arbiter, &next) == 1 && next->id == second->id);
	arbiter_commit(s.arbiter, next);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 0 && first->state == STATE_WAITING);
	release(s.arbiter, second->id);
	CHECK(grant_waiting(&s, NULL) == 1 && first->state == STATE_GRANTED);
}

TEST(release_between_two_grants_restarts_the_round)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *busy[] = { grant(&s, VR, 30), grant(&s, LAB, 30) }, *next;
	struct lease *first = wait_for(&s, ANY, "any", 60);

	wait_for(&s, ANY, "any", 4);
	release(s.arbiter, busy[0]->id);
	CHECK(arbiter_plan_next(s.arbiter, &next) == 1 && next->id == first->id + 1);
	next = arbiter_commit(s.arbiter, next);
	release(s.arbiter, next->id);
	release(s.arbiter, busy[1]->id);
	CHECK(grant_waiting(&s, NULL) == 1 && first->state == STATE_GRANTED);
}

TEST(thousands_can_wait)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *all[] = { grant(&s, VR, 60), grant(&s, VR, 60) };
	struct request request = request_for(1);
	unsigned n = check_size(3000, 10000);
	uint64_t first = 0;

	s.arbiter->settings->max_leases = s.arbiter->settings->max_leases_per_user = 20000;
	for (unsigned i = 0; i < n; i++) {
		struct caller caller = caller_of(i % 2 ? ANY : LAB);
		struct lease *lease;

		request.wait_usec = 1;
		CHECK(arbiter_plan(s.arbiter, &caller, &request, &lease, &s.result) == 0);
		result_done(&s.result);
		lease->deadline_usec = i + 1;
		first = first ? first : lease->id;
		arbiter_add_holder(s.arbiter, arbiter_commit(s.arbiter, lease)->id);
	}
	CHECK(s.arbiter->n_waiting == n);
	CHECK(queue_position(s.arbiter, ledger_find(s.arbiter, first + n - 1)) == n);
	CHECK(queue_position(s.arbiter, ledger_find(s.arbiter, first + 1)) == n / 2 + 1);
	release(s.arbiter, all[0]->id);
	for (unsigned i = 0;; i++) { /* 8 processes at a time */
		struct lease *next;

		if (arbiter_plan_next(s.arbiter, &next) == 0) {
			CHECK(i == 8);
			break;
		}
		CHECK(next->id == first + 2 * i);
		arbiter_commit(s.arbiter, next);
	}
	arbiter_expire(s.arbiter, n - n / 3);
	CHECK(s.arbiter->n_waiting == n / 3);
	forget_touched(&s);
	check_promises(s.arbiter);
}

/* Where queues may cover CUs that no scan has shown, nothing is granted; and what could not be saved is
 * planned again. */
TEST(lease_that_fits_is_the_next_step_until_it_is_committed)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *fill = grant(&s, LAB, 60), *lease = wait_for(&s, VR, "0", 30);
	unsigned steps = ROOM_STEPS;
	struct move_set set;

	CHECK(arbiter_next_step(s.arbiter, 1, false, &steps, &set) == STEP_NONE);
	release(s.arbiter, fill->id);
	CHECK(arbiter_next_step(s.arbiter, 1, true, &steps, &set) == STEP_NONE);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(arbiter_next_step(s.arbiter, 1, false, &steps, &set) == STEP_GRANT);
		CHECK(set.n == 1 && set.n_first == 1 && set.next[0]->id == lease->id);
		move_set_done(&set);
		arbiter_step_failed(s.arbiter, STEP_GRANT);
	}
	CHECK(lease->state == STATE_WAITING);
	CHECK(arbiter_next_step(s.arbiter, 1, false, &steps, &set) == STEP_GRANT);
	CHECK(arbiter_commit(s.arbiter, TAKE_PTR(set.next[0])) == lease);
	CHECK(lease->state == STATE_GRANTED);
	CHECK(arbiter_next_step(s.arbiter, 1, false, &steps, &set) == STEP_NONE);
}

/* A request without wait-usec that waits for revoked leases, after a restart. */
TEST(lease_of_a_lost_reserve_ends_if_it_is_not_claimed)
{
	_cleanup_(scene_done) struct scene s = scene_of(1);
	struct lease *fill = grant(&s, LAB, 60), *lease, *other, *next;
	struct caller caller = caller_of(VR), another = caller_of(ANY);
	struct request request = request_for(30);
	struct request patient = request_of("cus=30; wait-usec=1000000");

	for (unsigned claimed = 0; claimed < 2; claimed++) {
		CHECK(fill && plan_new(s.arbiter, &caller, &request, true, &lease, &s.result) >= 0);
		lease = arbiter_commit(s.arbiter, lease);
		result_done(&s.result);
		CHECK(plan_new(s.arbiter, &caller, &patient, true, &other, &s.result) >= 0);
		other = arbiter_commit(s.arbiter, other);
		arbiter_add_holder(s.arbiter, other->id);
		result_done(&s.result);
		CHECK(lease->state == STATE_WAITING && other->state == STATE_WAITING);
		arbiter_await_claims(s.arbiter, 5000);
		CHECK(lease->claim_usec == 5000 && other->claim_usec == 0);
		CHECK(arbiter_next_deadline(s.arbiter) <= 5000);
		CHECK(ledger_find_unanswered(s.arbiter, &caller, &request) == lease);
		CHECK(!ledger_find_unanswered(s.arbiter, &caller, &patient));
		CHECK(!ledger_find_unanswered(s.arbiter, &another, &request));
		release(s.arbiter, other->id);
		if (claimed) { /* it is granted before its process asks again */
			release(s.arbiter, fill->id);
			CHECK(arbiter_plan_next(s.arbiter, &next) == 1);
			CHECK(arbiter_commit(s.arbiter, next) == lease);
			CHECK(ledger_find_unanswered(s.arbiter, &caller, &request) == lease);
		}
		arbiter_expire(s.arbiter, 4999);
		CHECK(lease->state != STATE_ENDING);
		arbiter_expire(s.arbiter, 5000);
		CHECK(lease->state == STATE_ENDING && lease->claim_usec == 0);
	}
}
