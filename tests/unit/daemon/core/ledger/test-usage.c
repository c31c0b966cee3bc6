/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/ledger/lease.h"
#include "lack.h"

#define HOUR UINT64_C(3600)
#define DAY (24 * HOUR)
#define BOOT "83f4125a-c704-43d6-b41b-51651821571c"
#define SECOND UINT64_C(1000000)

/* A day that began at midnight, and half an hour. */
#define MORNING (20000 * DAY + HOUR / 2)

struct book {
	struct usage *usage;
	struct usage_now now;
	struct lease_account accounts[64]; /* by lease: several structures stand for one */
	struct usage_row *rows;            /* of the last sum() */
	size_t n;
	uint64_t from;
};

static struct book book_new(void)
{
	struct book book = { .now = { 100 * SECOND, MORNING } };

	CHECK(usage_new(&book.now, &book.usage) == 0);
	return book;
}

static void book_done(struct book *book)
{
	free(book->rows);
	usage_free(book->usage);
}

static void pass(struct book *book, uint64_t seconds)
{
	book->now.usec += seconds * SECOND;
	book->now.seconds += seconds;
}

static struct lease *lease_of(const struct book *book, uint64_t id, uid_t uid, unsigned cus)
{
	struct lease *lease;

	CHECK(lease_new(&lease) == 0 && lease_make_partitions(lease, cus > 0) == 0);
	lease->id = id;
	lease->owner = uid;
	lease->class = CLASS_BESTEFFORT;
	lease->since_usec = book->now.usec;
	lease->state = cus > 0 ? STATE_GRANTED : STATE_WAITING;
	snprintf(lease->tenant, sizeof(lease->tenant), "lab");
	if (cus > 0) {
		lease->partitions[0].count = cus;
		lease->partitions[0].granted.queues = 2;
	}
	return lease;
}

static void tell(struct book *book, struct lease *lease)
{
	struct lease_account *account = &book->accounts[lease->id];

	CHECK(lease->id < ARRAY_SIZE(book->accounts));
	lease->account = *account;
	usage_lease(book->usage, lease, false, &book->now);
	*account = lease->account;
}

/* The sum of a user; all zero: there is none. */
static struct usage_row sum(struct book *book, uint64_t since, uid_t uid)
{
	struct usage_row none = { 0 };

	free(book->rows);
	book->rows = NULL;
	CHECK(usage_sum(book->usage, since, &book->rows, &book->n, &book->from) == 0);
	for (size_t i = 0; i < book->n; i++)
		if (book->rows[i].uid == uid)
			return book->rows[i];
	return none;
}

FIXTURE(struct book, book, *book = book_new(), book_done(book));

TEST_WITH(time_counts_with_the_cus_that_the_lease_had_meanwhile, struct book *book)
{
	_cleanup_(lease_freep) struct lease *lease = lease_of(book, 1, 1000, 10);
	struct usage_row row;

	tell(book, lease);
	pass(book, 60);
	lease->partitions[0].count = 30; /* it grew */
	tell(book, lease);
	pass(book, 10);
	lease->state = STATE_ENDING;
	usage_lease(book->usage, lease, true, &book->now);
	pass(book, 1000);
	row = sum(book, 0, 1000);
	CHECK(row.leases == 1 && row.held_usec == 70 * SECOND);
	CHECK(row.cu_usec == (60 * 10 + 10 * 30) * SECOND && row.queue_usec == 140 * SECOND);
	CHECK(row.waits == 0 && strcmp(row.tenant, "lab") == 0);
	CHECK(book->from == MORNING - HOUR / 2);
}

TEST_WITH(a_lease_waits_and_is_then_held_and_one_that_gives_up_holds_nothing, struct book *book)
{
	struct lease *waiting = lease_of(book, 1, 1000, 0), *granted;
	struct lease *vain = lease_of(book, 2, 1001, 0);
	struct usage_row row;

	tell(book, waiting);
	tell(book, vain);
	pass(book, 20);
	granted = lease_of(book, 1, 1000, 4);
	tell(book, granted);
	vain->state = STATE_ENDING;
	usage_lease(book->usage, vain, true, &book->now);
	pass(book, 5);
	tell(book, granted);
	row = sum(book, 0, 1000);
	CHECK(row.waits == 1 && row.waited_usec == 20 * SECOND);
	CHECK(row.leases == 1 && row.held_usec == 5 * SECOND);
	row = sum(book, 0, 1001);
	CHECK(row.waits == 1 && row.waited_usec == 20 * SECOND);
	CHECK(row.leases == 0 && row.held_usec == 0);
	lease_free(waiting);
	lease_free(granted);
	lease_free(vain);
}

