/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counters, and the metrics that gpuarb-exporter makes of them, with the answers of a fake daemon. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "client/exporter/metrics.h"
#include "dbus/names.h"
#include "lib-rig.h"

/* A name that no configuration allows: a daemon on another machine may differ. */
#define NAME "<b>\"lab\\n\"</b>\nx{y=\"1\"} 1"
#define ESCAPED "<b>\\\"lab\\\\n\\\"</b>\\nx{y=\\\"1\\\"} 1"

struct daemon {
	unsigned counts; /* of the duration, which has two bounds */
	bool old;        /* it has no ReadCounters */
	const char *
		lender; /* the state of a lease that lends; NULL: there are neither GPUs nor leases */
};

#define GPU(i) "0000:0" #i ":00.0"
#define PARTITION(mask) "Partitions", "aa{sv}", 1, 2, "gpu", "s", GPU(3), "cu-mask", "au", 1, mask

/* Of two leases on GPU 3, one uses GPU 4, too, as does a process without a lease. */
static int answer_objects(sd_bus_message *call, const char *lender)
{
	return sd_bus_reply_method_return(
		call, "a{oa{sa{sv}}}", 4, GPUARB_PATH_GPU "/0", 1, GPUARB_INTERFACE_GPU, 1, "Name",
		"s", GPU(3), GPUARB_PATH_GPU "/1", 1, GPUARB_INTERFACE_GPU, 3, "Name", "s", GPU(4),
		"MasksObserved", "t", UINT64_C(1), "Observed", "aa{sv}", 3, 3, "lease", "t",
		UINT64_C(1), "cus", "u", 6, "queues", "u", 2, 1, "cu-mask", "au", 1, 0x0f, 1,
		"cu-mask", "au", 1, 0x18, GPUARB_PATH_LEASE "/1", 1, GPUARB_INTERFACE_LEASE, 4,
		"Class", "s", "realtime", "State", "s", lender, "Tenant", "s", NAME,
		PARTITION(0xff), GPUARB_PATH_LEASE "/2", 1, GPUARB_INTERFACE_LEASE, 3, "State", "s",
		"granted", "Tenant", "s", NAME, PARTITION(0x7f0));
}

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

	if (sd_bus_message_is_method_call(call, NULL, "GetAll"))
		return sd_bus_reply_method_return(call, "a{sv}", 2, "Version", "s", NAME, "Tenants",
						  "as", 1, NAME);
	if (sd_bus_message_is_method_call(call, NULL, "GetManagedObjects") && daemon->lender)
		return answer_objects(call, daemon->lender);
	if (sd_bus_message_is_method_call(call, NULL, "GetManagedObjects"))
		return sd_bus_reply_method_return(call, "a{oa{sa{sv}}}", 0);
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

static char *write_metrics(struct gpuarb *gpuarb, bool open, const struct gpuarb_counters *counters)
{
	const struct metrics_format format = { .open = open };
	struct gpuarb_view *view;
	size_t size = 0;
	char *text = NULL;
	FILE *file = open_memstream(&text, &size);

	CHECK(file && gpuarb_look(gpuarb, &view) == 0);
	CHECK(metrics_write(file, &format, view, counters, 1) == 0 && fclose(file) == 0);
	gpuarb_view_free(view);
	return text;
}

LIB_TEST(names_are_escaped_in_metrics_and_buckets_add_up, answer, (&(struct daemon){ .counts = 3 }))
{
	struct gpuarb_counters *counters;
	char *text;

	CHECK(gpuarb_read_counters(gpuarb, &counters) == 0);
	for (unsigned open = 0; open < 2; open++) {
		text = write_metrics(gpuarb, open, counters);
		CHECK(strstr(text, "\ngpuarb_version{version=\"" ESCAPED "\"} 1\n"));
		CHECK(strstr(text, "\ngpuarb_tenant_grants_total{tenant=\"" ESCAPED "\"} 7\n"));
		CHECK(strstr(text, "\ngpuarb_tenant_refusals_total{tenant=\"" ESCAPED
				   "\",reason=\"cus\"} 3\n"));
		CHECK(strstr(text, "\ngpuarb_tenant_moves_total{tenant=\"\"} 5\n"));
		CHECK(strstr(text, "\ngpuarb_wait_seconds_bucket{le=\"0.0015\"} 1\n"
				   "gpuarb_wait_seconds_bucket{le=\"2.0\"} 3\n"
				   "gpuarb_wait_seconds_bucket{le=\"+Inf\"} 7\n"
				   "gpuarb_wait_seconds_sum 9.5\n"
				   "gpuarb_wait_seconds_count 7\n"));
		CHECK(!strstr(text, "newer") && !strstr(text, "gpuarb_decision_seconds"));
		free(text);
	}
	gpuarb_counters_free(counters);
}

LIB_TEST(an_older_daemon_has_no_counters_and_the_other_metrics, answer,
	 (&(struct daemon){ .old = true }))
{
	struct gpuarb_counters *counters = NULL;
	char *text;

	CHECK(gpuarb_read_counters(gpuarb, &counters) == -EOPNOTSUPP && !counters);
	text = write_metrics(gpuarb, true, NULL);
	CHECK(strstr(text, "gpuarb_up 1\n") && !strstr(text, "_total{"));
	free(text);
}

static void show_use(struct gpuarb *gpuarb, struct fake_arbiter *)
{
	char *text = write_metrics(gpuarb, false, NULL);

	CHECK(strstr(text, "\ngpuarb_tenant_cus_borrowed{gpu=\"" GPU(3) "\",tenant=\"" ESCAPED
									"\"} 4\n"));
	CHECK(strstr(text, "\ngpuarb_tenant_cus_observed{gpu=\"" GPU(4) "\",tenant=\"" ESCAPED
									"\"} 6\n"));
	CHECK(strstr(text, "\ngpuarb_tenant_queues_observed{gpu=\"" GPU(4) "\",tenant=\"" ESCAPED
									   "\"} 2\n"));
	CHECK(strstr(text, "\ngpuarb_gpu_unmanaged_cus{gpu=\"" GPU(4) "\"} 5\n"));
	CHECK(!strstr(text, "gpuarb_gpu_unmanaged_cus{gpu=\"" GPU(3)));
	free(text);
}

TEST(metrics_have_what_is_borrowed_and_what_is_used_without_a_partition)
{
	struct daemon inactive = { .lender = "inactive" }, activating = { .lender = "activating" };

	LIB_RIG_WITH(answer, &inactive, show_use);
	LIB_RIG_WITH(answer, &activating, show_use);
}
