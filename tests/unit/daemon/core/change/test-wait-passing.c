/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* How often a waiting lease is passed, and the barrier after that. */

#include <time.h>

#include "check.h"
#include "seed.h"
#include "wait-rig.h"

/* A small request is granted and released again: one pass. False: it was refused. */
static bool pass(struct scene *s, uid_t uid, const char *gpu)
{
	struct lease *lease = grant_on(s, uid, gpu, 4);

	if (!lease)
		return false;
	release(s->arbiter, lease->id);
	CHECK(grant_waiting(s, NULL) == 0);
	return true;
}

/* A lease that waits for so many CUs, of which a realtime lease has 30. */
static struct lease *wait_behind(struct scene *s, uid_t uid, unsigned cus)
{
	CHECK(grant(s, VR, 30));
	return wait_for(s, uid, "any", cus);
}

static void pass_often(struct scene *s, uid_t uid, const char *gpu)
{
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++)
		CHECK(pass(s, uid, gpu));
}

/* The id of the lease that bars the first GPU; 0: none. */
static uint64_t barrier(const struct scene *s)
{
	return s->arbiter->gpus[0].barrier.rank.id;
}

FIXTURE(struct scene, s, *s = scene_of(1), scene_done(s));

TEST_WITH(waiting_lease_is_passed_at_most_the_maximum_number_of_times, struct scene *s)
{
	struct lease *busy = grant(s, VR, 30), *lease = wait_for(s, OTHER, "any", 60);

	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++) {
		forget_touched(s);
		CHECK(lease->wait.passed == i && barrier(s) == 0);
		CHECK(pass(s, ANY, "any"));
	}
	CHECK(lease->wait.passed == LEASE_PASSES_MAX && barrier(s) == lease->id);
	CHECK(!pass(s, ANY, "any") && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	CHECK(s->result.refusals[0].behind == lease->id && s->result.refusals[0].retry);
	CHECK(s->result.refusals[0].asked == 4 && s->result.refusals[0].free == 0);
	CHECK(lease->wait.passed == LEASE_PASSES_MAX);
	release(s->arbiter, busy->id);
	CHECK(grant_waiting(s, NULL) == 1 && lease->state == STATE_GRANTED);
	CHECK(barrier(s) == 0);
}

TEST_WITH(count_of_passes_is_saved_at_every_multiple, struct scene *s)
{
	struct lease *lease = wait_behind(s, OTHER, 60), *small;

	CHECK(touched_of(s, lease->id, NULL) == TOUCH_ADDED);
	for (unsigned i = 1; i <= LEASE_PASSES_MAX; i++) {
		bool saved = i % LEASE_PASSES_SAVED == 0;

		small = grant(s, ANY, 4);
		CHECK(touched_of(s, lease->id, NULL) == (saved ? TOUCH_SAVE : 0));
		release(s->arbiter, small->id);
	}
	CHECK(lease->wait.passed == LEASE_PASSES_MAX);
}

TEST_WITH(request_that_never_fits_is_refused_as_such_on_a_barred_gpu, struct scene *s)
{
	CHECK(grant(s, VR, 30) && wait_for(s, OTHER, "any", 60));
	pass_often(s, ANY, "any");
	CHECK(!ask(s, ANY, request_of("cus=4 queues=25")));
	CHECK(refused(s, RESULT_NEVER_FITS, REASON_QUEUES) && s->result.refusals[0].free == 24);
	CHECK(!ask(s, ANY, request_for(200)) && refused(s, RESULT_NEVER_FITS, REASON_CUS));
	CHECK(ask(s, ANY, request_for(4))->state == STATE_WAITING);
}

/* The GPUs that the lease bars, as bits. */
static unsigned barred_by(const struct scene *s, const struct lease *lease)
{
	unsigned gpus = 0;

	for (size_t i = 0; i < s->arbiter->n_gpus; i++)
		gpus |= s->arbiter->gpus[i].barrier.rank.id == lease->id ? 1U << i : 0;
	return gpus;
}

