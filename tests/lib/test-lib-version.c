/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The library with a daemon of another version: a newer daemon sends additional keys and longer
 * records, an older daemon lacks keys and methods. */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "dbus/names.h"
#include "dbus/record.h"
#include "lib-rig.h"
#include "libgpuarb/lease/lease-handle.h"
#include "rig.h"

NEEDS(rig_bus_missing);

struct play {
	bool newer;
	int theirs; /* the end of the holder that the program gets */
};

struct table {
	struct rig bus;
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;
	int ours;
};

/* ---- the answers ------------------------------------------------------------------------- */

static void append_partitions(sd_bus_message *m, bool newer)
{
	CHECK(sd_bus_message_open_container(m, 'a', "a{sv}") >= 0);
	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	if (newer) {
		fake_append(m, "aardvark", "aa{sv}", 1, 1, "x", "d", 1.5);
		fake_append(m, "xcc-masks", "aau", 1, 2, 1, 2);
		/* A value that this library does not know. */
		fake_append(m, "tier", "s", "sealed");
		fake_append(m, "gaps", "as", 2, "power", "clock");
	}
	fake_append(m, "gpu", "s", "0000:03:00.0");
	fake_append(m, "cu-mask", "au", 1, 0xff);
	fake_append(m, "cus", "u", 8);
	fake_append(m, "queues", "u", 5);
	CHECK(sd_bus_message_close_container(m) >= 0 && sd_bus_message_close_container(m) >= 0);
}

static int answer_reserve(sd_bus_message *call, struct play *play)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_append(reply, "ohs", GPUARB_PATH_LEASE "/17", play->theirs,
				    "granted") >= 0);
	append_partitions(reply, play->newer);
	return fake_send(reply);
}

static int answer_plan(sd_bus_message *call)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_append(reply, "s", "refused") >= 0);
	append_partitions(reply, true);
	CHECK(sd_bus_message_append(reply, "aa{sv}", 1, 4, "gpu", "s", "0000:03:00.0", "reason",
				    "s", "bandwidth", "since", "t", UINT64_C(4), "asked", "t",
				    UINT64_C(9)) >= 0);
	return fake_send(reply);
}

static int answer(sd_bus_message *call, void *userdata)
{
	struct play *play = userdata;

	if (sd_bus_message_is_method_call(call, NULL, "Reserve"))
		return answer_reserve(call, play);
	if (!play->newer)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_UNKNOWN_METHOD,
						  "there is no %s",
						  sd_bus_message_get_member(call));
	if (sd_bus_message_is_method_call(call, NULL, "Plan"))
		return answer_plan(call);
	return sd_bus_reply_method_errorf(call, GPUARB_ERROR "Overheated", "it is too hot");
}

/* ---- the table ------------------------------------------------------------------------------ */

static void table_set(struct table *table, bool newer)
{
	struct play play = { .newer = newer };
	int pair[2];

	rig_new(&table->bus);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	play.theirs = pair[1];
	fake_arbiter_start(table->bus.address, answer, &play, &table->fake);
	close(pair[1]);
	table->ours = pair[0];
	table->gpuarb = lib_rig_open();
}

static void table_strike(struct table *table)
{
	gpuarb_close(table->gpuarb);
	close(table->ours);
	fake_arbiter_stop(&table->fake);
	rig_done(&table->bus);
}

static struct gpuarb_lease *take_lease(struct table *table)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;

	want.cus = 8;
	CHECK(gpuarb_reserve(table->gpuarb, &want, 1, NULL, &lease) == 0);
	return lease;
}

/* ---- the tests ------------------------------------------------------------------------------- */

TEST(additional_keys_of_a_newer_daemon_are_skipped)
{
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	_cleanup_(table_strike) struct table table;

	table_set(&table, true);
	lease = take_lease(&table);
	CHECK(gpuarb_lease_cus(lease, 0) == 8 && gpuarb_lease_queues(lease, 0) == 5);
	CHECK(strcmp(gpuarb_lease_partition(lease, 0)->tier, "sealed") == 0);
	CHECK(gpuarb_lease_partition(lease, 0)->n_gaps == 2);
}

TEST(unknown_refusals_of_a_newer_daemon_keep_their_sentence)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	const struct gpuarb_refusal *refusals;
	const char *result;
	_cleanup_(table_strike) struct table table;
	size_t n = 0;

	table_set(&table, true);
	CHECK(gpuarb_plan(table.gpuarb, &want, 1, NULL, &result) == 0);
	CHECK(strcmp(result, "refused") == 0);
	refusals = gpuarb_last_refusals(table.gpuarb, &n);
	CHECK(n == 1 && strcmp(refusals[0].reason, "bandwidth") == 0 && refusals[0].asked == 9);
	CHECK(gpuarb_reload(table.gpuarb) == -EPROTO);
	CHECK(strstr(gpuarb_last_error(table.gpuarb), "it is too hot"));
}

TEST(missing_keys_of_an_older_daemon_are_defaults)
{
	const struct gpuarb_partition *partition;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	_cleanup_(table_strike) struct table table;

	table_set(&table, false);
	lease = take_lease(&table);
	partition = gpuarb_lease_partition(lease, 0);
	CHECK(partition->cus == 8 && partition->cu_mask[0] == 0xff);
	CHECK(strcmp(partition->tier, "") == 0 && partition->n_gaps == 0);
	CHECK(partition->streams == 0 && partition->vram == 0);
}

TEST(missing_methods_of_an_older_daemon_are_not_supported)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	_cleanup_(gpuarb_lease_closep) struct gpuarb_lease *lease = NULL;
	_cleanup_(table_strike) struct table table;

	table_set(&table, false);
	lease = take_lease(&table);
	CHECK(gpuarb_lease_acknowledge(lease) == -EOPNOTSUPP);
	CHECK(strstr(gpuarb_last_error(table.gpuarb), "there is no Acknowledge"));
	CHECK(gpuarb_lease_resize(lease, &want, 1) == -EOPNOTSUPP);
	CHECK(gpuarb_lease_cap(lease, false) == 0); /* it has no such policy */
	CHECK(gpuarb_lease_cus(lease, 0) == 8);     /* unchanged */
}
