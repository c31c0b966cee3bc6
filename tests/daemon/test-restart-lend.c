/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A daemon that is killed or restarted while leases lend, borrow, shrink and are revoked: the next one
 * continues from there. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

static struct book before, after;

static void arrive(struct lend *s, const char *settings)
{
	lend_start(s, settings, "kill");
	s->rt = keep_inactive(s->bus, 15);
	s->borrower = borrow(s->crowd);
}

/* All properties of leases and GPUs are the same after the restart. */
static void check_restart(struct lend *s, void (*restart)(struct rig *rig))
{
	book_read(s->bus, &before);
	restart(&s->rig);
	book_read(s->bus, &after);
	CHECK(before.n_leases == after.n_leases);
	for (unsigned i = 0; i < before.n_leases; i++) {
		const struct book_lease *a = &before.leases[i], *b = book_find(&after, a->id);

		CHECK(b && strcmp(a->state, b->state) == 0 && strcmp(a->reason, b->reason) == 0);
		CHECK(a->generation == b->generation && a->deadline == b->deadline);
		CHECK(book_same_parts(a, b->parts, b->n_parts));
	}
	CHECK(before.gpus[0].cus_free == after.gpus[0].cus_free);
	CHECK(before.gpus[0].slots_free == after.gpus[0].slots_free);
}

static void (*const restarts[])(struct rig *rig) = { rig_crash, rig_restart };

#define PATIENT "activate-grace = 1h\n"

/* ---- each state -------------------------------------------------------------------------- */

TEST(an_activation_continues_after_a_restart)
{
	struct live_record record;
	static struct lend s;

	for (size_t i = 0; i < ARRAY_SIZE(restarts); i++) {
		arrive(&s, PATIENT GROW_NEVER);
		CHECK(is_fine(activate(s.bus, &s.rt)));
		await_generation(s.borrower.holder, 2);
		check_restart(&s, restarts[i]);
		CHECK(is_in_state(s.bus, &s.rt, "activating"));
		/* The record is sent again: the holder may not have received it. */
		record = await_generation(s.borrower.holder, 2);
		CHECK(record.partitions[0].cus == 45 && record.record.generation == 2);
		CHECK(record.record.deadline_usec != UINT64_MAX);
		CHECK(is_fine(acknowledge(s.crowd, &s.borrower, 2)));
		await_record(s.rt.holder, GPUARB_RECORD_GRANTED);
		book_read(s.bus, &after);
		book_check(&after, true);
		rig_done(&s.rig);
	}
}

FIXTURE(struct lend, s, , rig_done(&s->rig));

TEST_WITH(borrowers_receive_their_previous_mask_after_a_restart, struct lend *s)
{
	struct book_part first, last;

	arrive(s, PATIENT GROW_SOON);
	first = part_of(s->bus, &s->borrower);
	CHECK(is_fine(activate(s->bus, &s->rt)));
	follow_until(s->crowd, &s->borrower, 45);
	rig_down(&s->rig);
	close(s->rt.holder);
	rig_up(&s->rig);
	follow_until(s->crowd, &s->borrower, LEND_CUS);
	last = part_of(s->bus, &s->borrower);
	CHECK(same_part(&first, &last));
}

TEST(a_revocation_continues_after_a_restart)
{
	struct live_record record;
	static struct lend s;

	for (size_t i = 0; i < ARRAY_SIZE(restarts); i++) {
		arrive(&s, PATIENT GROW_NEVER);
		CHECK(is_fine(take_away(s.bus, &s.borrower, HOUR_USEC, "maintenance")));
		check_restart(&s, restarts[i]);
		CHECK(is_in_state(s.bus, &s.borrower, "revoking"));
		CHECK(is_fine(take_away(s.bus, &s.borrower, 2000, "now")));
		record = await_record(s.borrower.holder, GPUARB_RECORD_ENDING);
		CHECK(strstr(record.record.reason, "now"));
		AWAIT(s.bus, s.told.removed == 1);
		rig_done(&s.rig);
	}
}

