/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The shipped daemon revokes leases for a request of a higher class. */

#include "check.h"
#include "lend-live.h"

NEEDS(daemon_missing);

/* The lease of the crowd has the whole GPU. */
static void arrive(struct lend *stage, const char *grace, const char *preempt)
{
	char policy[64];

	snprintf(policy, sizeof(policy), "report\npreempt = %s", preempt);
	lend_start(stage, grace, policy);
	stage->lease = reserve(stage->crowd, 60);
}

#define PATIENT "activate-grace = 1h\n"

/* Both sides name the other lease in their reasons. */
static const char *id_text(uint64_t id)
{
	static char text[24];

	snprintf(text, sizeof(text), "lease %" PRIu64, id);
	return text;
}

FIXTURE(struct lend, s, arrive(s, PATIENT, "revoke"), rig_done(&s->rig));

TEST_WITH(reserve_without_wait_is_answered_when_revoked_leases_have_ended, struct lend *s)
{
	struct live_record record;
	struct live_lease lease;
	struct answer answer;

	call_send(ask_for(s->bus, "cus=15; class=realtime"), &answer);
	record = await_record(s->lease.holder, GPUARB_RECORD_REVOKING);
	CHECK(strstr(record.record.reason, id_text(s->lease.id + 1)));
	CHECK(record.record.deadline_usec > boottime_usec());
	AWAIT(s->bus, s->told.added == 2);
	CHECK(!answer.came && lease_says(s->bus, s->told.last_added, "State", "waiting"));
	CHECK(lease_says(s->bus, s->told.last_added, "Reason", id_text(s->lease.id)));
	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation)));
	AWAIT(s->bus, answer.came);
	lease = granted(answer.m);
	CHECK(part_of(s->bus, &lease).cus == 15);
	await_record(s->lease.holder, GPUARB_RECORD_ENDING);
}

TEST_WITH(a_caller_that_leaves_cancels_its_request, struct lend *s)
{
	struct answer answer;
	sd_bus *other;

	other = rig_connect(&s->rig, 0);
	call_send(ask_for(other, "cus=60; class=realtime"), &answer);
	sd_bus_flush(other);
	await_record(s->lease.holder, GPUARB_RECORD_REVOKING);
	leave(other);
	await_record(s->lease.holder, GPUARB_RECORD_GRANTED);
}

TEST_WITH(a_preemption_continues_after_the_daemon_was_killed, struct lend *s)
{
	struct live_record record;
	struct live_lease lease;
	uint64_t deadline;

	lease = waiting(call(ask_for(s->bus, "cus=30; class=realtime wait-usec=forever")));
	record = await_record(s->lease.holder, GPUARB_RECORD_REVOKING);
	deadline = lease_number(s->bus, &s->lease, "Deadline");
	rig_crash(&s->rig);
	CHECK(is_in_state(s->bus, &s->lease, "revoking") && is_in_state(s->bus, &lease, "waiting"));
	CHECK(lease_number(s->bus, &s->lease, "Deadline") == deadline);
	CHECK(lease_says(s->bus, lease.path, "Reason", id_text(s->lease.id)));
	/* Lower classes stay barred from the GPU, and a cancelled request still gives back. */
	CHECK(is_error(call(ask_for(s->crowd, "cus=1")), GPUARB_ERROR_NO_CAPACITY, ""));
	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation)));
	CHECK(await_record(lease.holder, GPUARB_RECORD_GRANTED).partitions[0].cus == 30);
}

TEST(reserve_without_wait_finds_its_lease_after_the_daemon_was_killed)
{
	struct live_record record;
	struct live_lease lease;
	struct answer answer, again;
	static struct lend s;
	char path[64];

	for (unsigned before = 0; before < 2; before++) {
		arrive(&s, PATIENT, "revoke");
		call_send(ask_for(s.bus, "cus=15; class=realtime"), &answer);
		record = await_record(s.lease.holder, GPUARB_RECORD_REVOKING);
		AWAIT(s.bus, s.told.added == 2);
		snprintf(path, sizeof(path), "%s", s.told.last_added);
		rig_crash(&s.rig);
		AWAIT(s.bus, answer.came);
		CHECK(sd_bus_message_is_method_error(answer.m, NULL));
		sd_bus_message_unref(answer.m);
		/* It is granted before or after it is asked for again. */
		if (before)
			CHECK(is_fine(acknowledge(s.crowd, &s.lease, record.record.generation)));
		call_send(ask_for(s.bus, "cus=15; class=realtime"), &again);
		if (!before) {
			sd_bus_flush(s.bus);
			CHECK(is_fine(acknowledge(s.crowd, &s.lease, record.record.generation)));
		}
		AWAIT(s.bus, again.came);
		lease = granted(again.m);
		CHECK(strcmp(lease.path, path) == 0 && part_of(s.bus, &lease).cus == 15);
		await_record(s.lease.holder, GPUARB_RECORD_ENDING);
		close(lease.holder);
		AWAIT(s.bus, !lease_exists(s.bus, path));
		rig_done(&s.rig);
	}
}

/* ---- requeue ----------------------------------------------------------------------------- */

/* A lease of the crowd on the whole GPU instead of the one that arrive() reserved. */
static void reserve_requeue(struct lend *stage)
{
	close(stage->lease.holder);
	AWAIT(stage->bus, stage->told.removed == 1);
	stage->lease = granted(call(ask_for(stage->crowd, "cus=60; requeue=1")));
}

TEST_WITH(a_lease_with_requeue_waits_under_its_id_until_the_other_lease_ends, struct lend *s)
{
	struct live_record record;
	struct live_lease lease;

	reserve_requeue(s);
	lease = waiting(call(ask_for(s->bus, "cus=30; class=realtime wait-usec=forever")));
	record = await_record(s->lease.holder, GPUARB_RECORD_REVOKING);
	CHECK(is_fine(acknowledge(s->crowd, &s->lease, record.record.generation)));
	record = await_record(s->lease.holder, GPUARB_RECORD_WAITING);
	CHECK(record.record.n_partitions == 0 && record.record.lease == s->lease.id);
	CHECK(await_record(lease.holder, GPUARB_RECORD_GRANTED).partitions[0].cus == 30);
	rig_crash(&s->rig);
	CHECK(is_in_state(s->bus, &s->lease, "waiting") && is_in_state(s->bus, &lease, "granted"));
	close(lease.holder);
	record = await_record(s->lease.holder, GPUARB_RECORD_GRANTED);
	CHECK(record.partitions[0].cus == 60 && record.record.lease == s->lease.id);
}
