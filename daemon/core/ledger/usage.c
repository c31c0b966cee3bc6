/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/ledger/usage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ledger/lease.h"

#define HEAD "gpuarb-usage 1"
#define HOUR 3600U
#define DAY (24U * HOUR)
#define LINE_MAX_BYTES (REQUEST_TEXT + 256U)

struct usage {
	struct usage_row rows[USAGE_ROWS]; /* those of the present hour are the last ones */
	size_t n, present;                 /* the first row of the present hour */
	uint64_t hour;                     /* its start */
	uint64_t
		saved_usec; /* an earlier process of this boot added its leases up to then; 0: none */
	struct counters counters;
};

int usage_new(const struct usage_now *now, struct usage **ret)
{
	struct usage *usage = calloc(1, sizeof(*usage));

	if (!usage)
		return -ENOMEM;
	usage->counters.usec = now->usec;
	usage->counters.seconds = now->seconds;
	*ret = usage;
	return 0;
}

struct usage *usage_free(struct usage *usage)
{
	free(usage);
	return NULL;
}

struct counters *usage_counters(struct usage *usage)
{
	return &usage->counters;
}

/* ---- rows --------------------------------------------------------------------------------- */

static bool is_of(const struct usage_row *row, uint64_t hour)
{
	return row->span == HOUR && row->start == hour;
}

static int compare_holders(const void *first, const void *second)
{
	const struct usage_row *a = first, *b = second;
	int order = strcmp(a->tenant, b->tenant);

	if (order != 0)
		return order;
	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return (int)a->class - (int)b->class;
}

static int compare_periods(const void *first, const void *second)
{
	const struct usage_row *a = first, *b = second;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->span != b->span)
		return a->span < b->span ? 1 : -1;
	return compare_holders(a, b);
}

/* The rows of one hour come last. */
static int compare_rows(const void *a, const void *b, void *hour)
{
	bool last = is_of(a, *(const uint64_t *)hour);

	if (last != is_of(b, *(const uint64_t *)hour))
		return last ? 1 : -1;
	return compare_periods(a, b);
}

static void add_row(struct usage_row *to, const struct usage_row *row)
{
	for (size_t i = 0; i < USAGE_SUMS; i++)
		to->sums[i] += row->sums[i];
}