TEST_WITH(a_revocation_whose_deadline_passed_during_the_restart_ends, struct lend *s)
{
	struct live_record record;

	arrive(s, PATIENT GROW_NEVER);
	CHECK(is_fine(take_away(s->bus, &s->borrower, 500000, "maintenance")));
	rig_down(&s->rig);
	record = await_record(s->borrower.holder, GPUARB_RECORD_REVOKING);
	await_time(record.record.deadline_usec);
	rig_up(&s->rig);
	record = await_record(s->borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(strstr(record.record.reason, "maintenance"));
	CHECK(record.record.cause == GPUARB_RECORD_ENDED);
	AWAIT(s->bus, s->told.removed == 1);
}

TEST_WITH(disturbances_survive_a_restart, struct lend *s)
{
	struct live_lease other;

	arrive(s, PATIENT GROW_NEVER);
	CHECK(is_fine(activate(s->bus, &s->rt)));
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	other = reserved(call(ask_for(s->bus, "cus=15 queues=2; wait-usec=%" PRIu64, HOUR_USEC)),
			 "waiting");
	CHECK(lease_number(s->bus, &s->rt, "Disturbances") == 1);
	rig_crash(&s->rig);
	CHECK(lease_number(s->bus, &s->rt, "Disturbances") == 1);
	CHECK(is_in_state(s->bus, &other, "activating"));
}

/* ---- during the restart ---------------------------------------------------------------- */

TEST_WITH(a_borrower_deadline_that_passed_during_the_restart_is_enforced, struct lend *s)
{
	struct live_record record;

	arrive(s, "activate-grace = 500ms\nenforce-delay = 1ms\n" GROW_NEVER);
	CHECK(is_fine(activate(s->bus, &s->rt)));
	rig_down(&s->rig);
	record = await_generation(s->borrower.holder, 2);
	await_time(record.record.deadline_usec);
	rig_up(&s->rig);
	record = await_record(s->borrower.holder, GPUARB_RECORD_ENDING);
	CHECK(strstr(record.record.reason, "back"));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
	AWAIT(s->bus, s->told.removed == 1);
}

TEST_WITH(an_unanswered_request_ends_with_the_daemon, struct lend *s)
{
	struct answer answer;

	arrive(s, PATIENT GROW_NEVER);
	call_send(ask_for(s->bus, "cus=15 queues=2"), &answer);
	AWAIT(s->bus, s->told.added == 3);
	rig_crash(&s->rig);
	AWAIT(s->bus, answer.came);
	CHECK(is_error(answer.m, SD_BUS_ERROR_NO_REPLY, ""));
	book_read(s->bus, &after);
	while (after.n_leases > 2)
		book_read(s->bus, &after);
	CHECK(lease_number(s->bus, &s->borrower, "Deadline") == UINT64_MAX);
}

/* ---- moves ------------------------------------------------------------------------------- */

static sd_bus_message *ask_engine(sd_bus *bus, const char *method)
{
	return with_request(call_arbiter(bus, method),
			    "shader-engines=1 queues=2; wait-usec=%" PRIu64, HOUR_USEC);
}

static struct live_lease *find_moved(struct lend *s, struct live_lease *leases, size_t n)
{
	struct live_lease *moved = NULL;

	for (size_t i = 0; i < n; i++)
		if (lease_number(s->bus, &leases[i], "Moves") > 0)
			moved = &leases[i];
	CHECK(moved);
	return moved;
}

/* An adaptable lease of 4 CUs stands in each engine: one of them moves for a realtime lease. */
TEST(move_and_the_lease_that_it_is_for_survive_a_restart)
{
	struct live_lease leases[4], fill[4], rt, *moved;
	sd_bus_message *reply;
	static struct lend s;
	struct book_part old;
	const char *result;

	for (size_t i = 0; i < ARRAY_SIZE(restarts); i++) {
		arrive(&s, PATIENT GROW_NEVER);
		CHECK(is_fine(call(release(s.bus, s.rt.path))));
		CHECK(is_fine(call(release(s.crowd, s.borrower.path))));
		for (size_t j = 0; j < 4; j++) {
			leases[j] = granted(call(ask_to_borrow(s.crowd, 4, 4, 0)));
			fill[j] = reserve(s.bus, 11);
		}
		for (size_t j = 0; j < 4; j++)
			CHECK(is_fine(call(release(s.bus, fill[j].path))));

		reply = call(ask_engine(s.bus, "Plan"));
		CHECK(sd_bus_message_read(reply, "s", &result) > 0);
		CHECK(strcmp(result, "granted") == 0);
		sd_bus_message_unref(reply);
		for (size_t j = 0; j < 4; j++)
			CHECK(lease_number(s.bus, &leases[j], "Moves") == 0);

		rt = waiting(call(ask_engine(s.bus, "Reserve")));
		CHECK(is_in_state(s.bus, &rt, "activating"));
		moved = find_moved(&s, leases, 4);
		old = part_of(s.bus, moved);
		check_restart(&s, restarts[i]);
		CHECK(lease_number(s.bus, moved, "Moves") == 1 && old.cus == 4);
		await_generation(moved->holder, 2);
		CHECK(is_fine(acknowledge(s.crowd, moved, 2)));
		await_record(rt.holder, GPUARB_RECORD_GRANTED);
		book_read(s.bus, &after);
		book_check(&after, true);
		rig_done(&s.rig);
	}
}
