/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const int errnos[RESULT_KINDS] = {
	[RESULT_INVALID_REQUEST] = -EINVAL,   [RESULT_INVALID_STATE] = -EBADFD,
	[RESULT_TOKEN_CONFLICT] = -EEXIST,    [RESULT_NOT_PERMITTED] = -EACCES,
	[RESULT_QUOTA_EXCEEDED] = -EDQUOT,    [RESULT_NO_CAPACITY] = -EBUSY,
	[RESULT_NEVER_FITS] = -ENOSPC,        [RESULT_NO_SUCH_GPU] = -ENODEV,
	[RESULT_NO_SUCH_LEASE] = -ENOENT,     [RESULT_NO_SUCH_TENANT] = -ESRCH,
	[RESULT_NOT_SUPPORTED] = -EOPNOTSUPP, [RESULT_NOT_SAVED] = -EIO,
	[RESULT_TOO_MANY_LEASES] = -EUSERS,   [RESULT_TIMED_OUT] = -ETIMEDOUT,
	[RESULT_SHUTDOWN] = -ESHUTDOWN,       [RESULT_NO_MEMORY] = -ENOMEM,
};

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
