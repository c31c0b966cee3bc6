/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "client/output/fail.h"
#include "client/output/json.h"
#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/output/table.h"
#include "client/verbs/verb.h"

DEFINE_CLEANUP(struct gpuarb_usage *, gpuarb_usage_free)

static bool is_listed(const struct command *command, const struct gpuarb_usage_row *row)
{
	return user_is_listed(command, row->uid) &&
	       (!command->filter.tenant || strcmp(command->filter.tenant, row->tenant) == 0);
}

static void add_json(struct json_object *list, const struct gpuarb_usage_row *row)
{
	struct json_object *map = json_map(list, NULL);
	char user[PRINT_USER];

	json_text_known(map, "tenant", row->tenant);
	json_text(map, "user", print_user(row->uid, user) ? user : NULL);
	json_number(map, "uid", row->uid);
	json_text(map, "class", row->lease_class);
	json_number(map, "leases", row->leases);
	json_number(map, "held_usec", row->held_usec);
	json_number(map, "cu_usec", row->cu_usec);
	json_number(map, "queue_usec", row->queue_usec);
	json_number(map, "waits", row->waits);
	json_number(map, "waited_usec", row->waited_usec);
	json_number(map, "refusals", row->refusals);
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
	table_add(table, "%s", row->tenant);
	table_add(table, "%s", user);
	table_add(table, "%s", row->lease_class);
	table_number(table, row->leases);
	table_add(table, "%s", row->leases > 0 || row->held_usec > 0 ? held : "");
	add_hours(table, row->cu_usec);
	add_hours(table, row->queue_usec);
	table_add(table, "%s", row->waits > 0 || row->waited_usec > 0 ? waited : "");
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

static const char *const heads[] = {
	"TENANT",   "USER",        "CLASS",  "LEASES",  "HELD",
	"CU-HOURS", "QUEUE-HOURS", "WAITED", "REFUSED", NULL,
};

static void print_table(const struct command *command, const struct gpuarb_usage *usage)
{
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "007610853" };
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
	int r = list_check(command, heads);

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
