/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/table.h"

#include <inttypes.h>
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

int table_check_columns(const struct command *command, const char *const *heads)
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

void table_done(struct table *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->cells[i]);
	free(table->cells);
}
