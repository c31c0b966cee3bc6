/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lease-table.h"

#include <inttypes.h>

#include "client/output/lease-text.h"
#include "client/output/print.h"
#include "client/output/priority-text.h"
#include "client/output/table.h"

/* What waits has nothing yet. */
static void add_parts(struct table *table, const struct gpuarb_lease_info *lease)
{
	unsigned cus = 0, queues = 0;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		cus += lease->partitions[i].cus;
		queues += lease->partitions[i].queues;
	}
	if (lease->n_partitions == 0) {
		for (size_t i = 0; i < 3; i++)
			table_add(table, "-");
		return;
	}
	table_add(table, "%u", cus);
	table_add(table, "%u", queues);
	if (lease->n_partitions == 1)
		table_add(table, "%s", lease->partitions[0].gpu);
	else
		table_add(table, "%zu GPUs", lease->n_partitions);
}

/* The first that the hardware has otherwise than it was asked: "priority normal (asked high)". */
static void add_priority(const struct gpuarb_lease_info *lease, char *buf, size_t size)
{
	char priority[48];

	buf[0] = '\0';
	for (size_t i = 0; i < lease->n_partitions && buf[0] == '\0'; i++)
		if (priority_text(&lease->partitions[i], priority, sizeof(priority)) !=
		    PRIORITY_AS_ASKED)
			snprintf(buf, size, "priority %s", priority);
}

void lease_table_why(const struct lent *all, const struct gpuarb_lease_info *lease, char *buf,
		     size_t size)
{
	char lent[64], why[256], priority[64];

	lent_text(all, lease, lent, sizeof(lent));
	add_priority(lease, priority, sizeof(priority));
	lease_text_why(lease->state, lease->position, lease->reason, lease->deadline, why,
		       sizeof(why));
	snprintf(buf, size, "%s%s%s%s%s", lent, *lent && *priority ? "; " : "", priority,
		 (*lent || *priority) && *why ? "; " : "", why);
}

static void add_lease(struct table *table, const struct lent *all,
		      const struct gpuarb_lease_info *lease)
{
	char user[PRINT_USER], why[LEASE_TABLE_WHY];

	print_user(lease->owner_uid, user);
	lease_table_why(all, lease, why, sizeof(why));

	table_add(table, "%" PRIu64, lease->id);
	table_add(table, "%s", lease->name);
	table_add(table, "%s", lease->state);
	table_add(table, "%s", lease->lease_class);
	table_add(table, "%s", lease->tenant);
	table_add(table, "%s", user);
	if (lease->owner_pid > 0)
		table_add(table, "%u", lease->owner_pid);
	else
		table_add(table, "-");
	add_parts(table, lease);
	table_add(table, "%s", why);
}

void lease_table(const struct command *command, const struct gpuarb_lease_info *leases, size_t n)
{
	static const char *const heads[] = { "ID",  "NAME", "STATE",  "CLASS", "TENANT", "USER",
					     "PID", "CUS",  "QUEUES", "GPU",   "REASON", NULL };
	const struct lent all = { leases, n };
	struct table table = { .heads = heads };

	for (size_t i = 0; i < n; i++)
		add_lease(&table, &all, &leases[i]);
	table_print(&table, command, stdout);
	table_done(&table);
	if (n == 0 && !command->no_legend)
		print_line(stdout, "No leases.");
}
