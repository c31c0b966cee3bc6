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
