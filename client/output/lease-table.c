/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lease-table.h"

#include <stdio.h>
#include <string.h>

#include "client/output/list.h"
#include "client/output/print.h"

/* A waiting lease has no partitions. */
static void add_partitions(struct table *table, const struct gpuarb_lease_info *lease)
{
	unsigned cus = 0, queues = 0;

	for (size_t i = 0; i < lease->n_partitions; i++) {
		cus += lease->partitions[i].cus;
		queues += lease->partitions[i].queues;
	}
	if (lease->n_partitions == 0)
		TABLE_CELLS(table, "-", "-", "-");
	else if (lease->n_partitions == 1)
		TABLE_CELLS(table, cus, queues, lease->partitions[0].gpu);
	else {
		TABLE_CELLS(table, cus, queues);
		table_add(table, "%zu GPUs", lease->n_partitions);
	}
}

/* The CUs that an adaptable lease always keeps. */
static void add_base(struct table *table, const struct gpuarb_view *view, size_t l,
		     const struct gpuarb_lease_info *lease)
{
	uint64_t base = 0;

	for (size_t i = 0; i < lease->n_partitions; i++)
		base += gpuarb_view_cus_min(view, l, i);
	table_number(table, base);
}

/* The first priority that differs in the hardware: "priority normal (asked high)". */
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

void lease_table_state(struct table *table, const struct command *command, size_t l)
{
	table_add(table, "%s%s%s", lease_text_state(&command->leases[l]),
		  gpuarb_view_drift(command->view, l, 0) ? ", drifts" : "",
		  gpuarb_view_intruder(command->view, l, 0) ? ", disturbed" : "");
}

/* Of a granted lease when it ends; of a waiting one when the next lease does that may make room. */
static void add_end(const struct command *command, size_t l, char *why, size_t size)
{
	bool waiting = strcmp(command->leases[l].state, "waiting") == 0;
	uint64_t now = lease_clock_usec(), end = UINT64_MAX;
	char span[LEASE_TEXT_AGE];
	size_t used = strlen(why);

	for (size_t i = waiting ? 0 : l; i < (waiting ? command->n_leases : l + 1); i++) {
		uint64_t duration = gpuarb_view_duration(command->view, i);

		if (duration > 0 && command->leases[i].n_partitions > 0 &&
		    gpuarb_view_since(command->view, i) + duration < end)
			end = gpuarb_view_since(command->view, i) + duration;
	}
	if (end == UINT64_MAX || strcmp(command->leases[l].state, "revoking") == 0)
		return;
	lease_text_span(end > now ? (end - now) / 1000000 : 0, span);
	snprintf(why + used, size - used, "%s%s %s", used > 0 ? "; " : "",
		 waiting ? "a lease ends in" : "ends in", span);
}

static void add_uncapped(const struct command *command, size_t l, char *why, size_t size)
{
	const char *uncapped = gpuarb_view_uncapped(command->view, l);
	size_t used = strlen(why);

	if (*uncapped)
		snprintf(why + used, size - used, "%suncapped (%s)", used > 0 ? "; " : "",
			 uncapped);
}

static void add_lease(struct table *table, const struct command *command, const struct lent *all,
		      const struct gpuarb_lease_info *lease)
{
	char user[PRINT_USER], why[LEASE_TABLE_WHY], age[LEASE_TEXT_AGE];

	print_user(lease->owner_uid, user);
	lease_table_why(all, lease, why, sizeof(why));
	add_end(command, (size_t)(lease - all->leases), why, sizeof(why));
	add_uncapped(command, (size_t)(lease - all->leases), why, sizeof(why));

	TABLE_CELLS(table, lease->id, lease->name);
	lease_table_state(table, command, (size_t)(lease - all->leases));
	TABLE_CELLS(table, lease->lease_class, lease->tenant, user);
	table_number(table, lease->owner_pid);
	add_partitions(table, lease);
	add_base(table, command->view, (size_t)(lease - all->leases), lease);
	lease_text_age(gpuarb_view_since(command->view, (size_t)(lease - all->leases)), age);
	TABLE_CELLS(table, age, why);
}

const char *const lease_table_heads[] = { "ID",   "NAME", "STATE",  "CLASS",  "TENANT",
					  "USER", "PID",  "CUS",    "QUEUES", "GPU",
					  "BASE", "AGE",  "REASON", NULL };

void lease_table(const struct command *command)
{
	const struct lent all = { command->leases, command->n_leases };
	_cleanup_(table_done) struct table table = { .heads = lease_table_heads,
						     .keep = "0106819235w70" };

	for (size_t i = 0; i < all.n; i++)
		if (lease_is_listed(command, &all.leases[i]))
			add_lease(&table, command, &all, &all.leases[i]);
	table_print(&table, command, stdout);
	if (table.n == 0 && !command->no_legend)
		print_line(stdout, all.n > 0 ? "No such leases." : "No leases.");
}
