/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "client/output/print.h"

#define CELL_COLUMNS 32U
#define LAST_COLUMNS 96U /* nothing stands behind it */

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

static const char *cell_text(const char *cell)
{
	return cell && *cell ? cell : "-";
}

/* Columns that escaped text takes. */
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
