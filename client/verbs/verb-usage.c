/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/output/list.h"
#include "client/output/table.h"
#include "client/verbs/verb.h"

DEFINE_CLEANUP(struct gpuarb_usage *, gpuarb_usage_free)
DEFINE_CLEANUP(struct gpuarb_limits *, gpuarb_limits_free)
DEFINE_CLEANUP(struct gpuarb_counters *, gpuarb_counters_free)

/* ---- usage ---------------------------------------------------------------------------------- */

static bool is_listed(const struct command *command, const struct gpuarb_usage_row *row)
{
	return user_is_listed(command, row->uid) &&
	       (!command->filter.tenant || strcmp(command->filter.tenant, row->tenant) == 0);
}

static void add_json(struct json_object *list, const struct gpuarb_usage_row *row)
{
	struct json_object *map = json_map(list, NULL);
	char user[PRINT_USER];

	JSON_FIELDS(map, ("tenant", row->tenant, ""),
		    ("user", print_user(row->uid, user) ? user : NULL), ("uid", row->uid),
		    ("class", row->lease_class));
	JSON_MEMBERS(map, row, leases, held_usec, cu_usec, queue_usec, waits, waited_usec,
		     refusals);
}

static void add_counters_row(struct json_object *list, const struct gpuarb_counters_row *row)
{
	struct json_object *map = json_map(list, NULL);

	JSON_MEMBERS(map, row, tenant, grants, waits, revocations, preemptions, moves, drifts);
	JSON_ROWS(map, "refusals", refused, at < row->n_refusals ? &row->refusals[at] : NULL,
		  ("reason", refused->reason), ("count", refused->count));
}

static void add_duration(struct json_object *list, const struct gpuarb_duration *duration)
{
	struct json_object *map = json_map(list, NULL);
	const uint64_t *bounds = duration->bounds_usec;

	JSON_FIELDS(map, ("name", duration->name), ("sum_usec", duration->sum_usec));
	JSON_ROWS(map, "buckets", count, at < duration->n_counts ? &duration->counts[at] : NULL,
		  ("to_usec", at < duration->n_bounds ? bounds[at] : UINT64_MAX, UINT64_MAX),
		  ("count", *count));
}

/* An older gpuarbd has none. */
static void add_counters(struct gpuarb *gpuarb, struct json_object *in)
{
	_cleanup_(gpuarb_counters_freep) struct gpuarb_counters *counters = NULL;
	const struct gpuarb_counters_row *row;
	const struct gpuarb_duration *duration;
	struct json_object *map, *list;

	if (gpuarb_read_counters(gpuarb, &counters) < 0) {
		json_null(in, "counters");
		return;
	}
	map = json_map(in, "counters");
	json_number(map, "since", gpuarb_counters_since(counters));
	list = json_list(map, "tenants");
	for (size_t i = 0; (row = gpuarb_counters_get(counters, i)); i++)
		add_counters_row(list, row);
	list = json_list(map, "durations");
	for (size_t i = 0; (duration = gpuarb_counters_duration(counters, i)); i++)
		add_duration(list, duration);
}

static void print_json(const struct command *command, const struct gpuarb_usage *usage)
{
	struct json_object *map = json_map(NULL, NULL), *list;
	const struct gpuarb_usage_row *row;

	json_known(map, "from", gpuarb_usage_from(usage), 0);
	list = json_list(map, "usage");
	for (size_t i = 0; (row = gpuarb_usage_get(usage, i)); i++)
		if (is_listed(command, row))
			add_json(list, row);
	add_counters(command->gpuarb, map);
	json_print(stdout, map);
}

static void add_hours(struct table *table, uint64_t usec)
{
	table_add(table, "%.2f", (double)usec / 3600e6);
}

static void add_row(struct table *table, const struct gpuarb_usage_row *row)
{
	char user[PRINT_USER], held[LEASE_TEXT_AGE], waited[LEASE_TEXT_AGE];

	print_user(row->uid, user);
	lease_text_span(row->held_usec / 1000000, held);
	lease_text_span(row->waited_usec / 1000000, waited);
	TABLE_CELLS(table, row->tenant, user, row->lease_class);
	table_number(table, row->leases);
	TABLE_CELLS(table, row->leases > 0 || row->held_usec > 0 ? held : "");
	add_hours(table, row->cu_usec);
	add_hours(table, row->queue_usec);
	TABLE_CELLS(table, row->waits > 0 || row->waited_usec > 0 ? waited : "");
	table_number(table, row->refusals);
}

static void print_from(const struct gpuarb_usage *usage)
{
	time_t from = (time_t)gpuarb_usage_from(usage);
	char day[64];
	struct tm tm;

	if (from == 0 || !localtime_r(&from, &tm) ||
	    strftime(day, sizeof(day), "%Y-%m-%d %H:%M", &tm) == 0)
		return;
	print_line(stdout, "Since %s.", day);
}

