/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tables of measurements: lines of fields apart by tabs, after comments and a line of names. */

#include <stddef.h>

#include "util/base.h"

struct rows;

/* -errno of opening it, -EINVAL: no line of names, or a row with another number of fields;
 * -ENOMEM. */
int rows_read(const char *dir, const char *file, struct rows **ret);
struct rows *rows_free(struct rows *rows);
DEFINE_CLEANUP(struct rows *, rows_free)

size_t rows_count(const struct rows *rows);

/* "" where there is no such column. */
const char *rows_text(const struct rows *rows, size_t row, const char *column);

/* NAN where it is no number. */
double rows_number(const struct rows *rows, size_t row, const char *column);