TEST(waiting_lease_bars_as_many_gpus_as_it_has_wants)
{
	_cleanup_(scene_done) struct scene s = scene_of(4);
	struct lease *one, *gang;

	for (unsigned i = 0; i < 4; i++) {
		char gpu[] = { (char)('0' + i), '\0' };

		CHECK(grant_on(&s, VR, gpu, i == 2 ? 8 : 20));
	}
	one = wait_for(&s, LAB, "any", 60);
	gang = ask(&s, OTHER, request_of("cus=60 | cus=60 gpu=3"));
	CHECK(gang->state == STATE_WAITING);
	for (unsigned i = 0; i < LEASE_PASSES_MAX; i++)
		CHECK(pass(&s, ANY, "3"));
	CHECK(barred_by(&s, one) == 1 << 2); /* it has the most free CUs */
	CHECK(barred_by(&s, gang) == (1 << 3 | 1));
	CHECK(pass(&s, ANY, "1") && !pass(&s, ANY, "0") && !pass(&s, ANY, "2"));
	CHECK(barred_by(&s, one) == 1 << 2);
}

TEST(gang_counts_as_one_pass)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *lease, *waiting;

	CHECK(grant_on(&s, VR, "0", 30) && grant_on(&s, VR, "1", 30));
	waiting = wait_for(&s, OTHER, "any", 60);
	lease = grant_as(&s, ANY, "cus=4 | cus=4");
	CHECK(lease && lease->n_partitions == 2 && waiting->wait.passed == 1);
}

TEST_WITH(grant_of_a_higher_class_is_no_pass, struct scene *s)
{
	struct lease *lease = wait_behind(s, OTHER, 60);

	for (unsigned i = 0; i < 3 * LEASE_PASSES_MAX; i++)
		CHECK(pass(s, LAB, "any"));
	CHECK(lease->wait.passed == 0);
	pass_often(s, ANY, "any");
	CHECK(!pass(s, ANY, "any") && pass(s, LAB, "any"));
}

TEST_WITH(grant_of_a_lower_class_is_a_pass_and_is_barred_too, struct scene *s)
{
	struct lease *first = wait_behind(s, OTHER, 60), *lease;

	lease = wait_for(s, LAB, "any", 60);
	pass_often(s, ANY, "any");
	CHECK(first->wait.passed == LEASE_PASSES_MAX && lease->wait.passed == LEASE_PASSES_MAX);
	CHECK(barrier(s) == lease->id);
	CHECK(s->arbiter->gpus[0].barrier.rank.class == CLASS_GUARANTEED);
	CHECK(!pass(s, ANY, "any") && !pass(s, LAB, "any"));
	arbiter_holder_gone(s->arbiter, lease->id); /* now the next lease bars it */
	forget_touched(s);
	CHECK(grant_waiting(s, NULL) == 0 && barrier(s) == first->id);
	CHECK(!pass(s, ANY, "any") && pass(s, LAB, "any"));
}

TEST_WITH(lease_behind_a_barrier_is_examined_when_the_barring_lease_ends, struct scene *s)
{
	struct lease *lease = wait_behind(s, OTHER, 60), *small;

	pass_often(s, ANY, "any");
	small = wait_for(s, OTHER, "any", 4);
	CHECK(strstr(reason_of(s->arbiter, small), "lease 2"));
	CHECK(lease->id == 2 && grant_waiting(s, NULL) == 0);
	arbiter_holder_gone(s->arbiter, lease->id);
	CHECK(grant_waiting(s, NULL) == 1 && small->state == STATE_GRANTED);
}

