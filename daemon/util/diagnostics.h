/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sentences for people, collected where something is read and told where it is handled.
 * Zero-initialise; notes_done() when finished.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/base.h"

struct diagnostic {
	bool error; /* false: something was degraded, and this is how */
	char *text;
};

struct diagnostics {
	struct diagnostic *list;
	size_t n;
};

/* Running out of memory loses the sentence, never the caller. */
void diagnostics_add(struct diagnostics *diagnostics, bool error, const char *format, ...)
	PRINTF_LIKE(3, 4);
bool diagnostics_have_errors(const struct diagnostics *diagnostics);
void diagnostics_done(struct diagnostics *diagnostics);
