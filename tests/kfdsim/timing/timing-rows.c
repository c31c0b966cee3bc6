/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/timing/timing-rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 32U

struct rows {
	char *names[FIELDS_MAX];
	size_t n_names;
	char *(*rows)[FIELDS_MAX];
	size_t n;
};

static void closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

struct rows *rows_free(struct rows *rows)
{
	for (size_t i = 0; rows && i < FIELDS_MAX; i++)
		free(rows->names[i]);
	for (size_t i = 0; rows && i < rows->n; i++)
		for (size_t f = 0; f < FIELDS_MAX; f++)
			free(rows->rows[i][f]);
	if (rows)
		free(rows->rows);
	free(rows);
	return NULL;
}

static int split(char *line, char *fields[FIELDS_MAX], size_t *ret_n)
{
	char *field;

	line[strcspn(line, "\r\n")] = '\0';
	for (*ret_n = 0; (field = strsep(&line, "\t")); (*ret_n)++) {
		if (*ret_n == FIELDS_MAX)
			return -EINVAL;
		fields[*ret_n] = strdup(field);
		if (!fields[*ret_n])
			return -ENOMEM;
	}
	return 0;
}

static int add_row(struct rows *rows, char *line)
{
	char *(*grown)[FIELDS_MAX] = reallocarray(rows->rows, rows->n + 1, sizeof(*grown));
	size_t n;
	int r;

	if (!grown)
		return -ENOMEM;
	rows->rows = grown;
	memset(&rows->rows[rows->n], 0, sizeof(*grown));
	r = split(line, rows->rows[rows->n++], &n);
	return r == 0 && n != rows->n_names ? -EINVAL : r;
}

int rows_read(const char *dir, const char *file, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *rows = calloc(1, sizeof(*rows));
	_cleanup_(freep) char *path = NULL, *line = NULL;
	_cleanup_(closep) FILE *stream = NULL;
	size_t size = 0;
	int r = 0;

	if (!rows || asprintf(&path, "%s/%s", dir, file) < 0)
		return -ENOMEM;
	stream = fopen(path, "re");
	if (!stream)
		return -errno;
	while (r == 0 && getline(&line, &size, stream) >= 0) {
		if (line[0] == '#' || line[0] == '\n')
			continue;
		r = rows->n_names == 0 ? split(line, rows->names, &rows->n_names)
				       : add_row(rows, line);
	}
	if (r == 0 && !feof(stream))
		r = -errno;
	if (r < 0)
		return r;
	if (rows->n_names == 0)
		return -EINVAL;
	*ret = TAKE_PTR(rows);
	return 0;
}

size_t rows_count(const struct rows *rows)
{
	return rows->n;
}

const char *rows_text(const struct rows *rows, size_t row, const char *column)
{
	for (size_t i = 0; i < rows->n_names; i++)
		if (strcmp(rows->names[i], column) == 0)
			return rows->rows[row][i];
	return "";
}

double rows_number(const struct rows *rows, size_t row, const char *column)
{
	const char *text = rows_text(rows, row, column);
	char *end;
	double number = strtod(text, &end);

	return end > text && *end == '\0' ? number : NAN;
}