TEST_WITH(a_restart_counts_a_lease_once_and_a_reboot_begins_anew, struct book *book)
{
	_cleanup_(lease_freep) struct lease *lease = lease_of(book, 1, 1000, 10);
	struct usage_row row;
	char *text;

	usage_refused(book->usage, 1000, "lab", CLASS_BESTEFFORT, REASON_CUS, &book->now);
	tell(book, lease);
	pass(book, 10);
	tell(book, lease);
	CHECK(usage_format(book->usage, BOOT, book->now.usec, &text) == 0);
	usage_free(book->usage);
	memset(book->accounts, 0, sizeof(book->accounts));
	CHECK(usage_new(&book->now, &book->usage) == 0 &&
	      usage_parse(book->usage, text, BOOT) == 0);
	pass(book, 3); /* until the next daemon has adopted it */
	tell(book, lease);
	row = sum(book, 0, 1000);
	CHECK(row.leases == 1 && row.held_usec == 13 * SECOND && row.refusals == 1);

	/* Numbers and clocks of another boot are others. */
	CHECK(usage_parse(book->usage, text, "another") == 0);
	tell(book, lease);
	CHECK(sum(book, 0, 1000).leases == 1);
	free(text);
}

TEST_WITH(a_clock_that_jumps_changes_no_duration, struct book *book)
{
	_cleanup_(lease_freep) struct lease *lease = lease_of(book, 1, 1000, 10);

	tell(book, lease);
	for (unsigned i = 0; i < 100; i++) {
		book->now.usec += SECOND;
		book->now.seconds = i % 2 ? MORNING : i % 3 ? MORNING + 400 * DAY : 0;
		tell(book, lease);
	}
	CHECK(sum(book, 0, 1000).held_usec == 100 * SECOND);
	CHECK(sum(book, 0, 1000).cu_usec == 1000 * SECOND);
}

TEST_WITH(only_what_ended_after_since_is_summed, struct book *book)
{
	for (unsigned i = 0; i < 10; i++) {
		usage_refused(book->usage, 1000, "lab", CLASS_REALTIME, REASON_CUS, &book->now);
		pass(book, HOUR);
	}
	CHECK(sum(book, 0, 1000).refusals == 10);
	CHECK(sum(book, MORNING + 7 * HOUR, 1000).refusals == 3);
	CHECK(book->from == MORNING - HOUR / 2 + 7 * HOUR);
	CHECK(sum(book, MORNING + 10 * HOUR, 1000).refusals == 0 && book->from == 0);

	/* After a day hours become a day, and the sums stay. */
	pass(book, 3 * DAY);
	usage_refused(book->usage, 1000, "lab", CLASS_REALTIME, REASON_CUS, &book->now);
	CHECK(sum(book, 0, 1000).refusals == 11);
	CHECK(sum(book, MORNING + 9 * HOUR, 1000).refusals == 11);
	CHECK(sum(book, MORNING + 2 * DAY, 1000).refusals == 1);
}

/* How often the duration was counted. */
static uint64_t times(struct book *book, enum duration duration)
{
	const struct histogram *histogram = &usage_counters(book->usage)->histograms[duration];
	uint64_t n = 0;

	for (size_t i = 0; i <= COUNTERS_BOUNDS; i++)
		n += histogram->counts[i];
	return n;
}

TEST_WITH(grants_waits_and_activations_are_counted_with_their_time, struct book *book)
{
	struct counters *counters = usage_counters(book->usage);
	struct lease *waiting = lease_of(book, 1, 1000, 0), *lease = lease_of(book, 2, 1000, 8);

	tell(book, waiting);
	tell(book, lease);
	CHECK(counters_row(counters, "lab")->events[COUNTER_GRANTS] == 1);
	CHECK(counters_row(counters, "lab")->events[COUNTER_WAITS] == 1);
	pass(book, 3);
	tell(book, waiting); /* it still waits */
	lease->state = STATE_INACTIVE;
	tell(book, lease);
	pass(book, 4);
	lease_free(waiting);
	waiting = lease_of(book, 1, 1000, 4);
	tell(book, waiting);
	CHECK(counters_row(counters, "lab")->events[COUNTER_GRANTS] == 2);
	CHECK(times(book, DURATION_WAIT) == 1);
	CHECK(counters->histograms[DURATION_WAIT].sum_usec == 7 * SECOND);
	lease->state = STATE_ACTIVATING;
	tell(book, lease);
	pass(book, 2);
	lease->state = STATE_GRANTED;
	tell(book, lease);
	CHECK(times(book, DURATION_ACTIVATION) == 1);
	CHECK(counters->histograms[DURATION_ACTIVATION].sum_usec == 2 * SECOND);
	lease->state = STATE_INACTIVE;
	tell(book, lease);
	lease->state = STATE_GRANTED; /* nobody had borrowed its CUs */
	tell(book, lease);
	CHECK(times(book, DURATION_ACTIVATION) == 2);
	CHECK(counters->histograms[DURATION_ACTIVATION].counts[0] == 1);
	CHECK(counters_row(counters, "lab")->events[COUNTER_GRANTS] == 2);
	lease_free(waiting);
	lease_free(lease);
}

