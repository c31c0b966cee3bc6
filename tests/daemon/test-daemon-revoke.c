/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Leases that an administrator revokes with notice. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

static void arrive(struct lend *s)
{
	lend_start(s, "activate-grace = 1h\n" GROW_SOON, "report");
	s->lease = granted(call(ask_for(s->crowd, "cus=15 queues=2")));
}

static bool is_free_again(struct lend *s)
{
	static struct book book;

	AWAIT(s->bus, s->told.removed > 0);
	book_read(s->bus, &book);
	return book_is_empty(&book);
}

/* ---- notice ---------------------------------------------------------------------------------- */

FIXTURE(struct lend, s, arrive(s), rig_done(&s->rig));

TEST_WITH(a_holder_gets_reason_and_deadline_and_may_acknowledge_before, struct lend *s)
{
	struct live_record record;
	uint64_t before, after;

	before = boottime_usec();
	CHECK(is_fine(take_away(s->bus, &s->lease, HOUR_USEC, "the rack is moved")));
	after = boottime_usec();
	record = await_record(s->lease.holder, GPUARB_RECORD_REVOKING);
	CHECK(record.record.deadline_usec >= before + HOUR_USEC);
	CHECK(record.record.deadline_usec <= after + HOUR_USEC);
	CHECK(record.record.deadline_usec == lease_number(s->bus, &s->lease, "Deadline"));
	CHECK(strstr(record.record.reason, "the rack is moved"));
	CHECK(record.record.n_partitions == 1 && record.partitions[0].cus == 15);
	CHECK(lease_says(s->bus, s->lease.path, "State", "revoking"));
	CHECK(lease_says(s->bus, s->lease.path, "Reason", "the rack is moved"));
	CHECK(gpu_number(s->bus, "CusFree") == 45); /* until then it has what it had */

	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation - 1)));
	CHECK(is_in_state(s->bus, &s->lease, "revoking")); /* of a change before */
	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation)));
	record = await_record(s->lease.holder, GPUARB_RECORD_ENDING);
	CHECK(strstr(record.record.reason, "the rack is moved"));
	CHECK(!next_record(s->lease.holder, &record));
	CHECK(is_free_again(s));
}

/* ---- callers and states ------------------------------------------------------------------ */

TEST(a_revoking_lease_can_only_be_released)
{
	static struct lend s;

	for (unsigned closed = 0; closed < 2; closed++) {
		arrive(&s);
		CHECK(is_fine(take_away(s.bus, &s.lease, HOUR_USEC, "")));
		CHECK(is_error(
			call(with_request(call_lease(s.crowd, s.lease.path, "Resize"), "cus=30")),
			GPUARB_ERROR_INVALID_STATE, "revoking"));
		if (closed)
			close(s.lease.holder);
		else
			CHECK(is_fine(call(release(s.crowd, s.lease.path))));
		CHECK(is_free_again(&s));
		rig_done(&s.rig);
	}
}

/* The CUs that a revoked inactive lease lends stay with their borrowers. */
TEST_WITH(revoking_an_inactive_lease_leaves_borrowers_their_cus, struct lend *s)
{
	struct live_lease rt, borrower;
	struct live_record record;

	rt = keep_inactive(s->bus, 15);
	borrower = borrow(s->crowd);
	CHECK(is_fine(take_away(s->bus, &rt, HOUR_USEC, "")));
	CHECK(is_error(activate(s->bus, &rt), GPUARB_ERROR_INVALID_STATE, "revoking"));
	CHECK(is_error(deactivate(s->bus, &rt), GPUARB_ERROR_INVALID_STATE, "revoking"));
	record = await_record(rt.holder, GPUARB_RECORD_REVOKING);
	CHECK(is_fine(acknowledge(s->bus, &rt, record.record.generation)));
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(lease_number(s->bus, &borrower, "Generation") == 1);
}
