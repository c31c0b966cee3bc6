/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon moves adaptable leases in two steps for a request. */

#include "check.h"
#include "lend-live.h"

#include <sys/stat.h>

NEEDS(daemon_missing);

/* A GPU on which 15 CUs of one engine are free when `large` has left its 11, which fit only where
 * `small` has its 7; there are 8 free CUs for these. */
static struct live_lease large, small;

static sd_bus_message *ask_engine(sd_bus *bus, uint64_t wait_usec)
{
	return ask_for(bus, "cus=15 shader-engines=1 exact=1; wait-usec=%" PRIu64, wait_usec);
}

static struct live_lease fill(sd_bus *bus, unsigned cus)
{
	return granted(call(ask_for(bus, "cus=%u; class=guaranteed", cus)));
}

static struct live_lease take(sd_bus *bus, unsigned cus)
{
	return granted(call(ask_to_borrow(bus, cus, cus, 0)));
}

static void arrive(struct lend *s)
{
	struct live_lease lease;

	lend_start(s, GROW_NEVER "activate-grace = 1h\n", "report");
	fill(s->bus, 1);
	small = take(s->crowd, 7);
	lease = fill(s->bus, 7);
	large = take(s->crowd, 11);
	fill(s->bus, 7);
	granted(call(ask_engine(s->bus, 0)));
	close(lease.holder);
	AWAIT(s->bus, s->told.removed == 1);
}

static uint64_t moves(struct lend *s, const struct live_lease *lease)
{
	return lease_number(s->bus, lease, "Moves");
}

/* The holder of the lease uses the CUs that it has moved to. */
static void follow_move(struct lend *s, const struct live_lease *lease)
{
	CHECK(is_fine(acknowledge(s->crowd, lease,
				  await_generation(lease->holder, 2).record.generation)));
}

static void check_moved(struct lend *s, const struct live_lease *lease)
{
	struct book_part a = part_of(s->bus, lease), b = part_of(s->bus, &large),
			 c = part_of(s->bus, &small);

	CHECK(a.cus == 15 && b.cus == 11 && c.cus == 7);
	CHECK(apart(&a, &b) && apart(&a, &c) && apart(&b, &c));
	CHECK(moves(s, &large) == 1 && moves(s, &small) == 1);
}

TEST(reserve_without_wait_is_answered_when_leases_have_moved_in_two_steps)
{
	struct live_lease lease;
	struct answer answer;
	static struct lend s;

	arrive(&s);
	call_send(ask_engine(s.bus, 0), &answer);
	AWAIT(s.bus, s.told.added == 7);
	CHECK(!answer.came && lease_says(s.bus, s.told.last_added, "State", "waiting"));
	CHECK(lease_says(s.bus, s.told.last_added, "Reason", "move"));
	CHECK(moves(&s, &small) == 1 && moves(&s, &large) == 0);
	follow_move(&s, &small);
	follow_move(&s, &large);
	AWAIT(s.bus, answer.came);
	lease = granted(answer.m);
	check_moved(&s, &lease);
	rig_done(&s.rig);
}

/* 14 CUs of the engine with the small base are free, and 7 of another one. */
/* Nothing can be saved for the lease any more: a directory is in the place of its file. */
static void spoil(const struct rig *rig, const struct live_lease *lease)
{
	char name[64];

	snprintf(name, sizeof(name), "run/leases/%" PRIu64 ".json", lease->id);
	CHECK(unlink(rig_path(rig, name)) == 0 && mkdir(rig_path(rig, name), 0755) == 0);
}

/* `first` and `second` would leave two engines for the request, and go where it would be placed
 * otherwise. */
TEST(a_request_is_decided_anew_if_only_the_first_of_its_moves_was_saved)
{
	struct live_lease first, second, fillers[4], lease;
	struct book_part a, b;
	struct answer answer;
	static struct lend s;

	lend_start(&s, GROW_NEVER "activate-grace = 1h\n", "report");
	first = take(s.crowd, 4);
	fillers[0] = fill(s.bus, 11);
	second = take(s.crowd, 4);
	fillers[1] = fill(s.bus, 11);
	for (unsigned i = 2; i < 4; i++) {
		fill(s.bus, 3);
		fillers[i] = fill(s.bus, 12);
	}
	for (unsigned i = 0; i < 4; i++)
		close(fillers[i].holder);
	AWAIT(s.bus, s.told.removed == 4);
	spoil(&s.rig, &second);
	call_send(ask_for(s.bus, "shader-engines=2 cus-min=16"), &answer);
	follow_move(&s, &first); /* it may be granted some of the CUs that this one leaves */
	AWAIT(s.bus, answer.came);
	lease = granted(answer.m);
	CHECK(moves(&s, &first) == 1 && moves(&s, &second) == 0);
	a = part_of(s.bus, &lease);
	b = part_of(s.bus, &first);
	CHECK(apart(&a, &b));
	b = part_of(s.bus, &second);
	CHECK(apart(&a, &b));
	rig_done(&s.rig);
}

TEST(moves_continue_after_the_daemon_was_killed_between_the_steps)
{
	struct live_lease lease;
	static struct lend s;

	for (unsigned before = 0; before < 2; before++) {
		arrive(&s);
		for (unsigned i = 0; i < 5; i++) /* they have their turns before it */
			waiting(call(ask_for(s.bus, "cus=60; wait-usec=%" PRIu64, HOUR_USEC)));
		lease = waiting(call(ask_engine(s.bus, HOUR_USEC)));
		CHECK(moves(&s, &small) == 1);
		if (before)
			rig_crash(&s.rig);
		follow_move(&s, &small);
		if (!before) {
			await_generation(large.holder, 2);
			rig_crash(&s.rig);
		}
		follow_move(&s, &large);
		await_record(lease.holder, GPUARB_RECORD_GRANTED);
		check_moved(&s, &lease);
		rig_done(&s.rig);
	}
}

/* The first lease ends without an acknowledgement: its CUs are free, too. */
TEST(the_second_lease_moves_if_the_first_one_ends_between_the_steps)
{
	struct live_lease lease;
	static struct lend s;

	arrive(&s);
	lease = waiting(call(ask_engine(s.bus, HOUR_USEC)));
	close(small.holder);
	follow_move(&s, &large);
	CHECK(await_record(lease.holder, GPUARB_RECORD_GRANTED).partitions[0].cus == 15);
	rig_done(&s.rig);
}
