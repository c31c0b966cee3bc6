/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void diagnostics_add(struct diagnostics *diagnostics, bool error, const char *format, ...)
{
	struct diagnostic *list;
	va_list ap;
	char *text;
	int r;

	va_start(ap, format);
	r = vasprintf(&text, format, ap);
	va_end(ap);
	if (r < 0)
		return;

	list = reallocarray(diagnostics->list, diagnostics->n + 1, sizeof(*list));
	if (!list) {
		free(text);
		return;
	}
	diagnostics->list = list;
	diagnostics->list[diagnostics->n++] = (struct diagnostic){ .error = error, .text = text };
}

bool diagnostics_have_errors(const struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		if (diagnostics->list[i].error)
			return true;
	return false;
}

void diagnostics_done(struct diagnostics *diagnostics)
{
	for (size_t i = 0; i < diagnostics->n; i++)
		free(diagnostics->list[i].text);
	free(diagnostics->list);
	*diagnostics = (struct diagnostics){ 0 };
}
