/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Realtime leases of the shipped daemon that lend and reclaim their CUs. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

#define PATIENT "activate-grace = 1h\n"

/* ---- borrowers that shrink ---------------------------------------------------------------------------- */

FIXTURE(struct lend, s, , rig_done(&s->rig));

TEST_WITH(an_activation_is_granted_when_borrowers_have_acknowledged, struct lend *s)
{
	struct live_lease rt, borrower;
	struct book_part part, mine;
	struct live_record record;
	static struct book book;
	uint64_t before;
	char name[32];

	lend_start(s, PATIENT GROW_NEVER, "kill");
	rt = keep_inactive(s->bus, 15);
	borrower = borrow(s->crowd);
	CHECK(part_of(s->bus, &borrower).cus == LEND_CUS);

	before = boottime_usec();
	s->told.lease = 0;
	CHECK(is_fine(activate(s->bus, &rt)));
	CHECK(is_in_state(s->bus, &rt, "activating") && s->told.lease > 0);
	snprintf(name, sizeof(name), "lease %" PRIu64, borrower.id);
	CHECK(lease_says(s->bus, rt.path, "Reason", "15 CUs of 0000:03:00.0"));
	CHECK(lease_says(s->bus, rt.path, "Reason", name));
	CHECK(await_record(rt.holder, GPUARB_RECORD_ACTIVATING).record.deadline_usec ==
	      lease_number(s->bus, &rt, "Deadline"));

	record = await_generation(borrower.holder, 2);
	CHECK(record.record.state == GPUARB_RECORD_GRANTED && record.partitions[0].cus == 45);
	CHECK(record.record.deadline_usec >= before + HOUR_USEC);
	CHECK(record.record.deadline_usec == lease_number(s->bus, &borrower, "Deadline"));
	CHECK(is_fine(acknowledge(s->crowd, &borrower, 1))); /* that is not it */
	CHECK(is_error(acknowledge(s->crowd, &borrower, 3), GPUARB_ERROR_INVALID_REQUEST,
		       "generation 3"));
	CHECK(is_in_state(s->bus, &rt, "activating"));

	s->told.lease = 0;
	CHECK(is_fine(acknowledge(s->crowd, &borrower, 2)));
	record = await_record(rt.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.record.deadline_usec == UINT64_MAX && !record.record.reason[0]);
	AWAIT(s->bus, s->told.lease > 0);
	book_read(s->bus, &book);
	book_check(&book, true);
	part = part_of(s->bus, &borrower);
	mine = part_of(s->bus, &rt);
	CHECK(apart(&part, &mine) && mine.cus == 15 && part.cus == 45);
	CHECK(lease_number(s->bus, &borrower, "Deadline") == UINT64_MAX);
	CHECK(lease_number(s->bus, &rt, "Generation") == 1); /* its mask is what it was */
}

/* ---- borrowers that grow ------------------------------------------------------------------------ */

/* The next scan, an hour later, would let it grow, too. */
TEST_WITH(a_borrower_grows_back_when_a_lease_is_released, struct lend *s)
{
	struct live_lease rt, borrower;
	struct live_record record;
	struct answer answer;

	lend_start(s, PATIENT GROW_SOON "audit-interval = 1h\n", "kill");
	borrower = borrow(s->crowd);
	for (uint64_t generation = 2; generation < 8; generation += 2) {
		call_send(ask_for(s->bus, "cus=15"), &answer);
		CHECK(sd_bus_flush(s->bus) >= 0);
		await_generation(borrower.holder, generation);
		CHECK(is_fine(acknowledge(s->crowd, &borrower, generation)));
		AWAIT(s->bus, answer.came);
		rt = granted(answer.m);
		await_time(boottime_usec() + 20000); /* the grant was an occasion to grow, too */
		CHECK(is_fine(call(release(s->bus, rt.path))));
		record = await_generation(borrower.holder, generation + 1);
		CHECK(record.partitions[0].cus == LEND_CUS);
		CHECK(is_fine(acknowledge(s->crowd, &borrower, generation + 1)));
		close(rt.holder);
	}
}

TEST_WITH(borrowers_get_their_cus_back_when_a_request_is_cancelled, struct lend *s)
{
	struct live_lease borrower;
	struct live_record record;
	struct answer answer;
	static struct book book;
	sd_bus *caller;

	lend_start(s, PATIENT GROW_SOON "audit-interval = 1h\n", "kill");
	borrower = borrow(s->crowd);
	caller = rig_connect(&s->rig, 0);
	call_send(ask_for(caller, "cus=15"), &answer);
	CHECK(sd_bus_flush(caller) >= 0);
	await_generation(borrower.holder, 2);
	leave(caller);
	CHECK(!answer.came);
	AWAIT(s->bus, s->told.removed == 1);
	CHECK(is_fine(acknowledge(s->crowd, &borrower, 2)));
	record = await_generation(borrower.holder, 3);
	CHECK(record.partitions[0].cus == LEND_CUS && record.record.deadline_usec == UINT64_MAX);
	CHECK(is_fine(acknowledge(s->crowd, &borrower, 3)));
	book_read(s->bus, &book);
	CHECK(book.n_leases == 1);
}

static sd_bus_message *resize_base(sd_bus *bus, const struct live_lease *lease, unsigned cus)
{
	return call(with_request(call_lease(bus, lease->path, "Resize"),
				 "cus-min=%u cus-max=60 queues=2", cus));
}

