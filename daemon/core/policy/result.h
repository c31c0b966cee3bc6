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
#include "core/ledger/gpu-info.h"

enum verdict_kind {
	VERDICT_OK,
	VERDICT_INVALID_REQUEST,
	VERDICT_INVALID_STATE,
	VERDICT_TOKEN_CONFLICT,
	VERDICT_NOT_PERMITTED,
	VERDICT_QUOTA_EXCEEDED,
	VERDICT_NO_CAPACITY,
	VERDICT_NEVER_FITS,
	VERDICT_NO_SUCH_GPU,
	VERDICT_NO_SUCH_LEASE,
	VERDICT_NO_SUCH_TENANT,
	VERDICT_NOT_SUPPORTED,
	VERDICT_NOT_SAVED,
	VERDICT_TOO_MANY_LEASES,
	VERDICT_TIMED_OUT,
	VERDICT_SHUTDOWN,
	VERDICT_NO_MEMORY, /* the bus's own NoMemory */
	VERDICT_KINDS,
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

struct verdict {
	enum verdict_kind kind;
	char sentence[512];
	struct refusal *refusals; /* owned */
	size_t n_refusals;
};

/* Replaces what it held; always returns the negative errno that stands for the kind, so
 * that a decision can end in `return verdict_set(…)`. */
int verdict_set(struct verdict *verdict, enum verdict_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Keeps a copy of the row. -ENOMEM. */
int verdict_refuse(struct verdict *verdict, const struct refusal *refusal);

void verdict_done(struct verdict *verdict);
const char *reason_name(enum reason reason);