TEST_WITH(lease_that_waits_for_its_quota_bars_no_gpu, struct scene *s)
{
	struct lease *own, *lease, *small;

	CHECK(grant(s, VR, 20));
	own = grant(s, LAB, 10);
	lease = wait_for(s, LAB, "any", 40);
	pass_often(s, ANY, "any");
	small = wait_for(s, OTHER, "any", 4);
	CHECK(barrier(s) == lease->id);
	s->arbiter->settings->tenants[1].max_cus = (struct limit){ LIMIT_COUNT, 40 };
	CHECK(arbiter_drain(s->arbiter, "0", true) == 0 &&
	      arbiter_drain(s->arbiter, "0", false) == 0);
	CHECK(grant_waiting(s, NULL) == 1 && small->state == STATE_GRANTED);
	CHECK(lease->wait.over_quota && barrier(s) == 0 && pass(s, ANY, "any"));
	CHECK(lease->wait.passed == LEASE_PASSES_MAX);
	release(s->arbiter, own->id); /* it waits for CUs again, not for its quota */
	CHECK(grant_waiting(s, NULL) == 0 && !lease->wait.over_quota);
	CHECK(barrier(s) == lease->id && !pass(s, ANY, "any"));
}

/* The quota kept from it that the GPU has too little memory; it bars the other GPU, too. */
TEST(freed_quota_opens_a_gpu_that_could_never_take_the_barring_lease)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *own, *lease;

	s.arbiter->gpus[1].info.vram_bytes = UINT64_C(1) << 30;
	add_tenant(s.arbiter, "few", OTHER, CLASS_GUARANTEED)->max_queues =
		(struct limit){ LIMIT_COUNT, 2 };
	own = grant_on(&s, OTHER, "1", 4);
	CHECK(own && grant_on(&s, VR, "0", 40));
	lease = ask(&s, OTHER, request_of("cus=30 vram=2G queues=2"));
	CHECK(lease && lease->state == STATE_WAITING);
	pass_often(&s, ANY, "1");
	CHECK(barrier(&s) == 0 && s.arbiter->gpus[1].barrier.rank.id == lease->id);
	release(s.arbiter, own->id);
	CHECK(grant_waiting(&s, NULL) == 0);
	CHECK(barrier(&s) == lease->id && s.arbiter->gpus[1].barrier.rank.id == 0);
	CHECK(pass(&s, ANY, "1") && !pass(&s, ANY, "0"));
}

TEST_WITH(grant_that_exhausts_the_quota_of_a_barring_lease_opens_the_gpu, struct scene *s)
{
	struct lease *lease, *small;

	s->arbiter->settings->tenants[1].max_cus = (struct limit){ LIMIT_COUNT, 40 };
	CHECK(grant(s, VR, 30));
	lease = ask(s, LAB, request_of("cus=40; class=besteffort"));
	pass_often(s, ANY, "any");
	small = wait_for(s, OTHER, "any", 4);
	CHECK(grant_waiting(s, NULL) == 0 && barrier(s) == lease->id);
	CHECK(grant(s, LAB, 10)); /* guaranteed */
	CHECK(grant_waiting(s, NULL) == 1 && small->state == STATE_GRANTED &&
	      lease->wait.over_quota);
}

/* ---- users ------------------------------------------------------------------------- */

TEST_WITH(passes_by_the_same_user_do_not_count, struct scene *s)
{
	struct lease *lease = wait_behind(s, ANY, 60);

	pass_often(s, ANY, "any");
	CHECK(lease->wait.passed == 0 && pass(s, OTHER, "any") && lease->wait.passed == 1);
}

TEST(lease_that_leases_of_its_own_user_keep_out_bars_no_gpu)
{
	static const uid_t users[] = { ANY, LAB, VR };

	for (unsigned i = 0; i < 3; i++) {
		_cleanup_(scene_done) struct scene s = scene_of(1);
		struct lease *own = grant(&s, users[i], 15), *lease;
		struct request all = request_for(60);

		lease = ask(&s, users[i], all);
		CHECK(lease->state == STATE_WAITING);
		for (unsigned j = 0; j < 2 * LEASE_PASSES_MAX; j++)
			CHECK(pass(&s, OTHER, "any"));
		CHECK(lease->wait.passed == LEASE_PASSES_MAX && !lease->wait.may_bar);
		release(s.arbiter, own->id);
		CHECK(grant_waiting(&s, NULL) == 1 && lease->state == STATE_GRANTED);
	}
}

