/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/table.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

#include "client/output/fail.h"
#include "client/output/print.h"
#include "util/number.h"

#define CELL_COLUMNS 32U
#define LAST_COLUMNS 96U /* of the last column */
#define TEXT_MOST 1024U  /* characters of a text that are measured */

void table_text(struct table *table, const char *text)
{
	char **cells;

	if (table->n == table->room) {
		cells = reallocarray(table->cells, table->room * 2 + 32, sizeof(*cells));
		if (!cells)
			return;
		table->cells = cells;
		table->room = table->room * 2 + 32;
	}

	table->cells[table->n++] = text ? print_escape(text, SIZE_MAX) : NULL;
}

void table_add(struct table *table, const char *format, ...)
{
	_cleanup_(freep) char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	table_text(table, text);
}

void table_count(struct table *table, uint64_t number)
{
	table_add(table, "%" PRIu64, number);
}

void table_number(struct table *table, uint64_t number)
{
	if (number > 0)
		table_count(table, number);
	else
		table_text(table, "-");
}

static const char *cell_text(const char *cell)
{
	return cell && *cell ? cell : "-";
}

/* Columns of a terminal that the escaped text takes. */
static size_t width_of(const char *text)
{
	wchar_t wide[TEXT_MOST];
	size_t n = mbstowcs(wide, text, TEXT_MOST);
	int width = n == (size_t)-1 ? -1 : wcswidth(wide, n);

	return width < 0 ? strlen(text) : (size_t)width;
}

/* ---- layout ------------------------------------------------------------------------------- */

#define GAP 2U
#define NAME_SHORT 16U /* columns of a name on a terminal that is too narrow for all columns */
#define NAME_LEAST 6U  /* and where nothing but names can be left out */
#define LAST_MIN 16U   /* columns of a wide last column, before other columns are left out */
#define LAST_LEAST 6U  /* and when nothing more can be left out */

/* Which columns are printed, in which order, and how wide each is. */
struct layout {
	size_t columns[TABLE_COLUMNS], n;
	size_t widths[TABLE_COLUMNS]; /* by column of the table */
};

static size_t count_columns(const struct table *table)
{
	size_t columns = 0;

	while (table->heads[columns])
		columns++;
	return columns;
}

static void measure(const struct table *table, bool heads, size_t columns, size_t *widths)
{
	for (size_t c = 0; c < columns; c++)
		widths[c] = heads ? strlen(table->heads[c]) : 0;
	for (size_t i = 0; i < table->n; i++) {
		size_t width = width_of(cell_text(table->cells[i])), c = i % columns;

		if (width > widths[c])
			widths[c] = width;
	}
}

/* No cell of a list is wider, unless the list is wide. */
static void limit(size_t columns, size_t *widths)
{
	for (size_t c = 0; c < columns; c++) {
		size_t most = c + 1 < columns ? CELL_COLUMNS : LAST_COLUMNS;

		if (widths[c] > most)
			widths[c] = most;
	}
}

/* Heads are named in any case, and without what precedes a colon: "cus" is "FREE: CUS". */
static bool is_head(const char *head, const char *name, size_t n)
{
	const char *colon = strchr(head, ':');

	if (colon)
		head = colon + 2;
	return strlen(head) == n && strncasecmp(head, name, n) == 0;
}

/* False: no column of this table was named. */
static bool select_columns(const struct table *table, const char *names, struct layout *layout)
{
	for (const char *name = names; *name;) {
		size_t n = strcspn(name, ",");

		for (size_t c = 0; table->heads[c] && layout->n < TABLE_COLUMNS; c++)
			if (is_head(table->heads[c], name, n))
				layout->columns[layout->n++] = c;
		name += n + (name[n] == ',');
	}
	return layout->n > 0;
}

