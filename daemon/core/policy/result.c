/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/policy/result.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const int errnos[VERDICT_KINDS] = {
	[VERDICT_INVALID_REQUEST] = -EINVAL,   [VERDICT_INVALID_STATE] = -EBADFD,
	[VERDICT_TOKEN_CONFLICT] = -EEXIST,    [VERDICT_NOT_PERMITTED] = -EACCES,
	[VERDICT_QUOTA_EXCEEDED] = -EDQUOT,    [VERDICT_NO_CAPACITY] = -EBUSY,
	[VERDICT_NEVER_FITS] = -ENOSPC,        [VERDICT_NO_SUCH_GPU] = -ENODEV,
	[VERDICT_NO_SUCH_LEASE] = -ENOENT,     [VERDICT_NO_SUCH_TENANT] = -ESRCH,
	[VERDICT_NOT_SUPPORTED] = -EOPNOTSUPP, [VERDICT_NOT_SAVED] = -EIO,
	[VERDICT_TOO_MANY_LEASES] = -EUSERS,   [VERDICT_TIMED_OUT] = -ETIMEDOUT,
	[VERDICT_SHUTDOWN] = -ESHUTDOWN,       [VERDICT_NO_MEMORY] = -ENOMEM,
};

int verdict_set(struct verdict *verdict, enum verdict_kind kind, const char *format, ...)
{
	va_list args;

	verdict->kind = kind;
	va_start(args, format);
	vsnprintf(verdict->sentence, sizeof(verdict->sentence), format, args);
	va_end(args);
	return errnos[kind];
}

int verdict_refuse(struct verdict *verdict, const struct refusal *refusal)
{
	struct refusal *more = reallocarray(verdict->refusals, verdict->n_refusals + 1,
					    sizeof(*more));

	if (!more)
		return -ENOMEM;
	verdict->refusals = more;
	verdict->refusals[verdict->n_refusals++] = *refusal;
	return 0;
}

void verdict_done(struct verdict *verdict)
{
	free(verdict->refusals);
	*verdict = (struct verdict){ 0 };
}

const char *reason_name(enum reason reason)
{
	static const char *const names[REASONS] = {
		[REASON_CUS] = "cus",
		[REASON_SHADER_ENGINES] = "shader-engines",
		[REASON_SHAPE] = "shape",
		[REASON_QUEUES] = "queues",
		[REASON_PROCESSES] = "processes",
		[REASON_SDMA] = "sdma",
		[REASON_VRAM] = "vram",
		[REASON_COOPERATIVE] = "cooperative",
		[REASON_QUOTA] = "quota",
		[REASON_POLICY] = "policy",
		[REASON_DRAIN] = "drain",
		[REASON_UNMANAGED] = "unmanaged",
		[REASON_OVERSUBSCRIBED] = "oversubscribed",
		[REASON_ABSENT] = "absent",
	};

	return names[reason];
}
