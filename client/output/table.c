/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "client/output/print.h"

#define CELL_COLUMNS 32U
#define LAST_COLUMNS 96U /* of the last column */

static bool ends_row(const struct table *table)
{
	size_t columns = 0;

	while (table->heads[columns])
		columns++;
	return table->n % columns == columns - 1;
}

void table_add(struct table *table, const char *format, ...)
{
	size_t columns = CELL_COLUMNS;
	char *text = NULL, **cells;
	va_list args;
	int n;

	if (table->n == table->room) {
		cells = reallocarray(table->cells, table->room * 2 + 32, sizeof(*cells));
		if (!cells)
			return;
		table->cells = cells;
		table->room = table->room * 2 + 32;
	}

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (ends_row(table))
		columns = LAST_COLUMNS;
	table->cells[table->n++] = n < 0 ? NULL : print_escape(text, columns);
	if (n >= 0)
		free(text);
}

void table_number(struct table *table, uint64_t number)
{
	if (number > 0)
		table_add(table, "%" PRIu64, number);
	else
		table_add(table, "-");
}

static const char *cell_text(const char *cell)
{
	return cell && *cell ? cell : "-";
}

/* Columns of a terminal that the escaped text takes. */
static size_t width_of(const char *text)
{
	wchar_t wide[LAST_COLUMNS * 2];
	size_t n = mbstowcs(wide, text, LAST_COLUMNS * 2);
	int width = n == (size_t)-1 ? -1 : wcswidth(wide, n);

	return width < 0 ? strlen(text) : (size_t)width;
}

static void print_row(const char *const *row, size_t columns, const size_t *widths, FILE *out)
{
	for (size_t c = 0; c < columns; c++) {
		fputs(row[c], out);
		if (c + 1 < columns)
			fprintf(out, "%*s", (int)(widths[c] - width_of(row[c])) + 2, "");
	}
	fputc('\n', out);
}

void table_print(const struct table *table, const struct command *command, FILE *out)
{
	size_t widths[TABLE_COLUMNS] = { 0 }, columns = 0;

	if (table->n == 0)
		return;
	for (; table->heads[columns]; columns++)
		widths[columns] = command->no_legend ? 0 : strlen(table->heads[columns]);

	for (size_t i = 0; i < table->n; i++) {
		size_t width = width_of(cell_text(table->cells[i])), c = i % columns;

		if (width > widths[c])
			widths[c] = width;
	}
	if (!command->no_legend)
		print_row(table->heads, columns, widths, out);

	for (size_t i = 0; i + columns <= table->n; i += columns) {
		const char *row[TABLE_COLUMNS];

		for (size_t c = 0; c < columns; c++)
			row[c] = cell_text(table->cells[i + c]);
		print_row(row, columns, widths, out);
	}
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->cells[i]);
	free(table->cells);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

static const char *state_of(const struct gpuarb_gpu *gpu)
{
	if (gpu->oversubscribed)
		return gpu->draining ? "OVERSUBSCRIBED, draining" : "OVERSUBSCRIBED";
	return gpu->draining ? "draining" : "ok";
}

void gpu_table(const struct command *command, FILE *out)
{
	static const char *const heads[] = { "GPU",       "DEVICE", "TARGET", "FREE: CUS", "QUEUES",
					     "PROCESSES", "VRAM",   "STATE",  NULL };
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_gpu *gpu = &command->gpus[i];
		char left[PRINT_BYTES], all[PRINT_BYTES];

		print_bytes(gpu->vram_free, left);
		print_bytes(gpu->vram_bytes, all);
		table_add(&table, "%s", gpu->name);
		table_add(&table, "%s", gpu->device);
		table_add(&table, "%s", gpu->gfx_target);
		table_add(&table, "%u of %u", gpu->cus_free, gpu->cus);
		table_add(&table, "%u of %u", gpu->queue_slots_free, gpu->queue_slots);
		table_add(&table, "%u of %u", gpu->process_slots_free, gpu->process_slots);
		table_add(&table, "%s of %s", left, all);
		table_add(&table, "%s", state_of(gpu));
	}
	table_print(&table, command, out);
}

/* ---- clients of the graphics driver ------------------------------------------------------------- */

static void add_client(struct table *table, const char *gpu, const struct gpuarb_client *client)
{
	char user[PRINT_USER], vram[PRINT_BYTES], gtt[PRINT_BYTES];

	print_user(client->uid, user);
	print_bytes(client->vram, vram);
	print_bytes(client->gtt, gtt);
	table_add(table, "%s", gpu);
	table_add(table, "%s", client->draws ? "yes" : "no");
	table_add(table, "%.0f%%", client->gfx_share * 100);
	table_add(table, "%.0f%%", client->compute_share * 100);
	table_add(table, "%.0f%%", client->dma_share * 100);
	table_add(table, "%s", vram);
	table_add(table, "%s", gtt);
	table_number(table, client->lease);
	table_add(table, "%u", client->pid);
	table_add(table, "%s", user);
	table_add(table, "%s", client->command);
}

void client_table(const struct command *command, FILE *out)
{
	static const char *const heads[] = { "GPU", "DRAWS", "GFX", "COMPUTE", "DMA",     "VRAM",
					     "GTT", "LEASE", "PID", "USER",    "COMMAND", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_client *client;

		for (size_t n = 0; (client = gpuarb_view_client(command->view, i, n)); n++)
			add_client(&table, command->gpus[i].name, client);
	}
	if (table.n > 0)
		fputc('\n', out);
	table_print(&table, command, out);
}

/* ---- leases --------------------------------------------------------------------------------- */

/* A waiting lease has no partitions. */
static void add_partitions(struct table *table, const struct gpuarb_lease_info *lease)
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
	table_add(table, "%s%s", lease_text_state(&command->leases[l]),
		  gpuarb_view_drift(command->view, l, 0) ? ", drifts" : "");
}

static void add_lease(struct table *table, const struct command *command, const struct lent *all,
		      const struct gpuarb_lease_info *lease)
{
	char user[PRINT_USER], why[LEASE_TABLE_WHY];

	print_user(lease->owner_uid, user);
	lease_table_why(all, lease, why, sizeof(why));

	table_add(table, "%" PRIu64, lease->id);
	table_add(table, "%s", lease->name);
	lease_table_state(table, command, (size_t)(lease - all->leases));
	table_add(table, "%s", lease->lease_class);
	table_add(table, "%s", lease->tenant);
	table_add(table, "%s", user);
	table_number(table, lease->owner_pid);
	add_partitions(table, lease);
	table_add(table, "%s", why);
}

void lease_table(const struct command *command)
{
	static const char *const heads[] = { "ID",  "NAME", "STATE",  "CLASS", "TENANT", "USER",
					     "PID", "CUS",  "QUEUES", "GPU",   "REASON", NULL };
	const struct lent all = { command->leases, command->n_leases };
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < all.n; i++)
		add_lease(&table, command, &all, &all.leases[i]);
	table_print(&table, command, stdout);
	if (all.n == 0 && !command->no_legend)
		print_line(stdout, "No leases.");
}
