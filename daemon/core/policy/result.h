/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The outcome of a decision: the error that a caller gets, as a sentence, with a refusal for
 * each GPU that refused. bus/bus-error.c has the table from kinds to D-Bus error names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "core/policy/refusal.h"

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
	RESULT_NO_MEMORY, /* D-Bus has an error name for it */
	RESULT_KINDS,
};

struct result {
	enum result_kind kind;
	char sentence[512];
	struct refusal *refusals; /* owned */
	size_t n_refusals;
	size_t deciding; /* the index of the refusal that the kind follows from */
};

/* Replaces kind and sentence, keeps the refusals. Returns the negative errno of the kind, so
 * that a decision can end in `return result_set(…)`. */
int result_set(struct result *result, enum result_kind kind, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Appends a copy. -ENOMEM. */
int result_refuse(struct result *result, const struct refusal *refusal);

/* For a request that is refused as a whole: appends the refusal and sets the kind, with the
 * sentence of the refusal. Returns the errno of the kind. */
int result_refuse_all(struct result *result, enum result_kind kind, const struct refusal *refusal);

void result_done(struct result *result);
