/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters, with the answers of a fake daemon. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "dbus/names.h"
#include "lib-rig.h"

/* A name that no configuration allows: a daemon on another machine may differ. */
#define NAME "<b>\"lab\\n\"</b>\nx{y=\"1\"} 1"

struct daemon {
	unsigned counts; /* of the duration, which has two bounds */
	bool old;        /* it has no ReadCounters */
};

static void append_duration(sd_bus_message *m, const char *name, unsigned counts)
{
	const uint64_t list[] = { 1, 2, 4, 8 };

	CHECK(sd_bus_message_open_container(m, 'a', "{sv}") >= 0);
	fake_append(m, "name", "s", name);
	fake_append(m, "bounds-usec", "at", 2, UINT64_C(1500), UINT64_C(2000000));
	CHECK(sd_bus_message_open_container(m, 'e', "sv") >= 0 &&
	      sd_bus_message_append(m, "s", "counts") >= 0 &&
	      sd_bus_message_open_container(m, 'v', "at") >= 0 &&
	      sd_bus_message_append_array(m, 't', list, counts * sizeof(list[0])) >= 0 &&
	      sd_bus_message_close_container(m) >= 0 && sd_bus_message_close_container(m) >= 0);
	fake_append(m, "sum-usec", "t", UINT64_C(9500000));
	CHECK(sd_bus_message_close_container(m) >= 0);
}

static int answer_counters(sd_bus_message *call, const struct daemon *daemon)
{
	sd_bus_message *reply = fake_reply(call);

	CHECK(sd_bus_message_append(reply, "aa{sv}", 2, 4, "tenant", "s", NAME, "grants", "t",
				    UINT64_C(7), "refusals", "aa{sv}", 1, 2, "reason", "s", "cus",
				    "count", "t", UINT64_C(3), "ghosts", "t", UINT64_C(1), 2,
				    "tenant", "s", "", "moves", "t", UINT64_C(5)) >= 0);
	CHECK(sd_bus_message_open_container(reply, 'a', "a{sv}") >= 0);
	append_duration(reply, "wait", daemon->counts);
	append_duration(reply, "of a newer daemon", 3);
	CHECK(sd_bus_message_close_container(reply) >= 0);
	CHECK(sd_bus_message_append(reply, "a{sv}", 1, "since", "t", UINT64_C(1700000000)) >= 0);
	return fake_send(reply);
}

static int answer(sd_bus_message *call, void *userdata)
{
	const struct daemon *daemon = userdata;

	if (daemon->old)
		return sd_bus_reply_method_errorf(call, SD_BUS_ERROR_UNKNOWN_METHOD, "no method");
	return answer_counters(call, daemon);
}

LIB_TEST(counters_are_read_and_unknown_keys_left_out, answer, (&(struct daemon){ .counts = 3 }))
{
	const struct gpuarb_duration *duration;
	struct gpuarb_counters *counters;
	const struct gpuarb_counters_row *row;

	CHECK(gpuarb_read_counters(gpuarb, &counters) == 0);
	row = gpuarb_counters_get(counters, 0);
	CHECK(strcmp(row->tenant, NAME) == 0 && row->grants == 7 && row->moves == 0);
	CHECK(row->n_refusals == 1 && row->refusals[0].count == 3);
	CHECK(strcmp(row->refusals[0].reason, "cus") == 0);
	CHECK(gpuarb_counters_get(counters, 1)->moves == 5 && !gpuarb_counters_get(counters, 2));
	duration = gpuarb_counters_duration(counters, 0);
	CHECK(strcmp(duration->name, "wait") == 0 && duration->sum_usec == 9500000);
	CHECK(duration->n_bounds == 2 && duration->bounds_usec[1] == 2000000);
	CHECK(duration->n_counts == 3 && duration->counts[2] == 4);
	CHECK(!gpuarb_counters_duration(counters, 2));
	CHECK(gpuarb_counters_since(counters) == 1700000000);
	gpuarb_counters_free(counters);
}

LIB_TEST(a_duration_has_a_count_for_each_bound_and_one_more, answer,
	 (&(struct daemon){ .counts = 2 }))
{
	struct gpuarb_counters *counters = NULL;

	CHECK(gpuarb_read_counters(gpuarb, &counters) == -EPROTO && !counters);
	CHECK(strstr(gpuarb_last_error(gpuarb), "counts"));
}

LIB_TEST(an_older_daemon_has_no_counters, answer, (&(struct daemon){ .old = true }))
{
	struct gpuarb_counters *counters = NULL;

	CHECK(gpuarb_read_counters(gpuarb, &counters) == -EOPNOTSUPP && !counters);
}