/* Adds up neighbours that `compare` calls the same. Returns how many are left. */
static size_t merge(struct usage_row *rows, size_t n, int (*compare)(const void *, const void *))
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept > 0 && compare(&rows[kept - 1], &rows[i]) == 0)
			add_row(&rows[kept - 1], &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

/* Hours that ended at least `age` seconds ago become days. Then the rows of the present hour go to the
 * end, and of the others the oldest go until `most` are left. */
static void arrange(struct usage *usage, uint64_t age, size_t most)
{
	size_t drop;

	for (size_t i = 0; i < usage->n; i++) {
		struct usage_row *row = &usage->rows[i];

		if (row->span != HOUR || row->start + HOUR + age > usage->hour)
			continue;
		row->start -= row->start % DAY;
		row->span = DAY;
	}
	qsort_r(usage->rows, usage->n, sizeof(usage->rows[0]), compare_rows, &usage->hour);
	usage->n = merge(usage->rows, usage->n, compare_periods);
	usage->present = usage->n;
	while (usage->present > 0 && is_of(&usage->rows[usage->present - 1], usage->hour))
		usage->present--;
	drop = usage->n > most ? usage->n - most : 0;
	drop = drop < usage->present ? drop : usage->present;
	usage->n -= drop;
	usage->present -= drop;
	memmove(usage->rows, usage->rows + drop, usage->n * sizeof(usage->rows[0]));
}

/* A user with more rows in an hour than there is room for is not accounted beyond that. */
static struct usage_row *find_row(struct usage *usage, const struct usage_row *holder,
				  const struct usage_now *now)
{
	uint64_t hour = now->seconds - now->seconds % HOUR;

	if (hour != usage->hour) {
		usage->hour = hour;
		arrange(usage, DAY, USAGE_ROWS);
	}
	for (size_t i = usage->present; i < usage->n; i++)
		if (compare_holders(&usage->rows[i], holder) == 0)
			return &usage->rows[i];
	if (usage->n == USAGE_ROWS)
		arrange(usage, 0, USAGE_ROWS - USAGE_ROWS / 8);
	if (usage->n == USAGE_ROWS)
		return NULL;
	usage->rows[usage->n] = *holder;
	usage->rows[usage->n].start = hour;
	usage->rows[usage->n].span = HOUR;
	return &usage->rows[usage->n++];
}

static void add(struct usage *usage, uid_t uid, const char *tenant, enum lease_class lease_class,
		const struct usage_row *sums, const struct usage_now *now)
{
	struct usage_row holder = { .uid = uid, .class = lease_class }, *row;

	snprintf(holder.tenant, sizeof(holder.tenant), "%s", tenant);
	row = find_row(usage, &holder, now);
	if (row)
		add_row(row, sums);
}

/* ---- leases ------------------------------------------------------------------------------- */

/* The lease from now on. One that waited and has ended holds nothing. */
static struct lease_account account_of(const struct lease *lease, uint64_t now_usec)
{
	struct lease_account account = { .usec = now_usec,
					 .state = lease->state,
					 .since_usec = now_usec };

	if (lease->state == STATE_WAITING)
		account.use = USE_WAITS;
	else if (lease->n_partitions > 0)
		account.use = USE_HOLDS;
	FOR_EACH_PARTITION(p, lease) {
		account.cus += p->count;
		account.queues += p->granted.queues;
	}
	return account;
}

/* The lease before its first call. *ret_added: an earlier process has added it, up to then. */
static struct lease_account account_before(const struct usage *usage, const struct lease *lease,
					   const struct lease_account *next, bool *ret_added)
{
	struct lease_account account = *next;

	account.usec = lease->since_usec ? lease->since_usec : next->usec;
	account.since_usec = account.usec;
	*ret_added = account.usec <= usage->saved_usec;
	if (*ret_added)
		account.usec = usage->saved_usec;
	return account;
}

/* The time from `before` to `next`, and whether one more lease waits or is held. */
static struct usage_row difference(const struct lease_account *before, bool added,
				   const struct lease_account *next)
{
	uint64_t usec = beyond(next->usec, before->usec);
	struct usage_row sums = { 0 };

	if (before->use == USE_WAITS)
		sums.waited_usec = usec;
	if (before->use == USE_HOLDS) {
		sums.held_usec = usec;
		sums.cu_usec = before->cus * usec;
		sums.queue_usec = before->queues * usec;
	}
	sums.waits = next->use == USE_WAITS && (!added || before->use != USE_WAITS);
	sums.leases = next->use == USE_HOLDS && (!added || before->use != USE_HOLDS);
	return sums;
}

/* A lease that an earlier process granted, or that waited or was activated then, is not counted. */
static void count(struct counters *counters, const struct lease *lease,
		  const struct lease_account *before, const struct lease_account *next,
		  const struct usage_row *sums)
{
	uint64_t usec = beyond(next->usec, before->since_usec);

	if (next->since_usec < counters->usec)
		return;
	if (sums->leases > 0)
		counters_add(counters, lease->tenant, COUNTER_GRANTS);
	if (sums->waits > 0)
		counters_add(counters, lease->tenant, COUNTER_WAITS);
	if (before->use == USE_WAITS && next->use == USE_HOLDS)
		counters_took(counters, DURATION_WAIT, usec);
	if (next->state != STATE_GRANTED)
		return;
	if (before->state == STATE_INACTIVE)
		counters_took(counters, DURATION_ACTIVATION, 0);
	else if (before->state == STATE_ACTIVATING && before->since_usec >= counters->usec)
		counters_took(counters, DURATION_ACTIVATION, usec);
}

void usage_lease(struct usage *usage, struct lease *lease, bool removed,
		 const struct usage_now *now)
{
	struct lease_account before = lease->account, next = account_of(lease, now->usec);
	struct usage_row sums;
	bool added = true;

	if (before.usec == 0 && removed)
		return;
	if (before.usec == 0)
		before = account_before(usage, lease, &next, &added);
	if (next.state == before.state)
		next.since_usec = before.since_usec;
	sums = difference(&before, added, &next);
	count(&usage->counters, lease, &before, &next, &sums);
	add(usage, lease->owner, lease->tenant, lease->class, &sums, now);
	lease->account = removed ? (struct lease_account){ 0 } : next;
}

void usage_refused(struct usage *usage, uid_t uid, const char *tenant, enum lease_class lease_class,
		   enum reason reason, const struct usage_now *now)
{
	counters_row(&usage->counters, tenant)->refusals[reason]++;
	add(usage, uid, tenant, lease_class, &(struct usage_row){ .refusals = 1 }, now);
}

int usage_sum(const struct usage *usage, uint64_t since, struct usage_row **ret, size_t *ret_n,
	      uint64_t *ret_from)
{
	struct usage_row *rows = calloc(usage->n + 1, sizeof(*rows));
	uint64_t from = UINT64_MAX;
	size_t n = 0;

	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < usage->n; i++) {
		if (usage->rows[i].start + usage->rows[i].span <= since)
			continue;
		from = min_u64(from, usage->rows[i].start);
		rows[n++] = usage->rows[i];
	}
	qsort(rows, n, sizeof(*rows), compare_holders);
	*ret = rows;
	*ret_n = merge(rows, n, compare_holders);
	*ret_from = n > 0 ? from : 0;
	return 0;
}

