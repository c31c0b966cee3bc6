/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kills the shipped daemon at the n-th visible step of an operation, for every n, and starts it
 * again: then its ledger must agree with what clients were told. GPUARB_LONG: kills that start at
 * every step, too.
 */

#include "check.h"
#include "crash-rig.h"

NEEDS(daemon_missing);

#define ONE_GPU "--simulate=radeon-vii"
#define TWO_GPUS "--simulate=radeon-vii,radeon-vii"

/* ---- operations ------------------------------------------------------------------------- */

static sd_bus_message *ask_gang(sd_bus *bus)
{
	return ask_for(bus, "cus=15 | cus=30");
}

static sd_bus_message *ask_waiting(sd_bus *bus, unsigned cus, uint64_t usec)
{
	return ask_for(bus, "cus=%u; wait-usec=%" PRIu64, cus, usec);
}

static void hold_all(struct stage *stage)
{
	take_grant(&stage->known[0], crash_try(ask(stage->bus, "Reserve", 60)));
}

static void hold_some(struct stage *stage)
{
	take_grant(&stage->known[0], crash_try(ask(stage->bus, "Reserve", 30)));
}

static void hold_all_and_wait(struct stage *stage)
{
	hold_all(stage);
	take_grant(&stage->known[1], crash_try(ask_waiting(stage->bus, 60, UINT64_MAX)));
	CHECK(stage->known[1].told == WAITING);
}

static void reserve_one(struct stage *stage)
{
	take_grant(&stage->known[0], crash_try(ask(stage->bus, "Reserve", 15)));
}

static void reserve_token(struct stage *stage)
{
	take_grant(&stage->known[0], crash_try(ask_token(stage->bus, 15, "crash")));
}

/* The repeated request finds the lease, and never makes a second one. */
static void repeat_token(struct stage *stage)
{
	struct known again = { .lease.holder = -1 };

	take_grant(&again, crash_try(ask_token(stage->bus, 15, "crash")));
	CHECK(again.told == GRANTED);
	CHECK(stage->known[0].told == NOTHING || stage->known[0].lease.id == again.lease.id);
	book_read(stage->bus, &stage->book);
	CHECK(stage->book.n_leases == 1);
	book_check(&stage->book, true);
	close(again.lease.holder);
}

/* The token does not find a lease that was released. */
static void repeat_token_anew(struct stage *stage)
{
	uint64_t before = stage->known[0].told == GONE ? stage->known[0].lease.id : 0;
	struct known again = { .lease.holder = -1 };

	take_grant(&again, crash_try(ask_token(stage->bus, 15, "crash")));
	CHECK(again.told == GRANTED && again.lease.id != before);
	close(again.lease.holder);
}

static void reserve_gang(struct stage *stage)
{
	take_grant(&stage->known[0], crash_try(ask_gang(stage->bus)));
}

static void reserve_waiting(struct stage *stage)
{
	take_grant(&stage->known[1], crash_try(ask_waiting(stage->bus, 60, UINT64_MAX)));
}

static void reserve_until_it_expires(struct stage *stage)
{
	stage->known[1].expires = true;
	take_grant(&stage->known[1], crash_try(ask_waiting(stage->bus, 60, 100000)));
	if (stage->known[1].told == WAITING)
		await_news(stage, &stage->known[1]);
}

static void bind_one(struct stage *stage)
{
	struct known *known = &stage->known[0];

	known->bound = crash_done(
		with(call_lease(stage->bus, known->lease.path, "Bind"), "h", stage->pidfd));
}

static void hold_with_process(struct stage *stage)
{
	hold_some(stage);
	stage->process = idler(0, &stage->pidfd);
}

/* The bound process alone keeps the lease alive. */
static void close_and_end(struct stage *stage)
{
	struct known *known = &stage->known[0];

	close(known->lease.holder);
	known->lease.holder = -1;
	ping(stage);
	CHECK(!known->bound || lease_exists(stage->bus, known->lease.path));
	end_process(stage->process);
	close(stage->pidfd);
}

static void resize_to(struct stage *stage, unsigned cus)
{
	struct known *known = &stage->known[0];
	bool told = crash_done(resize(stage->bus, known->lease.path, cus));

	known->resized = true;
	hear(known);
	if (told)
		CHECK(known->generation == 2 && known->parts[0].cus == cus);
}

