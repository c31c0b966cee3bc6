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

/*
 * Why a request does not fit now, as a set of its wants: they name fewer GPUs that take one of them than
 * they are (Hall's theorem). As long as that is so, the other wants and GPUs do not matter. GPUs and wants
 * are bits.
 */
struct bottleneck {
	uint64_t wants;
	uint64_t gpus;     /* that these wants name; 0: there is no such set */
	uint64_t refusing; /* of these: they take none of the wants */
	uint64_t unknown;  /* of these: they may refuse or not, as something changed there */
	unsigned spare;    /* the request does not fit while more than so many refuse */
	unsigned deciding; /* the GPU of the refusal that decides */
	bool outdated;     /* something became free there since it refused */
	uint64_t charges;  /* arbiter->charges when the GPUs were compared with it */
};

static inline bool bottleneck_holds(const struct bottleneck *bottleneck)
{
	return (unsigned)__builtin_popcountll(bottleneck->refusing) > bottleneck->spare;
}

struct result {
	enum result_kind kind;
	char sentence[512];
	struct refusal *refusals; /* owned */
	size_t n_refusals;
	size_t deciding;              /* the index of the refusal that the kind follows from */
	struct bottleneck bottleneck; /* of RESULT_NO_CAPACITY and RESULT_QUOTA_EXCEEDED */
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
