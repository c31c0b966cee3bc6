/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sentences for people, collected where something is read and told where it is handled.
 * Zero-initialise; notes_done() when finished.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/base.h"

struct note {
	bool error; /* false: something was degraded, and this is how */
	char *text;
};

struct notes {
	struct note *list;
	size_t n;
};

/* Running out of memory loses the sentence, never the caller. */
void notes_add(struct notes *notes, bool error, const char *format, ...) PRINTF_LIKE(3, 4);
bool notes_have_errors(const struct notes *notes);
void notes_done(struct notes *notes);