/* It keeps its mask until the other lease has returned the CUs of the base to be. */
TEST_WITH(a_larger_base_of_an_adaptable_lease_survives_kill_9, struct lend *s)
{
	struct live_lease first, second;
	struct book_part part, mine;
	struct answer answer;
	pid_t pid;
	int fd;

	lend_start(s, PATIENT GROW_NEVER, "kill");
	pid = idler(0, &fd);
	first = borrow(s->crowd);
	bind_process(s->bus, &first, fd);
	call_send(ask_to_borrow(s->crowd, 4, LEND_CUS, 0), &answer);
	CHECK(sd_bus_flush(s->crowd) >= 0);
	follow_until(s->crowd, &first, LEND_CUS / 2);
	AWAIT(s->crowd, answer.came);
	second = granted(answer.m);
	part = part_of(s->bus, &first);
	CHECK(is_fine(resize_base(s->crowd, &first, 45)));
	CHECK(lease_says(s->bus, first.path, "Reason", "CUs"));
	CHECK(gpu_number(s->bus, "CusFree") <= 15);

	rig_crash(&s->rig);
	mine = part_of(s->bus, &first);
	CHECK(same_part(&part, &mine) && lease_says(s->bus, first.path, "Reason", "CUs"));
	CHECK(gpu_number(s->bus, "CusFree") <= 15);
	follow_until(s->crowd, &second, 15);
	follow_until(s->crowd, &first, 45);
	part = part_of(s->bus, &first);
	mine = part_of(s->bus, &second);
	CHECK(apart(&part, &mine));
	CHECK(is_error(resize_base(s->crowd, &second, 30), GPUARB_ERROR_NO_CAPACITY, "CUs"));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/* ---- revoking with notice ----------------------------------------------------------------------- */

TEST_WITH(a_holder_gets_reason_and_deadline_and_may_acknowledge_before, struct lend *s)
{
	struct live_record record;
	static struct book book;
	uint64_t before, after;

	lend_start(s, PATIENT GROW_NEVER, "report");
	s->lease = granted(call(ask_for(s->crowd, "cus=15 queues=2")));
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
	CHECK(is_error(call(resize(s->crowd, s->lease.path, 30)), GPUARB_ERROR_INVALID_STATE,
		       "revoking"));

	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation - 1)));
	CHECK(is_in_state(s->bus, &s->lease, "revoking")); /* of a change before */
	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation)));
	record = await_record(s->lease.holder, GPUARB_RECORD_ENDING);
	CHECK(strstr(record.record.reason, "the rack is moved"));
	CHECK(!next_record(s->lease.holder, &record));
	AWAIT(s->bus, s->told.removed > 0);
	book_read(s->bus, &book);
	CHECK(book_is_empty(&book));
}

/* The CUs that a revoked lease lends stay with their borrowers; those that it has just reclaimed come back. */
TEST(revoking_a_lease_that_is_not_active_leaves_borrowers_their_cus)
{
	struct live_record record;
	static struct lend s;

	for (unsigned activating = 0; activating < 2; activating++) {
		lend_start(&s, PATIENT GROW_SOON, "report");
		s.rt = keep_inactive(s.bus, 15);
		s.borrower = borrow(s.crowd);
		if (activating)
			CHECK(is_fine(activate(s.bus, &s.rt)));
		CHECK(is_fine(take_away(s.bus, &s.rt, HOUR_USEC, "")));
		CHECK(is_error(activate(s.bus, &s.rt), GPUARB_ERROR_INVALID_STATE, "revoking"));
		CHECK(is_error(deactivate(s.bus, &s.rt), GPUARB_ERROR_INVALID_STATE, "revoking"));
		record = await_record(s.rt.holder, GPUARB_RECORD_REVOKING);
		CHECK(is_fine(acknowledge(s.bus, &s.rt, record.record.generation)));
		AWAIT(s.bus, s.told.removed == 1);
		if (activating)
			follow_until(s.crowd, &s.borrower, LEND_CUS);
		else
			CHECK(lease_number(s.bus, &s.borrower, "Generation") == 1);
		rig_done(&s.rig);
	}
}

/* ---- two leases of one process ------------------------------------------------------------------------- */

TEST_WITH(process_is_bound_to_one_lease_on_a_gpu_if_one_is_adaptable, struct lend *s)
{
	struct live_lease first, second, waits;
	char name[32];
	pid_t pid;
	int fd;

	lend_start(s, PATIENT GROW_NEVER, "kill");
	pid = idler(0, &fd);
	first = granted(call(ask_to_borrow(s->bus, 4, 20, 0)));
	snprintf(name, sizeof(name), "lease %" PRIu64, first.id);
	bind_process(s->bus, &first, fd);
	bind_process(s->bus, &first, fd);

	CHECK(is_error(call(ask_bound(s->bus, 15, fd)), GPUARB_ERROR_INVALID_STATE, name));
	second = reserve(s->bus, 15);
	CHECK(is_error(call(with(call_lease(s->bus, second.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_INVALID_STATE, name));
	waits = waiting(call(ask_to_borrow(s->bus, 50, 60, HOUR_USEC)));
	CHECK(is_error(call(with(call_lease(s->bus, waits.path, "Bind"), "h", fd)),
		       GPUARB_ERROR_INVALID_STATE, name));

	CHECK(is_fine(call(release(s->bus, first.path))));
	bind_process(s->bus, &second, fd);
	CHECK(is_fine(call(release(s->bus, waits.path))));
	CHECK(is_fine(call(ask_bound(s->bus, 5, fd)))); /* both are fixed */
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
}
