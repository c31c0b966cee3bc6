/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls to the shipped daemon while it examines hundreds of waiting leases of one user. */

#include "adapter.h"
#include "check.h"
#include "live.h"

NEEDS(daemon_missing);

#define OTHER 2
#define CROWD_SIZE 200U

/* More than one turn of the event loop examines, as no two are equal. */
struct crowd {
	struct rig rig;
	sd_bus *root, *user, *other;
	struct live_lease waiting[CROWD_SIZE];
	struct live_lease held; /* 40 CUs, of the other user */
	struct live_lease rest; /* 20 CUs, of root */
};

static struct live_lease wait_in(struct crowd *crowd, unsigned cus, uint64_t vram)
{
	return waiting(call(
		ask_for(crowd->user, "cus=%u vram=%" PRIu64 "; wait-usec=forever", cus, vram)));
}

/* last: the CUs for which the last lease waits; the others wait for all. */
static void arrive(struct crowd *crowd, unsigned last)
{
	rig_new(&crowd->rig);
	rig_write(&crowd->rig, "gpuarbd.conf", "[daemon]\nmax-time-per-user = 100%\n");
	rig_start(&crowd->rig, "--simulate=radeon-vii");
	crowd->root = rig_connect(&crowd->rig, 0);
	crowd->user = rig_connect(&crowd->rig, STRANGER);
	crowd->other = rig_connect(&crowd->rig, OTHER);
	crowd->rest = reserve(crowd->root, 20);
	crowd->held = reserve(crowd->other, 40);
	for (unsigned i = 0; i < CROWD_SIZE - 1; i++)
		crowd->waiting[i] = wait_in(crowd, 60, i + 1);
	crowd->waiting[CROWD_SIZE - 1] = wait_in(crowd, last, CROWD_SIZE);
}

static void depart(struct crowd *crowd)
{
	for (unsigned i = 0; i < CROWD_SIZE; i++)
		close(crowd->waiting[i].holder);
	rig_done(&crowd->rig);
}

/* gpuarbd finds the calls that are sent in between together, and does not end a round before the next one comes. */
static void begin_calls(const struct crowd *crowd)
{
	rig_pause(crowd->rig.daemon);
}

static void end_calls(const struct crowd *crowd)
{
	settle(crowd->other);
	rig_go_on(crowd->rig.daemon);
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(request_is_decided_before_the_waiting_leases_that_rank_behind_it)
{
	static struct crowd crowd;
	const struct live_lease *last = &crowd.waiting[CROWD_SIZE - 1];
	struct answer released, again, read, resized;
	struct live_lease got;

	arrive(&crowd, 40);
	begin_calls(&crowd);
	call_send(release(crowd.other, crowd.held.path), &released);
	call_send(ask_for(crowd.other, "cus=40"), &again);
	call_send(get(crowd.other, last->path, GPUARB_INTERFACE_LEASE, "State"), &read);
	call_send(resize(crowd.other, crowd.rest.path, 1), &resized); /* at the end of the round */
	end_calls(&crowd);
	AWAIT(crowd.other, released.came && again.came && read.came && resized.came);
	CHECK(is_fine(released.m));
	CHECK(read.number < resized.number && again.number < resized.number);
	got = granted(again.m);
	CHECK(is_error(resized.m, GPUARB_ERROR_NOT_PERMITTED, ""));
	CHECK(is_fine(read.m));
	CHECK(lease_says(crowd.root, last->path, "State", "waiting"));
	CHECK(lease_says(crowd.root, crowd.waiting[0].path, "State", "waiting"));
	/* What it leaves goes to the only lease that it is enough for. */
	close(got.holder);
	await_record(last->holder, GPUARB_RECORD_GRANTED);
	depart(&crowd);
}

TEST(request_does_not_overtake_the_first_lease_of_another_user)
{
	static struct crowd crowd;
	struct answer released, rest, again;

	arrive(&crowd, 60);
	call_send(release(crowd.root, crowd.rest.path), &rest);
	AWAIT(crowd.root, rest.came);
	CHECK(is_fine(rest.m));
	begin_calls(&crowd);
	call_send(release(crowd.other, crowd.held.path), &released);
	call_send(ask_for(crowd.other, "cus=40"), &again);
	end_calls(&crowd);
	AWAIT(crowd.other, released.came && again.came);
	CHECK(is_fine(released.m));
	CHECK(is_error(again.m, GPUARB_ERROR_NO_CAPACITY, ""));
	await_record(crowd.waiting[0].holder, GPUARB_RECORD_GRANTED);
	CHECK(lease_says(crowd.root, crowd.waiting[1].path, "State", "waiting"));
	depart(&crowd);
}

TEST(time_of_a_round_is_charged_to_the_user_whose_leases_wait)
{
	static struct crowd crowd;
	struct answer released, resized;
	uint64_t before, of_other;

	arrive(&crowd, 60);
	before = user_limit(crowd.root, STRANGER, "time-usec");
	of_other = user_limit(crowd.root, OTHER, "time-usec");
	begin_calls(&crowd);
	call_send(release(crowd.other, crowd.held.path), &released);
	call_send(resize(crowd.other, crowd.rest.path, 1), &resized);
	end_calls(&crowd);
	AWAIT(crowd.other, released.came && resized.came);
	CHECK(is_fine(released.m) && !is_fine(resized.m));
	CHECK(user_limit(crowd.root, STRANGER, "time-usec") >= before + CROWD_SIZE);
	CHECK(user_limit(crowd.root, OTHER, "time-usec") > of_other);
	depart(&crowd);
}
