/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Adaptable leases that pause for an exclusive lease of the shipped daemon. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

static void arrive(struct lend *s)
{
	lend_start(s, "activate-grace = 1h\n" GROW_NEVER, "kill");
	rig_write(&s->rig, "tenants.d/10-urgent.conf",
		  "[tenant urgent]\nmatch-user = root\nclass = realtime\nexclusive = ask\n");
	CHECK(is_fine(call(call_arbiter(s->bus, "Reload"))));
	s->rt = reserved(
		call(ask_for(s->bus, "cus=15 queues=2; start-inactive=1 exclusive=active")),
		"inactive");
	s->borrower = borrow(s->crowd);
}

/* The record with this generation, and whether its partition is paused. */
static struct live_record record_of(struct lend *s, uint64_t generation, bool paused)
{
	struct live_record record = await_generation(s->borrower.holder, generation);

	CHECK(record.record.generation == generation && record.record.n_partitions == 1);
	CHECK(record.partitions[0].flags == (paused ? GPUARB_RECORD_PAUSED : 0));
	return record;
}

static void pause_all(struct lend *s)
{
	struct live_record record;

	CHECK(is_fine(activate(s->bus, &s->rt)));
	CHECK(is_in_state(s->bus, &s->rt, "activating"));
	record = record_of(s, 2, true);
	CHECK(record.record.deadline_usec != UINT64_MAX);
	CHECK(is_fine(acknowledge(s->crowd, &s->borrower, 2)));
	await_record(s->rt.holder, GPUARB_RECORD_GRANTED);
}

FIXTURE(struct lend, s, arrive(s), rig_done(&s->rig));

TEST_WITH(an_adaptable_lease_pauses_and_resumes, struct lend *s)
{
	uint64_t since;

	CHECK(lease_number(s->bus, &s->borrower, "PausedCount") == 0);
	CHECK(lease_number(s->bus, &s->borrower, "PausedSince") == 0);
	pause_all(s);
	since = lease_number(s->bus, &s->borrower, "PausedSince");
	CHECK(since > 0 && since <= boottime_usec());
	CHECK(lease_number(s->bus, &s->borrower, "PausedCount") == 1);
	CHECK(lease_says(s->bus, s->borrower.path, "Reason", "paused"));
	CHECK(is_fine(deactivate(s->bus, &s->rt)));
	record_of(s, 3, false);
	CHECK(lease_number(s->bus, &s->borrower, "PausedSince") == 0);
	CHECK(lease_number(s->bus, &s->borrower, "PausedUsec") > 0);
}

TEST_WITH(a_pause_survives_a_crash_and_ends_afterwards, struct lend *s)
{
	uint64_t since;

	pause_all(s);
	since = lease_number(s->bus, &s->borrower, "PausedSince");
	rig_crash(&s->rig);
	CHECK(is_in_state(s->bus, &s->rt, "granted"));
	CHECK(lease_number(s->bus, &s->borrower, "PausedSince") == since);
	CHECK(lease_number(s->bus, &s->borrower, "Generation") == 2);
	CHECK(is_fine(deactivate(s->bus, &s->rt)));
	record_of(s, 3, false);
	CHECK(lease_number(s->bus, &s->borrower, "PausedCount") == 1);
}
