/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Errors and warnings, collected while files are read, and printed or logged by the caller.
 * Initialise with zeros; free with diagnostics_done().
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/base.h"

struct diagnostic {
	bool error; /* false: a warning about something that was ignored or guessed */
	char *text;
};

struct diagnostics {
	struct diagnostic *list;
	size_t n;
};

/* Text that is not printable, as a file that is quoted may have it, becomes '?'. Drops the diagnostic if
 * there is no memory. */
void diagnostics_add(struct diagnostics *diagnostics, bool error, const char *format, ...)
	PRINTF_LIKE(3, 4);
bool diagnostics_have_errors(const struct diagnostics *diagnostics);
void diagnostics_done(struct diagnostics *diagnostics);