TEST_WITH(grant_to_the_user_of_a_barring_lease_opens_the_gpu, struct scene *s)
{
	struct request request = request_for(4);
	struct lease *busy = grant(s, VR, 30), *lease, *own;

	lease = wait_for(s, LAB, "any", 50);
	pass_often(s, ANY, "any");
	CHECK(!pass(s, ANY, "any") && barrier(s) == lease->id);
	request.class = CLASS_REALTIME; /* passes the barrier */
	s->arbiter->settings->tenants[1].class = CLASS_REALTIME;
	own = ask(s, LAB, request);
	CHECK(own && own->state == STATE_GRANTED && grant_waiting(s, NULL) == 0);
	CHECK(barrier(s) == lease->id); /* 50 fit beside 4 */
	request.wants[0].cus = 11;
	CHECK(ask(s, LAB, request) && grant_waiting(s, NULL) == 0);
	CHECK(barrier(s) == 0 && pass(s, ANY, "any"));
	release(s->arbiter, own->id + 1);
	CHECK(grant_waiting(s, NULL) == 0 && barrier(s) == lease->id);
	release(s->arbiter, own->id);
	release(s->arbiter, busy->id);
	CHECK(grant_waiting(s, NULL) == 1);
}

static void let_time_pass(struct scene *s, uint64_t now_usec)
{
	arbiter_expire(s->arbiter, now_usec);
	grant_waiting(s, NULL);
	queue_time_barriers(s->arbiter, now_usec);
}

/* A lease that waits without a deadline bars the first GPU from 1000 on. */
static struct lease *bar(struct scene *s, uid_t uid, const char *gpu, unsigned cus)
{
	struct lease *lease;

	CHECK(grant_on(s, VR, gpu, 30));
	lease = wait_for(s, uid, gpu, cus);
	lease->deadline_usec = UINT64_MAX;
	pass_often(s, ANY, gpu);
	let_time_pass(s, 1000);
	return lease;
}

TEST_WITH(gpu_is_barred_for_max_wait_and_then_open_for_three_times_as_long, struct scene *s)
{
	uint64_t max = 5000000;
	struct lease *lease, *next;

	s->arbiter->settings->tenants[2].max_wait_usec = max;
	lease = bar(s, OTHER, "any", 60);
	CHECK(arbiter_next_deadline(s->arbiter) == 1000 + max);
	let_time_pass(s, 1000 + max - 1);
	CHECK(!pass(s, ANY, "any"));
	forget_touched(s);
	let_time_pass(s, 1000 + max);
	CHECK(lease->touched == TOUCH_SAVE && lease->wait.passed == 0);
	for (unsigned i = 0; i < 2 * LEASE_PASSES_MAX; i++)
		CHECK(pass(s, ANY, "any"));
	next = wait_for(s, ANY, "any", 60);
	next->deadline_usec = UINT64_MAX;
	CHECK(arbiter_next_deadline(s->arbiter) == 1000 + 4 * max);
	let_time_pass(s, 1000 + 4 * max - 1);
	CHECK(pass(s, ANY, "any"));
	let_time_pass(s, 1000 + 4 * max);
	CHECK(lease->state == STATE_WAITING && !pass(s, ANY, "any"));
	CHECK(barrier(s) == lease->id);
}

TEST_WITH(waiting_lease_that_ends_before_max_wait_leaves_the_gpu_open_for_three_times_as_long,
	  struct scene *s)
{
	struct lease *lease = wait_behind(s, OTHER, 60), *next;

