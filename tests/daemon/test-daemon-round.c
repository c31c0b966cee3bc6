/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls to the shipped daemon while it examines hundreds of waiting leases of one user. */

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
	close(crowd->rest.holder);
	close(crowd->held.holder);
	rig_done(&crowd->rig);
}

/* ---- calls that arrive one after the other ------------------------------------------------- */

struct reply {
	sd_bus_message *m;
	unsigned number; /* among the answers */
};

static unsigned n_replies;

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *)
{
	struct reply *reply = userdata;

	reply->m = sd_bus_message_ref(m);
	reply->number = ++n_replies;
	return 0;
}

static void ask_async(sd_bus_message *m, struct reply *ret)
{
	*ret = (struct reply){ 0 };
	CHECK(sd_bus_call_async(sd_bus_message_get_bus(m), NULL, m, on_reply, ret, UINT64_MAX) >=
	      0);
	sd_bus_message_unref(m);
}

static sd_bus_message *ask_cus(sd_bus *bus, unsigned cus)
{
	return ask_for(bus, "cus=%u", cus);
}

/* The time of gpuarbd that a user was charged. */
static uint64_t charged(sd_bus *root, uid_t uid)
{
	sd_bus_message *m = call(call_arbiter(root, "ReadLimits"));
	uint64_t usec = 0;

	CHECK(sd_bus_message_skip(m, "a{sv}") >= 0);
	CHECK(sd_bus_message_enter_container(m, 'a', "a{sv}") >= 0);
	while (sd_bus_message_enter_container(m, 'a', "{sv}") > 0) {
		uint64_t time = 0;
		uint32_t of = 0;
		const char *key;

		while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
			CHECK(sd_bus_message_read(m, "s", &key) >= 0);
			if (strcmp(key, "uid") == 0)
				CHECK(sd_bus_message_read(m, "v", "u", &of) >= 0);
			else if (strcmp(key, "time-usec") == 0)
				CHECK(sd_bus_message_read(m, "v", "t", &time) >= 0);
			else
				CHECK(sd_bus_message_skip(m, "v") >= 0);
			CHECK(sd_bus_message_exit_container(m) >= 0);
		}
		CHECK(sd_bus_message_exit_container(m) >= 0);
		usec = of == uid ? time : usec;
	}
	sd_bus_message_unref(m);
	return usec;
}

/* ---- tests --------------------------------------------------------------------------------- */

TEST(request_is_decided_before_the_waiting_leases_that_rank_behind_it)
{
	static struct crowd crowd;
	const struct live_lease *last = &crowd.waiting[CROWD_SIZE - 1];
	struct reply released, again, read, resized;
	struct live_lease got;

	arrive(&crowd, 40);
	ask_async(release(crowd.other, crowd.held.path), &released);
	ask_async(ask_cus(crowd.other, 40), &again);
	ask_async(get(crowd.other, last->path, GPUARB_INTERFACE_LEASE, "State"), &read);
	ask_async(resize(crowd.other, crowd.rest.path, 1), &resized); /* at the end of the round */
	AWAIT(crowd.other, released.m && again.m && read.m && resized.m);
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
	struct reply released, rest, again;

	arrive(&crowd, 60);
	ask_async(release(crowd.root, crowd.rest.path), &rest);
	AWAIT(crowd.root, rest.m);
	CHECK(is_fine(rest.m));
	ask_async(release(crowd.other, crowd.held.path), &released);
	ask_async(ask_cus(crowd.other, 40), &again);
	AWAIT(crowd.other, released.m && again.m);
	CHECK(is_fine(released.m));
	CHECK(is_error(again.m, GPUARB_ERROR_NO_CAPACITY, ""));
	await_record(crowd.waiting[0].holder, GPUARB_RECORD_GRANTED);
	CHECK(lease_says(crowd.root, crowd.waiting[1].path, "State", "waiting"));
	depart(&crowd);
}

TEST(time_of_a_round_is_charged_to_the_user_whose_leases_wait)
{
	static struct crowd crowd;
	struct reply released, resized;
	uint64_t before, of_other;

	arrive(&crowd, 60);
	before = charged(crowd.root, STRANGER);
	of_other = charged(crowd.root, OTHER);
	ask_async(release(crowd.other, crowd.held.path), &released);
	ask_async(resize(crowd.other, crowd.rest.path, 1), &resized);
	AWAIT(crowd.other, released.m && resized.m);
	CHECK(is_fine(released.m) && !is_fine(resized.m));
	CHECK(charged(crowd.root, STRANGER) >= before + CROWD_SIZE);
	CHECK(charged(crowd.root, OTHER) > of_other);
	depart(&crowd);
}
