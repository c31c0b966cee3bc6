/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Limits how many lines each user can cause in the log: RATELIMIT_TIMES in each period of
 * RATELIMIT_USEC, which starts with the first line. All users beyond RATELIMIT_USERS share one
 * count.
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
		uint64_t since; /* start of the period; 0: this entry is free */
		uint64_t times;
	} users[RATELIMIT_USERS + 1]; /* the last: all other users */
};

/* Counts one line of the user and returns whether it is within the limit. *ret_times: its number in
 * this period. *ret_withheld: on the first line of a period the number of lines over the limit in
 * the period before, else 0. now_usec must not be 0. */
bool ratelimit(struct ratelimit *ratelimit, uid_t uid, uint64_t now_usec, uint64_t *ret_times,
	       uint64_t *ret_withheld);
