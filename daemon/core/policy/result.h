/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The outcome of a decision: the error that a caller gets, as a sentence, with a refusal for
 * each GPU that refused. bus/bus-reply.c has their D-Bus error names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/base.h"
#include "core/policy/refusal.h"

/* Each kind with its errno and its word in saved state: their order may change. D-Bus has an error name for
 * NO_MEMORY. */
#define RESULT_KINDS_ALL(ROW)                           \
	ROW(OK, 0, "ok")                                \
	ROW(INVALID_REQUEST, EINVAL, "invalid-request") \
	ROW(INVALID_STATE, EBADFD, "invalid-state")     \
	ROW(TOKEN_CONFLICT, EEXIST, "token-conflict")   \
	ROW(NOT_PERMITTED, EACCES, "not-permitted")     \
	ROW(QUOTA_EXCEEDED, EDQUOT, "quota-exceeded")   \
	ROW(NO_CAPACITY, EBUSY, "no-capacity")          \
	ROW(NEVER_FITS, ENOSPC, "never-fits")           \
	ROW(NO_SUCH_GPU, ENODEV, "no-such-gpu")         \
	ROW(NO_SUCH_LEASE, ENOENT, "no-such-lease")     \
	ROW(NO_SUCH_TENANT, ESRCH, "no-such-tenant")    \
	ROW(NOT_SUPPORTED, EOPNOTSUPP, "not-supported") \
	ROW(NOT_SAVED, EIO, "not-saved")                \
	ROW(TOO_MANY_LEASES, EUSERS, "too-many-leases") \
	ROW(TIMED_OUT, ETIMEDOUT, "timed-out")          \
	ROW(SHUTDOWN, ESHUTDOWN, "shutdown")            \
	ROW(NO_MEMORY, ENOMEM, "no-memory")

#define RESULT_KIND(id, error, word) RESULT_##id,
enum result_kind { RESULT_KINDS_ALL(RESULT_KIND) RESULT_KINDS };

extern const char *const result_words[];

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