	pass_often(s, ANY, "any");
	let_time_pass(s, 1000);
	let_time_pass(s, 6000);
	CHECK(barrier(s) == lease->id);
	arbiter_holder_gone(s->arbiter, lease->id);
	let_time_pass(s, 11000);
	forget_touched(s);
	next = wait_for(s, OTHER, "any", 60); /* its passes begin anew, but not its time */
	next->deadline_usec = UINT64_MAX;
	pass_often(s, ANY, "any");
	CHECK(next->wait.may_bar && pass(s, ANY, "any"));
	CHECK(arbiter_next_deadline(s->arbiter) == 41000);
	let_time_pass(s, 41000);
	CHECK(barrier(s) == next->id && !pass(s, ANY, "any"));
	CHECK(arbiter_next_deadline(s->arbiter) == 41000 + TENANT_MAX_WAIT_USEC);
}

TEST_WITH(gpu_is_not_opened_while_the_round_of_the_lease_that_bars_it_is_paused, struct scene *s)
{
	struct lease *lease;

	lease = bar(s, LAB, "any", 50);
	s->arbiter->settings->tenants[1].class = CLASS_REALTIME;
	/* It passes the barrier. */
	CHECK(ask(s, LAB, request_of("cus=4; class=realtime"))->state == STATE_GRANTED);
	s->arbiter->round_steps = 0;
	let_time_pass(s, 2000);
	CHECK(s->arbiter->paused && barrier(s) == 0);
	s->arbiter->round_steps = UINT64_MAX;
	let_time_pass(s, 3000);
	CHECK(barrier(s) == lease->id);
	CHECK(arbiter_next_deadline(s->arbiter) == 1000 + TENANT_MAX_WAIT_USEC);
}

TEST_WITH(barrier_of_a_preemption_does_not_shorten_the_time_that_a_gpu_is_open, struct scene *s)
{
	uint64_t max = TENANT_MAX_WAIT_USEC;
	struct lease *lease;

	lease = bar(s, OTHER, "any", 60);
	let_time_pass(s, 1000 + max);
	CHECK(arbiter_next_deadline(s->arbiter) == 1000 + 4 * max);
	lease->wait.preempts = 1;
	queue_find_barriers(s->arbiter);
	let_time_pass(s, 2000 + max);
	CHECK(barrier(s) == lease->id);
	lease->wait.preempts = 0;
	queue_find_barriers(s->arbiter);
	let_time_pass(s, 3000 + max);
	CHECK(barrier(s) == 0);
	CHECK(arbiter_next_deadline(s->arbiter) == 1000 + 4 * max);
}

/* An update examines no lease before it is known which queues cover CUs. */
TEST(gpu_is_not_opened_before_the_lease_that_bars_it_is_examined_again)
{
	_cleanup_(scene_done) struct scene s = scene_of(2);
	struct lease *lease;

	lease = bar(&s, OTHER, "0", 60);
	CHECK(grant_on(&s, OTHER, "1", 4) && barrier(&s) == 0);
	queue_time_barriers(s.arbiter, 2000);
	let_time_pass(&s, 3000);
	CHECK(barrier(&s) == lease->id);
	CHECK(arbiter_next_deadline(s.arbiter) == 1000 + TENANT_MAX_WAIT_USEC);
}

TEST_WITH(lease_that_is_granted_leaves_the_next_barrier_its_whole_time, struct scene *s)
{
	uint64_t max = TENANT_MAX_WAIT_USEC;
	struct lease *busy = grant(s, VR, 30), *first, *second;

	first = wait_for(s, OTHER, "any", 60);
	second = wait_for(s, LAB, "any", 50);
	first->deadline_usec = second->deadline_usec = UINT64_MAX;
	pass_often(s, ANY, "any");
	let_time_pass(s, 1000);
	CHECK(barrier(s) == second->id);
	release(s->arbiter, busy->id);
	let_time_pass(s, 1000 + max - 1);
	CHECK(second->state == STATE_GRANTED && first->state == STATE_WAITING);
	CHECK(barrier(s) == first->id);
	CHECK(arbiter_next_deadline(s->arbiter) == 1000 + 2 * max - 1);
}