/* Of the last column, no more than so much counts. */
static size_t total(const struct layout *layout, size_t last_most)
{
	size_t sum = 0, last = layout->widths[layout->columns[layout->n - 1]];

	for (size_t i = 0; i + 1 < layout->n; i++)
		sum += layout->widths[layout->columns[i]] + GAP;
	return sum + (last < last_most ? last : last_most);
}

static void leave_out(struct layout *layout, size_t i)
{
	layout->n--;
	memmove(&layout->columns[i], &layout->columns[i + 1],
		(layout->n - i) * sizeof(layout->columns[0]));
}

/* Whether no row has anything in the column. */
static bool is_empty(const struct table *table, size_t column, size_t columns)
{
	for (size_t i = column; i < table->n; i += columns)
		if (strcmp(cell_text(table->cells[i]), "-") != 0)
			return false;
	return true;
}

/* Makes a column of names narrower, instead of leaving it out. */
static bool shorten_name(const struct table *table, struct layout *layout, size_t i, size_t excess)
{
	size_t column = layout->columns[i], *name = &layout->widths[column];

	if (strcmp(table->heads[column], "NAME") != 0 || *name < excess + NAME_LEAST)
		return false;
	*name -= excess;
	return true;
}

/* All columns were asked for: only names become shorter. */
static void fit_selected(const struct table *table, size_t width, struct layout *layout)
{
	for (size_t i = 0; i < layout->n && total(layout, SIZE_MAX) > width; i++) {
		size_t most = layout->widths[layout->columns[i]], excess;

		excess = total(layout, SIZE_MAX) - width;
		if (most > NAME_LEAST)
			shorten_name(table, layout, i, min_u64(excess, most - NAME_LEAST));
	}
}

/* Leaves out empty columns, cuts names, then leaves out columns until the rest fits, then cuts the last
 * one. */
static void fit(const struct table *table, size_t width, size_t columns, struct layout *layout)
{
	size_t *last;

	for (size_t i = layout->n; i-- > 1 && total(layout, SIZE_MAX) > width;)
		if (is_empty(table, layout->columns[i], columns))
			leave_out(layout, i);
	for (size_t i = 0; i + 1 < layout->n && total(layout, SIZE_MAX) > width; i++) {
		size_t *name = &layout->widths[layout->columns[i]];

		if (strcmp(table->heads[layout->columns[i]], "NAME") == 0 && *name > NAME_SHORT)
			*name = NAME_SHORT;
	}
	for (char rank = '9'; rank > '0' && total(layout, LAST_MIN) > width; rank--) {
		for (size_t i = layout->n; i-- > 0 && total(layout, LAST_MIN) > width;) {
			if (!table->keep || table->keep[layout->columns[i]] != rank ||
			    shorten_name(table, layout, i, total(layout, LAST_MIN) - width))
				continue;
			leave_out(layout, i);
		}
	}
	last = &layout->widths[layout->columns[layout->n - 1]];
	if (total(layout, SIZE_MAX) > width)
		*last = width > total(layout, LAST_LEAST) ? width - total(layout, 0) : LAST_LEAST;
}

static void lay_out(const struct table *table, const struct command *command, size_t columns,
		    struct layout *ret)
{
	*ret = (struct layout){ .n = 0 };
	measure(table, !command->no_legend, columns, ret->widths);
	if (!command->wide)
		limit(columns, ret->widths);
	if (command->columns && select_columns(table, command->columns, ret)) {
		if (command->width > 0)
			fit_selected(table, command->width, ret);
		return;
	}
	for (size_t c = 0; c < columns; c++)
		if (command->wide || !table->keep || table->keep[c] != 'w')
			ret->columns[ret->n++] = c;
	if (command->width > 0)
		fit(table, command->width, columns, ret);
}

/* ---- printing ----------------------------------------------------------------------------- */

