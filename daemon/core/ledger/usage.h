/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Accounting: how long, with how many CUs and queues, and in which class each user held leases of a
 * tenant, waited for them, and was refused. Rows are of an hour, later of a day (UTC), and never more
 * than USAGE_ROWS: the oldest go.
 *
 * Durations are differences of CLOCK_BOOTTIME, and the clock of the day only chooses the row. A jump of
 * that clock therefore puts time into another row, and makes none.
 */

#include "core/ledger/counters.h"
#include "util/base.h"

#define USAGE_ROWS 2048U
#define USAGE_SUMS 7U

struct usage_row {
	uint64_t start; /* seconds of CLOCK_REALTIME */
	uint32_t span;  /* seconds */
	uid_t uid;
	enum lease_class class;
	char tenant[REQUEST_TEXT]; /* "": the user matches none */

	union {
		uint64_t sums[USAGE_SUMS]; /* in the order of the saved text */
		struct {
			uint64_t leases, held_usec;
			uint64_t cu_usec,
				queue_usec; /* held: CUs, and queues, times microseconds */
			uint64_t waits, waited_usec;
			uint64_t refusals;
		};
	};
};

struct usage_now {
	uint64_t usec;    /* of CLOCK_BOOTTIME */
	uint64_t seconds; /* of CLOCK_REALTIME */
};

struct lease;
struct usage;

/* now: where the counters begin. */
int usage_new(const struct usage_now *now, struct usage **ret);
struct usage *usage_free(struct usage *usage);
DEFINE_CLEANUP(struct usage *, usage_free)

/* Adds the time since the last call for this lease, with the CUs and queues that it had since then.
 * removed: this is the last call for it. */
void usage_lease(struct usage *usage, struct lease *lease, bool removed,
		 const struct usage_now *now);

void usage_refused(struct usage *usage, uid_t uid, const char *tenant, enum lease_class lease_class,
		   enum reason reason, const struct usage_now *now);

/* Grants, waits and durations are counted by usage_lease(), refusals by usage_refused(), the rest by the
 * caller. */
struct counters *usage_counters(struct usage *usage);

/* The sums of the rows that end after `since` (seconds), a row for each tenant, user and class, sorted;
 * *ret is for free(). *ret_from: when the first of them begins; 0: there is none. -ENOMEM. */
int usage_sum(const struct usage *usage, uint64_t since, struct usage_row **ret, size_t *ret_n,
	      uint64_t *ret_from);

/* The accounting as text, for usage_parse() of another process; for free(). boot: the id of this boot.
 * usec: every lease was added at this time. -ENOMEM. */
int usage_format(const struct usage *usage, const char *boot, uint64_t usec, char **ret);

/* Replaces what `usage` has. Leases that were added by an earlier process of the same boot are not
 * counted again. -EINVAL: not such a text; -ENOMEM. After a failure nothing has changed. */
int usage_parse(struct usage *usage, const char *text, const char *boot);