/* All that the daemon does at this time. Then nothing is due. */
static void turn(struct scene *s, uint64_t now_usec)
{
	unsigned steps = ROOM_STEPS;
	struct move_set set;

	CHECK(arbiter_next_step(s->arbiter, now_usec, false, &steps, &set) == STEP_NONE);
	CHECK(arbiter_next_deadline(s->arbiter) > now_usec);
}

TEST_WITH(barrier_that_passes_to_a_lease_with_a_shorter_max_wait_ends_in_the_same_turn,
	  struct scene *s)
{
	struct lease *first = wait_behind(s, OTHER, 60), *second;

	second = wait_for(s, LAB, "any", 50);
	first->deadline_usec = second->deadline_usec = UINT64_MAX;
	s->arbiter->settings->tenants[2].max_wait_usec = 5000000;
	pass_often(s, ANY, "any");
	turn(s, 1000);
	CHECK(barrier(s) == second->id);
	arbiter_holder_gone(s->arbiter, second->id);
	turn(s, 6000000);
	CHECK(barrier(s) == 0 && first->wait.passed == 0 && pass(s, ANY, "any"));
}

TEST_WITH(gpu_that_was_barred_for_no_time_is_open_for_none, struct scene *s)
{
	struct lease *lease = wait_behind(s, OTHER, 60);

	pass_often(s, ANY, "any");
	turn(s, 1000);
	CHECK(barrier(s) == lease->id);
	arbiter_holder_gone(s->arbiter, lease->id);
	turn(s, 1000);
	CHECK(s->arbiter->gpus[0].barrier.open_usec == 0);
}

TEST_WITH(users_take_turns_in_the_queue, struct scene *s)
{
	struct lease *all = grant(s, VR, 60), *others[3];
	uint64_t order[6], expected[6];

	for (unsigned i = 0; i < 3; i++)
		expected[2 * i] = wait_for(s, ANY, "any", 10)->id;
	for (unsigned i = 0; i < 3; i++)
		expected[2 * i + 1] = (others[i] = wait_for(s, OTHER, "any", 10))->id;
	for (unsigned i = 0; i < 3; i++)
		CHECK(queue_position(s->arbiter, others[i]) == 2 * i + 2);
	release(s->arbiter, all->id);
	CHECK(grant_waiting(s, order) == 6 && memcmp(order, expected, sizeof(order)) == 0);
}

TEST_WITH(a_user_that_comes_later_does_not_rank_before_turns_that_are_over, struct scene *s)
{
	struct lease *all = grant(s, VR, 45), *some = grant(s, ANY, 15), *late;

	wait_for(s, ANY, "any", 15);
	wait_for(s, ANY, "any", 15);
	wait_for(s, ANY, "any", 15);
	release(s->arbiter, some->id);
	CHECK(grant_waiting(s, NULL) == 1);
	late = wait_for(s, OTHER, "any", 15);
	CHECK(queue_position(s->arbiter, late) == 2 && all->state == STATE_GRANTED);
}

/* ---- resize ------------------------------------------------------------------------ */

static bool resize(struct scene *s, const struct lease *lease, unsigned cus, unsigned queues)
{
	if (resize_as(s, lease, "cus=%u queues=%u", cus, queues) < 0)
		return false;
	CHECK(arbiter_acknowledge(s->arbiter, lease->id, lease->generation) == 0);
	CHECK(grant_waiting(s, NULL) == 0);
	return true;
}

TEST_WITH(resize_that_takes_more_is_a_pass, struct scene *s)
{
	struct lease *lease = grant(s, ANY, 8), *waiting = wait_behind(s, OTHER, 60);

	CHECK(resize(s, lease, 12, 2) && waiting->wait.passed == 1);
	CHECK(resize(s, lease, 4, 2) && waiting->wait.passed == 1);
	CHECK(resize(s, lease, 4, 3) && waiting->wait.passed == 2);
	CHECK(resize(s, lease, 4, 3) && resize(s, lease, 4, 2) && waiting->wait.passed == 2);
}