static void grow(struct stage *stage)
{
	resize_to(stage, 45);
}

static void shrink(struct stage *stage)
{
	resize_to(stage, 15);
}

static void hold_and_shrink(struct stage *stage)
{
	hold_some(stage);
	shrink(stage);
}

static void acknowledge(struct stage *stage)
{
	struct known *known = &stage->known[0];

	known->acknowledged = crash_done(
		with(call_lease(stage->bus, known->lease.path, "Acknowledge"), "t", UINT64_C(2)));
}

static void check_acknowledged(struct stage *stage)
{
	unsigned free = stage->book.gpus[0].cus_free;

	CHECK(stage->known[0].acknowledged ? free == 45 : free == 45 || free == 30);
}

static void release_one(struct stage *stage)
{
	if (crash_done(release(stage->bus, stage->known[0].lease.path)))
		stage->known[0].told = GONE;
}

static void release_for_another(struct stage *stage)
{
	release_one(stage);
	if (stage->known[0].told == GONE)
		await_news(stage, &stage->known[1]);
}

/* The waiting lease is granted when the other one is removed. */
static void await_grant(struct stage *stage)
{
	struct known *known = &stage->known[1];

	while (!book_find(&stage->book, stage->known[0].lease.id) && known->told == WAITING)
		await_news(stage, known);
	CHECK(known->told == GRANTED || stage->known[0].told != GONE);
}

static void await_expiry(struct stage *stage)
{
	struct known *known = &stage->known[1];

	while (known->told == WAITING)
		await_news(stage, known);
	CHECK(known->told == NOTHING ||
	      (known->told == GONE && known->cause == GPUARB_RECORD_TIMED_OUT));
}

static void close_last(struct stage *stage)
{
	close(stage->known[0].lease.holder);
	stage->known[0].lease.holder = -1;
	stage->known[0].told = GONE;
	AWAIT(stage->bus, stage->gone || stage->heard.removed > 0);
}

static void drain_one(struct stage *stage)
{
	stage->drained = crash_done(drain(stage->bus, "0"));
}

static void undrain(struct stage *stage)
{
	CHECK(!stage->drained || stage->book.gpus[0].draining);
	CHECK(is_fine(call(with(call_arbiter(stage->bus, "Undrain"), "s", "0"))));
}

/* ---- the tests ---------------------------------------------------------------------------- */

TEST_CASE(a_crash_during_reserve_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .run = reserve_one));
TEST_CASE(a_reserve_with_a_token_can_be_repeated_after_a_crash,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .run = reserve_token, .after = repeat_token));
TEST_CASE(a_crash_during_release_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_some, .run = release_one));
TEST_CASE(a_token_finds_no_released_lease_after_a_crash,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = reserve_token, .run = release_one,
			   .after = repeat_token_anew));
TEST_CASE(a_crash_during_reserve_of_two_gpus_is_recovered,
	  CRASH_EVERYWHERE(.hardware = TWO_GPUS, .run = reserve_gang));
TEST_CASE(a_crash_during_a_waiting_reserve_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_all, .run = reserve_waiting));
TEST_CASE(a_crash_during_bind_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_with_process, .run = bind_one,
			   .after = close_and_end));
TEST_CASE(a_crash_during_a_resize_to_more_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_some, .run = grow));
TEST_CASE(a_crash_during_a_resize_to_less_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_some, .run = shrink));
TEST_CASE(a_crash_during_acknowledge_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_and_shrink, .run = acknowledge,
			   .after = check_acknowledged));
TEST_CASE(a_crash_at_the_end_of_the_last_holder_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_some, .run = close_last));
TEST_CASE(a_crash_during_the_grant_after_a_release_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_all_and_wait,
			   .run = release_for_another, .after = await_grant));
TEST_CASE(a_crash_during_drain_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .run = drain_one, .after = undrain));
TEST_CASE(a_crash_at_the_deadline_of_a_waiting_lease_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_all, .run = reserve_until_it_expires,
			   .after = await_expiry));
TEST_CASE(a_crash_during_the_start_is_recovered,
	  CRASH_EVERYWHERE(.hardware = ONE_GPU, .before = hold_all_and_wait));
