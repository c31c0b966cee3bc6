/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void notes_add(struct notes *notes, bool error, const char *format, ...)
{
	struct note *list;
	va_list ap;
	char *text;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0)
		return;

	list = reallocarray(notes->list, notes->n + 1, sizeof(*list));
	if (!list) {
		free(text);
		return;
	}
	notes->list = list;
	notes->list[notes->n++] = (struct note){ .error = error, .text = text };
}

bool notes_have_errors(const struct notes *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		if (notes->list[i].error)
			return true;
	return false;
}

void notes_done(struct notes *notes)
{
	for (size_t i = 0; i < notes->n; i++)
		free(notes->list[i].text);
	free(notes->list);
	*notes = (struct notes){ 0 };
}