TEST_WITH(resize_on_a_barred_gpu_can_only_shrink, struct scene *s)
{
	struct lease *lease = grant(s, ANY, 8), *waiting = wait_behind(s, OTHER, 60);

	pass_often(s, ANY, "any");
	CHECK(!resize(s, lease, 12, 2) && refused(s, RESULT_NO_CAPACITY, REASON_CUS));
	CHECK(s->result.refusals[0].behind == waiting->id);
	CHECK(!resize(s, lease, 8, 3));
	CHECK(resize(s, lease, 8, 2) && resize(s, lease, 4, 2));
	CHECK(waiting->wait.passed == LEASE_PASSES_MAX && !resize(s, lease, 8, 2));
}

TEST_WITH(resize_on_a_barred_gpu_takes_no_other_cu, struct scene *s)
{
	struct lease *lease, *busy = grant(s, VR, 15), *waiting;

	lease = grant_as(s, ANY, "cus=9 shader-engines=3");
	waiting = wait_for(s, OTHER, "any", 60);
	pass_often(s, ANY, "any");
	CHECK(lease->partitions[0].count == 9 && busy);
	/* As many CUs in one engine would be other CUs. */
	CHECK(resize_as(s, lease, "cus=9 shader-engines=1") < 0);
	CHECK(refused(s, RESULT_NO_CAPACITY, REASON_SHAPE) && s->result.refusals[0].free == 9);
	arbiter_holder_gone(s->arbiter, waiting->id);
	CHECK(resize_as(s, lease, "cus=9 shader-engines=1") == 0);
}

/* ---- starvation -------------------------------------------------------------------- */

struct stream {
	struct scene s;
	unsigned seed;
	uint64_t running[64];
	size_t n_running;
};

static void end_one(struct stream *stream)
{
	size_t i = stream->n_running ? (size_t)rand_r(&stream->seed) % stream->n_running : 0;

	if (stream->n_running == 0)
		return;
	release(stream->s.arbiter, stream->running[i]);
	stream->running[i] = stream->running[--stream->n_running];
}

static void start_one(struct stream *stream)
{
	struct request request = request_for(4 + 4 * ((unsigned)rand_r(&stream->seed) % 4));
	struct lease *lease;

	request.wait_usec = (unsigned)rand_r(&stream->seed) % 2;
	lease = reserve(stream->s.arbiter, ANY, &request, &stream->s.result);
	if (lease)
		stream->running[stream->n_running++] = lease->id;
}

/* Small requests arrive faster than their leases end. Returns how many steps a large one waits. */
static unsigned steps_until_granted(unsigned seed)
{
	struct stream stream = { .s = scene_of(2), .seed = seed };
	struct lease *large;
	unsigned steps = 0;

	for (unsigned i = 0; i < 30; i++)
		start_one(&stream);
	large = wait_for(&stream.s, OTHER, "any", 60);
	for (; large->state == STATE_WAITING; steps++) {
		CHECK(steps < 10000 && large->wait.passed <= LEASE_PASSES_MAX);
		if (stream.n_running < 40)
			start_one(&stream);
		if (steps % 2)
			end_one(&stream);
		grant_waiting(&stream.s, NULL);
	}
	scene_done(&stream.s);
	return steps;
}

TEST(large_waiting_lease_does_not_starve_behind_small_requests)
{
	unsigned seed = SEED_OF_RUN("SEED"), most = 0;

	for (unsigned i = 0; i < check_rounds(12, 1000); i++) {
		unsigned steps = steps_until_granted(seed_nth(seed, i));

		most = steps > most ? steps : most;
	}
	printf("granted after %u steps at the most\n", most);
}
