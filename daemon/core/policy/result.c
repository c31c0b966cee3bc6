/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ERRNO(id, error, word) -(error),
#define WORD(id, error, word) word,

static const int errnos[] = { RESULT_KINDS_ALL(ERRNO) };
const char *const result_words[] = { RESULT_KINDS_ALL(WORD) };

int result_set(struct result *result, enum result_kind kind, const char *format, ...)
{
	va_list args;

	result->kind = kind;
	va_start(args, format);
	vsnprintf(result->sentence, sizeof(result->sentence), format, args);
	va_end(args);
	return errnos[kind];
}

int result_refuse(struct result *result, const struct refusal *refusal)
{
	struct refusal *more = reallocarray(result->refusals, result->n_refusals + 1,
					    sizeof(*more));

	if (!more)
		return -ENOMEM;
	result->refusals = more;
	result->refusals[result->n_refusals++] = *refusal;
	return 0;
}

int result_refuse_all(struct result *result, enum result_kind kind, const struct refusal *refusal)
{
	char line[REFUSAL_TEXT];

	if (result_refuse(result, refusal) < 0)
		return result_set(result, RESULT_NO_MEMORY, "out of memory");
	refusal_line(refusal, NULL, line);
	return result_set(result, kind, "%s: %s", reason_names[refusal->reason], line);
}

void result_done(struct result *result)
{
	free(result->refusals);
	*result = (struct result){ 0 };
}
