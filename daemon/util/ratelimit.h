/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * How much a user may say: so many times in each period, counted from the first of them. For
 * users beyond those that are told apart, together.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define RATELIMIT_USEC UINT64_C(30000000)
#define RATELIMIT_TIMES 100U
#define RATELIMIT_USERS 32U

struct ratelimit {
	struct ratelimit_user {
		uid_t uid;
		uint64_t since; /* 0: nobody's */
		uint64_t times;
	} users[RATELIMIT_USERS + 1]; /* the last: of all others */
};

/* Whether this once more is within it. ret_times: in this period, with this one.
 * ret_withheld: how many were not, in the one before it; at the first of a period. now is not
 * 0. */
bool ratelimit(struct ratelimit *ratelimit, uid_t uid, uint64_t now_usec, uint64_t *ret_times,
	       uint64_t *ret_withheld);