static const char *state_colour(const char *state)
{
	static const struct {
		const char *part, *colour;
	} colours[] = {
		{ "OVERSUBSCRIBED", COLOUR_ALARM },
		{ "drifts", COLOUR_ALARM },
		{ "disturbed", COLOUR_ALARM },
		{ "revoking", COLOUR_ALARM },
		{ "ending", COLOUR_ALARM },
		{ "unmanaged", COLOUR_WAIT },
		{ "waiting", COLOUR_WAIT },
		{ "activating", COLOUR_WAIT },
		{ "paused", COLOUR_WAIT },
		{ "inactive", COLOUR_WAIT },
		{ "draining", COLOUR_WAIT },
		{ "granted", COLOUR_GOOD },
		{ "ok", COLOUR_GOOD },
	};

	for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
		if (strstr(state, colours[i].part))
			return colours[i].colour;
	return "";
}

static void print_cell(const struct table *table, const struct command *command, size_t column,
		       const char *text, FILE *out)
{
	bool colour = command->colour && strcmp(table->heads[column], "STATE") == 0 &&
		      text != table->heads[column];
	const char *code = colour ? state_colour(text) : "";

	fprintf(out, "%s%s%s", code, text, *code ? COLOUR_NONE : "");
}

static void print_row(const struct table *table, const struct command *command,
		      const struct layout *layout, const char *const *row, FILE *out)
{
	for (size_t i = 0; i < layout->n; i++) {
		size_t c = layout->columns[i], width = width_of(row[c]);
		char *cut = width > layout->widths[c] ? print_escape(row[c], layout->widths[c])
						      : NULL;

		print_cell(table, command, c, cut ? cut : row[c], out);
		if (cut)
			width = width_of(cut);
		free(cut);
		if (i + 1 < layout->n)
			fprintf(out, "%*s", (int)(layout->widths[c] - width + GAP), "");
	}
	fputc('\n', out);
}

void table_print(const struct table *table, const struct command *command, FILE *out)
{
	size_t columns = count_columns(table);
	struct layout layout;

	if (table->n == 0)
		return;
	lay_out(table, command, columns, &layout);
	if (!command->no_legend)
		print_row(table, command, &layout, table->heads, out);

	for (size_t i = 0; i + columns <= table->n; i += columns) {
		const char *row[TABLE_COLUMNS];

		for (size_t c = 0; c < columns; c++)
			row[c] = cell_text(table->cells[i + c]);
		print_row(table, command, &layout, row, out);
	}
}

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->cells[i]);
	free(table->cells);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

static const char *state_of(const struct command *command, const struct gpuarb_gpu *gpu,
			    char kept[static 32])
{
	size_t i = (size_t)(gpu - command->gpus);
	uint64_t barred_for = gpuarb_view_barred_for(command->view, i);

	if (gpu->oversubscribed)
		return gpu->draining ? "OVERSUBSCRIBED, draining" : "OVERSUBSCRIBED";
	if (gpuarb_view_vram_pressure(command->view, i))
		return gpu->draining ? "low on memory, draining" : "low on memory";
	snprintf(kept, 32, "kept for %" PRIu64, barred_for);
	return gpu->draining                              ? "draining"
	       : barred_for                               ? kept
	       : gpuarb_view_named_only(command->view, i) ? "only by name"
							  : "ok";
}

void gpu_table(const struct command *command, FILE *out)
{
	static const char *const heads[] = { "GPU",       "DEVICE", "TARGET", "FREE: CUS", "QUEUES",
					     "PROCESSES", "VRAM",   "STATE",  NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "05823490" };

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_gpu *gpu = &command->gpus[i];
		char left[PRINT_BYTES], all[PRINT_BYTES], kept[32];

		if (!gpu_is_listed(command, gpu))
			continue;
		print_bytes(gpu->vram_free, left);
		print_bytes(gpu->vram_bytes, all);
		TABLE_CELLS(&table, gpu->name, gpu->device, gpu->gfx_target);
		table_add(&table, "%u of %u", gpu->cus_free, gpu->cus);
		table_add(&table, "%u of %u", gpu->queue_slots_free, gpu->queue_slots);
		table_add(&table, "%u of %u", gpu->process_slots_free, gpu->process_slots);
		table_add(&table, "%s of %s%s", left, all,
			  gpuarb_view_system_memory(command->view, i) ? " RAM" : "");
		TABLE_CELLS(&table, state_of(command, gpu, kept));
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
	TABLE_CELLS(table, gpu, client->draws ? "yes" : "no");
	table_add(table, "%.0f%%", client->gfx_share * 100);
	table_add(table, "%.0f%%", client->compute_share * 100);
	table_add(table, "%.0f%%", client->dma_share * 100);
	TABLE_CELLS(table, vram, gtt);
	table_number(table, client->lease);
	TABLE_CELLS(table, client->pid, user, client->command);
}