const char *const usage_heads[] = {
	"TENANT",   "USER",        "CLASS",  "LEASES",  "HELD",
	"CU-HOURS", "QUEUE-HOURS", "WAITED", "REFUSED", NULL,
};

static void print_table(const struct command *command, const struct gpuarb_usage *usage)
{
	_cleanup_(table_done) struct table table = { .heads = usage_heads, .keep = "000621853" };
	const struct gpuarb_usage_row *row;

	for (size_t i = 0; (row = gpuarb_usage_get(usage, i)); i++)
		if (is_listed(command, row))
			add_row(&table, row);
	table_print(&table, command, stdout);
	if (command->no_legend)
		return;
	if (table.n == 0)
		print_line(stdout, "Nothing was held, waited for or refused.");
	print_from(usage);
}

int run_usage(struct command *command)
{
	_cleanup_(gpuarb_usage_freep) struct gpuarb_usage *usage = NULL;
	int r = list_check(command, usage_heads);

	if (r != EXIT_OK)
		return r;
	r = gpuarb_read_usage(command->gpuarb, command->since, &usage);
	if (r < 0)
		return fail_asked(command, r);
	if (command->json)
		print_json(command, usage);
	else
		print_table(command, usage);
	return EXIT_OK;
}

/* ---- status --limits ------------------------------------------------------------------------ */

static void json_limit_values(struct json_object *map, const struct gpuarb_limit_values *values)
{
	JSON_MEMBERS(map, values, calls, time_percent, pending, unread_bytes, leases, leases_total,
		     holders_total, unread_known);
}

static void json_limits_row(struct json_object *map, const struct gpuarb_limits_row *row)
{
	char user[PRINT_USER];

	json_text(map, "user", print_user(row->uid, user) ? user : NULL);
	JSON_MEMBERS(map, row, uid, administrator, connections, calls, calls_delayed, calls_refused,
		     time_usec, pending, pending_bytes, unread_bytes, unread_fds, leases, waiting,
		     holders);
}

static void json_limits(const struct command *command, const struct gpuarb_limits *limits)
{
	struct json_object *map = json_map(NULL, NULL), *list;
	const struct gpuarb_limits_row *row;

	json_limit_values(json_map(map, "limits"), gpuarb_limits_values(limits));
	list = json_list(map, "users");
	for (size_t i = 0; (row = gpuarb_limits_get(limits, i)); i++)
		if (user_is_listed(command, row->uid))
			json_limits_row(json_map(list, NULL), row);
	json_print(stdout, map);
}

static void add_limits_row(struct table *table, const struct gpuarb_limits_row *row)
{
	char user[PRINT_USER], unread[PRINT_BYTES];

	print_user(row->uid, user);
	print_bytes(row->unread_bytes, unread);
	TABLE_CELLS(table, user);
	TABLE_NUMBERS(table, row->connections, row->calls);
	table_add(table, "%.3fs", (double)row->time_usec / 1e6);
	TABLE_NUMBERS(table, row->calls_delayed, row->calls_refused, row->pending);
	TABLE_CELLS(table, row->unread_bytes > 0 ? unread : "");
	TABLE_NUMBERS(table, row->leases, row->waiting, row->holders);
}

static void print_limit_values(const struct gpuarb_limit_values *values)
{
	char unread[PRINT_BYTES];

	print_bytes(values->unread_bytes, unread);
	print_line(
		stdout,
		"A user can have %u of %u leases and half of %u holders. Except for administrators: "
		"%u calls in a second, %u%% of the time of gpuarbd, %u pending calls, %s unread.",
		values->leases, values->leases_total, values->holders_total, values->calls,
		values->time_percent, values->pending, unread);
	if (!values->unread_known)
		print_line(stdout, "The bus does not tell gpuarbd what is unread.");
}

static const char *const limits_heads[] = {
	"USER",    "CONNECTIONS", "CALLS",  "TIME",    "DELAYED", "REFUSED",
	"PENDING", "UNREAD",      "LEASES", "WAITING", "HOLDERS", NULL,
};

static void print_limits(const struct command *command, const struct gpuarb_limits *limits)
{
	_cleanup_(table_done) struct table table = { .heads = limits_heads, .keep = "05342201056" };
	const struct gpuarb_limits_row *row;

	for (size_t i = 0; (row = gpuarb_limits_get(limits, i)); i++)
		if (user_is_listed(command, row->uid))
			add_limits_row(&table, row);
	table_print(&table, command, stdout);
	if (!command->no_legend)
		print_limit_values(gpuarb_limits_values(limits));
}

int run_limits(struct command *command)
{
	_cleanup_(gpuarb_limits_freep) struct gpuarb_limits *limits = NULL;
	int r = list_check(command, limits_heads);

	if (r != EXIT_OK)
		return r;
	r = gpuarb_read_limits(command->gpuarb, &limits);
	if (r < 0)
		return fail_asked(command, r);
	if (command->json)
		json_limits(command, limits);
	else
		print_limits(command, limits);
	return EXIT_OK;
}
