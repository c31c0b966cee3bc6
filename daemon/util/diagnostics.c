/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/diagnostics.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/text.h"

/* Of a text that quotes a file; NULL: no memory. */
static char *cleaned(const char *text, size_t length)
{
	char *clean = malloc(length + 1);

	if (clean)
		text_clean(clean, length + 1, text);
	return clean;
}

void diagnostics_add(struct diagnostics *diagnostics, bool error, const char *format, ...)
{
	struct diagnostic *list;
	va_list ap;
	char *raw, *text;
	int r;

	va_start(ap, format);
	r = vasprintf(&raw, format, ap);
	va_end(ap);
	if (r < 0)
		return;
	text = cleaned(raw, (size_t)r);
	free(raw);

	list = text ? reallocarray(diagnostics->list, diagnostics->n + 1, sizeof(*list)) : NULL;
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