void client_table(const struct command *command, FILE *out)
{
	static const char *const heads[] = { "GPU", "DRAWS", "GFX", "COMPUTE", "DMA",     "VRAM",
					     "GTT", "LEASE", "PID", "USER",    "COMMAND", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "00678593420" };

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

bool gpu_is_listed(const struct command *command, const struct gpuarb_gpu *gpu)
{
	uint64_t index;

	if (!command->filter.gpu || strcmp(command->filter.gpu, gpu->name) == 0)
		return true;
	return number_parse(command->filter.gpu, 0, UINT64_MAX, &index) == 0 &&
	       index == (uint64_t)(gpu - command->gpus);
}

static bool has_listed_gpu(const struct command *command, const struct gpuarb_lease_info *lease)
{
	for (size_t i = 0; i < command->n_gpus; i++)
		if (gpu_is_listed(command, &command->gpus[i]) &&
		    partition_on_gpu(lease, command->gpus[i].name))
			return true;
	return false;
}

/* ---- what the command line asks of a list --------------------------------------------------- */

static int check_columns(const struct command *command, const char *const *heads)
{
	const struct table table = { .heads = heads };
	char all[TABLE_COLUMNS * 16] = "";

	for (const char *name = command->columns; *name;) {
		size_t n = strcspn(name, ","), c = 0;

		while (heads[c] && !is_head(heads[c], name, n))
			c++;
		if (c == count_columns(&table)) {
			for (c = 0; heads[c]; c++)
				snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
					 c > 0 ? ", " : "", heads[c]);
			return fail(command, EXIT_USAGE, "no column '%.*s': there are %s",
				    (int)(n > 80 ? 80 : n), name, all);
		}
		name += n + (name[n] == ',');
	}
	return EXIT_OK;
}

int list_check(const struct command *command, const char *const *heads)
{
	const char *user = command->filter.user, *gpu = command->filter.gpu;
	uint64_t uid;
	bool found = !gpu;

	if (user && number_parse(user, 0, UINT32_MAX, &uid) < 0 && !getpwnam(user))
		return fail(command, EXIT_USAGE, "--user=%.80s: there is no such user", user);
	for (size_t i = 0; i < command->n_gpus; i++)
		found |= gpu_is_listed(command, &command->gpus[i]);
	if (!found)
		return fail_gpu(command, gpu);
	return command->columns && heads ? check_columns(command, heads) : EXIT_OK;
}

bool user_is_listed(const struct command *command, uint32_t uid)
{
	const char *user = command->filter.user;
	char name[PRINT_USER];
	uint64_t number;

	if (!user)
		return true;
	print_user(uid, name);
	return strcmp(user, name) == 0 ||
	       (number_parse(user, 0, UINT32_MAX, &number) == 0 && number == uid);
}

bool lease_is_listed(const struct command *command, const struct gpuarb_lease_info *lease)
{
	if (!user_is_listed(command, lease->owner_uid))
		return false;
	if (command->filter.tenant && strcmp(command->filter.tenant, lease->tenant) != 0)
		return false;
	if (command->filter.state && strcmp(command->filter.state, lease_text_state(lease)) != 0 &&
	    strcmp(command->filter.state, lease->state) != 0)
		return false;
	return !command->filter.gpu || has_listed_gpu(command, lease);
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
