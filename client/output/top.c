/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/top.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/output/gpu-table.h"
#include "client/output/lease-table.h"
#include "client/output/print.h"
#include "client/output/table.h"

#define LINE_HOME "\033[H"
#define LINE_REST "\033[K" /* clears what is right of the cursor */
#define PAGE_REST "\033[J" /* and below */

struct rows {
	const struct gpuarb_lease_info *leases;
	size_t n;
	const struct seen *seen;
};

static void add_head(struct table *table, const struct gpuarb_lease_info *lease)
{
	char user[PRINT_USER];

	print_user(lease->owner_uid, user);
	table_add(table, "%" PRIu64, lease->id);
	table_add(table, "%s", lease->name);
	table_add(table, "%s", lease->state);
	table_add(table, "%s", lease->lease_class);
	table_add(table, "%s", user);
}

static void add_tail(struct table *table, const struct rows *rows,
		     const struct gpuarb_lease_info *lease)
{
	const struct lent all = { rows->leases, rows->n };
	char why[LEASE_TABLE_WHY];

	lease_table_why(&all, lease, why, sizeof(why));
	table_add(table, "%" PRIu64, lease->disturbances);
	table_add(table, "%s", why);
}

static void add_part(struct table *table, const struct rows *rows, size_t l, size_t i)
{
	const struct gpuarb_partition *partition = &rows->leases[l].partitions[i];
	struct seen_use use;

	table_add(table, "%s", partition->gpu);
	table_add(table, "%u", partition->cus);
	if (seen_use(rows->seen, rows->leases, rows->n, l, i, &use))
		table_add(table, "%u of %u", use.queues, partition->queues);
	else
		table_add(table, "? of %u", partition->queues);
}

static void add_lease(struct table *table, const struct rows *rows, size_t l)
{
	const struct gpuarb_lease_info *lease = &rows->leases[l];

	for (size_t i = 0; i < lease->n_partitions; i++) {
		add_head(table, lease);
		add_part(table, rows, l, i);
		add_tail(table, rows, lease);
	}
	if (lease->n_partitions > 0)
		return;
	add_head(table, lease);
	for (size_t i = 0; i < 3; i++)
		table_add(table, "-");
	add_tail(table, rows, lease);
}

static void add_unmanaged(struct table *table, const struct gpuarb_gpu *gpu)
{
	for (size_t i = 0; i < gpu->n_unmanaged; i++) {
		const struct gpuarb_process *process = &gpu->unmanaged[i];
		char user[PRINT_USER];

		print_user(process->uid, user);
		table_add(table, "-");
		table_add(table, "%s", process->command);
		table_add(table, "unmanaged");
		table_add(table, "-");
		table_add(table, "%s", user);
		table_add(table, "%s", gpu->name);
		table_add(table, "-");
		table_add(table, "%u", process->queues);
		table_add(table, "-");
		table_add(table, "pid %u", process->pid);
	}
}

void top_print(const struct command *command, const struct gpuarb_view *view,
	       const struct seen *seen, FILE *out)
{
	static const char *const heads[] = { "ID",        "NAME",   "STATE", "CLASS",
					     "USER",      "GPU",    "CUS",   "USED QUEUES",
					     "DISTURBED", "REASON", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads };
	struct rows rows = { .seen = seen };
	const struct gpuarb_gpu *gpus;
	size_t n = gpuarb_view_gpus(view, &gpus);

	rows.n = gpuarb_view_leases(view, &rows.leases);
	gpu_table(command, gpus, n, out);
	for (size_t l = 0; l < rows.n; l++)
		add_lease(&table, &rows, l);
	for (size_t i = 0; i < n; i++)
		add_unmanaged(&table, &gpus[i]);
	if (n > 0 && table.n > 0)
		fputc('\n', out);
	table_print(&table, command, out);
}

static unsigned screen_lines(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

static void put_lines(const char *text)
{
	unsigned left = screen_lines();

	fputs(LINE_HOME, stdout);
	for (; *text && left > 1; left--) {
		size_t n = strcspn(text, "\n");

		printf("%.*s" LINE_REST "\n", (int)n, text);
		text += n + (text[n] != '\0');
	}
	fputs(PAGE_REST, stdout);
	fflush(stdout);
}

void top_draw(const struct command *command, const struct gpuarb_view *view,
	      const struct seen *seen, const char *note)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return; /* the next second may have memory */

	print_line(out, "gpuarbctl top: q quits%s%s", *note ? "; " : "", note);
	fputc('\n', out);
	if (view)
		top_print(command, view, seen, out);
	if (fclose(out) == 0)
		put_lines(text);
	free(text);
}
