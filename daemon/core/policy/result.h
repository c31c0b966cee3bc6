/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Why not: the error a caller gets, as one sentence and, where GPUs refused, a row for
 * each. bus/bus-error.c has the one table from kinds to error names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "core/mask/gpu-info.h"

enum result_kind {
	RESULT_OK,
	RESULT_INVALID_REQUEST,
	RESULT_INVALID_STATE,
	RESULT_TOKEN_CONFLICT,
	RESULT_NOT_PERMITTED,
	RESULT_QUOTA_EXCEEDED,
	RESULT_NO_CAPACITY,
	RESULT_NEVER_FITS,
	RESULT_NO_SUCH_GPU,
	RESULT_NO_SUCH_LEASE,
	RESULT_NO_SUCH_TENANT,
	RESULT_NOT_SUPPORTED,
	RESULT_NOT_SAVED,
	RESULT_TOO_MANY_LEASES,
	RESULT_TIMED_OUT,
	RESULT_SHUTDOWN,
	RESULT_NO_MEMORY, /* the bus's own NoMemory */
	RESULT_KINDS,
};

enum reason {
	REASON_CUS,
	REASON_SHADER_ENGINES,
	REASON_SHAPE,
	REASON_QUEUES,
	REASON_PROCESSES,
	REASON_SDMA,
	REASON_VRAM,
	REASON_COOPERATIVE,
	REASON_QUOTA,
	REASON_POLICY,
	REASON_DRAIN,
	REASON_UNMANAGED,
	REASON_OVERSUBSCRIBED,
	REASON_ABSENT,
	REASONS,
};

struct refusal {
	char gpu[GPU_NAME_MAX];
	enum reason reason;
	uint64_t asked, free;
	bool retry;      /* trying again may help */
	uint64_t behind; /* a lease that waits, and comes first; 0: none */
	char hint[192];  /* what would fit */
};

struct result {
	enum result_kind kind;
	char sentence[512];
	struct refusal *refusals; /* owned */
	size_t n_refusals;
};

/* Replaces what it held; always returns the negative errno that stands for the kind, so
 * that a decision can end in `return verdict_set(…)`. */
int result_set(struct result *result, enum result_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Keeps a copy of the row. -ENOMEM. */
int result_refuse(struct result *result, const struct refusal *refusal);

void result_done(struct result *result);
const char *reason_name(enum reason reason);