TEST_WITH(counters_begin_with_the_process_and_a_wait_does_not, struct book *book)
{
	struct lease *granted = lease_of(book, 1, 1000, 8);
	struct lease *waiting = lease_of(book, 2, 1000, 0);

	granted->since_usec = waiting->since_usec = book->now.usec - 60 * SECOND;
	tell(book, granted);
	tell(book, waiting);
	CHECK(usage_counters(book->usage)->n == 0);
	CHECK(sum(book, 0, 1000).leases == 1); /* the accounting was lost with its file */
	lease_free(waiting);
	waiting = lease_of(book, 2, 1000, 4);
	tell(book, waiting);
	CHECK(counters_row(usage_counters(book->usage), "lab")->events[COUNTER_GRANTS] == 1);
	CHECK(usage_counters(book->usage)->histograms[DURATION_WAIT].sum_usec == 60 * SECOND);
	usage_refused(book->usage, 7, "lab", CLASS_BESTEFFORT, REASON_QUOTA, &book->now);
	CHECK(counters_row(usage_counters(book->usage), "lab")->refusals[REASON_QUOTA] == 1);
	lease_free(granted);
	lease_free(waiting);
}

TEST_WITH(the_accounting_is_bounded_and_forgets_the_oldest, struct book *book)
{
	char *text;

	for (uid_t uid = 0; uid < 2 * USAGE_ROWS; uid++) {
		usage_refused(book->usage, uid, "lab", CLASS_BESTEFFORT, REASON_CUS, &book->now);
		pass(book, 600);
	}
	CHECK(sum(book, 0, 0).refusals == 0 && book->n <= USAGE_ROWS && book->n > USAGE_ROWS / 2);
	CHECK(sum(book, 0, 2 * USAGE_ROWS - 1).refusals == 1);
	CHECK(usage_format(book->usage, BOOT, 1, &text) == 0);
	CHECK(strlen(text) < 1 << 20); /* state_file_read() reads no more */
	CHECK(usage_parse(book->usage, text, BOOT) == 0);
	free(text);

	/* Also if all of them come in one hour. */
	book->now.seconds += HOUR;
	for (uid_t uid = 0; uid < 2 * USAGE_ROWS; uid++)
		usage_refused(book->usage, uid, "lab", CLASS_BESTEFFORT, REASON_CUS, &book->now);
	CHECK(sum(book, 0, 5).refusals == 1 && book->n <= USAGE_ROWS);
}

TEST_WITH(a_damaged_text_changes_nothing, struct book *book)
{
	static const char *const bad[] = {
		"",
		"gpuarb-usage 2 boot 5\n",
		"gpuarb-usage 1 boot\n",
		"gpuarb-usage 1 boot 5\n1 2 3\n",
		"gpuarb-usage 1 boot 5\n3600 7 0 besteffort 1 1 1 1 1 1 1 lab\n",
		"gpuarb-usage 1 boot 5\n3600 3600 0 gold 1 1 1 1 1 1 1 lab\n",
		"gpuarb-usage 1 boot 5\n3600 3600 0 besteffort 1 1 1 1 1 1 1\n",
	};

	usage_refused(book->usage, 7, "lab", CLASS_BESTEFFORT, REASON_CUS, &book->now);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(usage_parse(book->usage, bad[i], BOOT) == -EINVAL);
	CHECK(sum(book, 0, 7).refusals == 1);
	CHECK(usage_parse(book->usage,
			  "gpuarb-usage 1 boot 5\n3600 3600 9 besteffort 1 1 1 1 1 1 4 two words\n",
			  BOOT) == 0);
	CHECK(sum(book, 0, 9).refusals == 4 && strcmp(book->rows[0].tenant, "two words") == 0);
}

/* What is counted is saved and read whole. */
static int count_and_save(long allocations)
{
	const struct usage_now now = { 100 * SECOND, MORNING };
	_cleanup_(usage_freep) struct usage *usage = NULL, *other = NULL;
	_cleanup_(freep) char *text = NULL;
	struct book book = { .now = now };
	struct lease *lease = lease_of(&book, 1, 1000, 4);
	int r;

	lack_left = allocations;
	r = usage_new(&now, &usage);
	if (r == 0) {
		usage_lease(usage, lease, false, &now);
		usage_refused(usage, 7, "lab", CLASS_BESTEFFORT, REASON_CUS, &now);
		r = usage_format(usage, BOOT, now.usec, &text);
	}
	if (r == 0)
		r = usage_new(&now, &other);
	if (r == 0)
		r = usage_parse(other, text, BOOT);
	lease_free(lease);
	return r;
}

TEST(the_accounting_is_saved_and_read_whole_or_not)
{
	CHECK(lack_each("usage", count_and_save) >= 4);
}