/* ---- text --------------------------------------------------------------------------------- */

int usage_format(const struct usage *usage, const char *boot, uint64_t usec, char **ret)
{
	size_t size = (usage->n + 1) * LINE_MAX_BYTES, at;
	char *text = malloc(size);

	if (!text)
		return -ENOMEM;
	at = (size_t)snprintf(text, size, HEAD " %.40s %" PRIu64 "\n", boot, usec);
	for (size_t i = 0; i < usage->n; i++) {
		const struct usage_row *row = &usage->rows[i];

		at += (size_t)snprintf(text + at, size - at, "%" PRIu64 " %u %u %s", row->start,
				       row->span, row->uid, class_names[row->class]);
		for (size_t j = 0; j < USAGE_SUMS; j++)
			at += (size_t)snprintf(text + at, size - at, " %" PRIu64, row->sums[j]);
		at += (size_t)snprintf(text + at, size - at, " %s\n", row->tenant);
	}
	*ret = text;
	return 0;
}

static bool parse_row(const char *line, struct usage_row *ret)
{
	char class[16];
	int known, end = 0;

	*ret = (struct usage_row){ 0 };
	if (sscanf(line, "%" SCNu64 " %u %u %15s%n", &ret->start, &ret->span, &ret->uid, class,
		   &end) != 4)
		return false;
	line += end;
	for (size_t i = 0; i < USAGE_SUMS; i++, line += end)
		if (sscanf(line, " %" SCNu64 "%n", &ret->sums[i], &end) != 1)
			return false;
	if (*line != ' ' || strlen(line + 1) >= sizeof(ret->tenant))
		return false;
	known = class_from_name(class);
	if (known < 0 || (ret->span != HOUR && ret->span != DAY) || ret->start > UINT64_MAX / 2)
		return false;
	ret->class = (enum lease_class)known;
	strcpy(ret->tenant, line + 1);
	return true;
}

static int parse_rows(struct usage *usage, char *lines)
{
	char *line;

	while ((line = strtok_r(lines, "\n", &lines)))
		if (usage->n == USAGE_ROWS || !parse_row(line, &usage->rows[usage->n++]))
			return -EINVAL;
	return 0;
}

int usage_parse(struct usage *usage, const char *text, const char *boot)
{
	_cleanup_(freep) char *copy = strdup(text);
	_cleanup_(usage_freep) struct usage *read = NULL;
	char *lines = copy, *head, of[41];
	uint64_t usec;
	int end = 0;

	if (!copy || usage_new(&(struct usage_now){ 0 }, &read) < 0)
		return -ENOMEM;
	head = strtok_r(lines, "\n", &lines);
	if (!head || sscanf(head, HEAD " %40s %" SCNu64 "%n", of, &usec, &end) != 2 || head[end])
		return -EINVAL;
	if (parse_rows(read, lines) < 0)
		return -EINVAL;
	memcpy(usage->rows, read->rows, read->n * sizeof(read->rows[0]));
	usage->n = usage->present = read->n;
	usage->hour = 0; /* the next row arranges them */
	usage->saved_usec = strcmp(of, boot) == 0 ? usec : 0;
	return 0;
}
