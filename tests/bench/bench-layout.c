/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How a GPU is divided among 2 to 6 adaptable leases that come and go, beside the exact best of the same
 * moment: all rectangles are tried. Each event is played until masks are at rest.
 *
 * For each profile and kind of leases: the worst-off lease's part of its fair share (weighted max-min by
 * user and lease, without rectangles), divided by the best that is possible; the second worst-off one's
 * part; CUs in use, divided by the sum of fair shares; how often masks change; how far the mask of a lease
 * falls in between, as a part of the smaller of the masks before and after; the time of a decision and of
 * all that follows an event.
 *
 *	bench-layout SOURCE-ROOT [EVENTS [PROFILE]]
 */

#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "best-layout.h"
#include "ledger-rig.h"
#include "shipped-gpus.h"

#define EVENTS 60U /* of a run */
#define SEEDS 2U
#define LEASES_MIN 2U
#define USERS 12U
#define CLAIMS 2U
#define CLAIMANT 13U /* may have realtime leases */
#define SECOND_USEC UINT64_C(1000000)
#define SLOW_USEC 400000U /* until a slow agent acknowledges */
#define TIMES 4096U

struct kind {
	const char *name, *text;
	bool bounds, weights, users, claims, slow;
};

static const struct kind kinds[] = {
	{ .name = "equal", .text = "equal leases" },
	{ .name = "weighted", .text = "weights 1 and 3", .weights = true },
	{ .name = "users", .text = "leases of three users", .users = true },
	{ .name = "claims", .text = "equal, beside fixed and lending leases", .claims = true },
	{ .name = "bounds", .text = "leasts and mosts", .bounds = true },
	{ .name = "mixed",
	  .text = "leasts, mosts, weights, users and claims",
	  .bounds = true,
	  .weights = true,
	  .users = true,
	  .claims = true },
	{ .name = "slow",
	  .text = "as mixed, half the agents need 0.4 s to acknowledge",
	  .bounds = true,
	  .weights = true,
	  .users = true,
	  .claims = true,
	  .slow = true },
};

struct tally {
	double ratio, ratio_min, second, sum, kept, kept_min;
	unsigned ratios, below, kepts, unknown; /* below: 0.85; unknown: the best was not found */
	unsigned seconds;
	unsigned events, changes, changes_max, refused, unsettled;
	uint64_t plan[TIMES], settle[TIMES];
	size_t n_plan, n_settle;
};

/* An adaptable lease. */
struct borrower {
	uint64_t id, ack_usec, generation, slow_usec;
	unsigned account;
	unsigned before, low, changes; /* CUs before the event, the fewest since; its changes */
};

struct run {
	const struct kind *kind;
	struct arbiter *arbiter;
	unsigned short random[3];
	uint64_t now, spent;
	struct borrower borrowers[BEST_LEASES];
	uint64_t claims[CLAIMS];
	size_t n, n_claims, n_max;
	struct tally *tally;
};

static unsigned draw(struct run *run, unsigned n)
{
	return (unsigned)(erand48(run->random) * n);
}

/* ---- events ------------------------------------------------------------------------------ */

static struct lease *take(struct run *run, uid_t uid, const struct request *request)
{
	const struct caller caller = caller_of(uid);
	struct result result = { 0 };
	struct lease *lease = NULL;
	uint64_t start = bench_thread_nsec();
	int r = arbiter_plan(run->arbiter, &caller, request, &lease, &result);
	uint64_t spent = bench_thread_nsec() - start;

	result_done(&result);
	if (run->tally->n_plan < TIMES)
		run->tally->plan[run->tally->n_plan++] = spent;
	run->tally->refused += r < 0;
	if (r < 0)
		return NULL;
	lease = arbiter_commit(run->arbiter, lease);
	arbiter_add_holder(run->arbiter, lease->id);
	return lease;
}

/* A user who has no lease yet; with `users`: one of three. */
static unsigned find_user(struct run *run)
{
	unsigned uid = 1 + draw(run, run->kind->users ? 3 : USERS);

	for (size_t i = 0; !run->kind->users && i < run->n; i++)
		if (run->borrowers[i].account == uid) {
			uid = uid % USERS + 1;
			i = (size_t)-1;
		}
	return uid;
}

static void arrive(struct run *run)
{
	unsigned cus = run->arbiter->gpus[0].cus, fit = cus / (unsigned)run->n_max;
	unsigned uid = find_user(run);
	struct request request = request_for(1);
	struct lease *lease;

	request.adaptable = true;
	request.class = CLASS_BESTEFFORT;
	request.wants[0].queues = 1;
	request.wants[0].cus_min = 1;
	request.wants[0].cus_max = cus;
	if (run->kind->bounds) {
		const unsigned leasts[] = { 1, 1, fit / 4, fit / 2 };
		const unsigned mosts[] = { cus, cus, fit, 2 * fit };

		request.wants[0].cus_min = max_u(leasts[draw(run, 4)], 1);
		request.wants[0].cus_max = mosts[draw(run, 4)];
	}
	request.wants[0].cus = request.wants[0].cus_min;
	lease = take(run, uid, &request);
	if (!lease)
		return;
	run->borrowers[run->n++] = (struct borrower){
		.id = lease->id,
		.ack_usec = UINT64_MAX,
		.generation = lease->generation,
		.slow_usec = run->kind->slow && draw(run, 2) ? SLOW_USEC : 0,
		.account = uid,
	};
}

static void depart(struct run *run)
{
	size_t i = draw(run, (unsigned)run->n);

	arbiter_holder_gone(run->arbiter, run->borrowers[i].id);
	CHECK(arbiter_observe(run->arbiter, NULL, 0) == 0);
	run->borrowers[i] = run->borrowers[--run->n];
}

/* A realtime lease of an engine that starts active or lends, or a guaranteed one of a few CUs. */
static void claim(struct run *run)
{
	unsigned cus = run->arbiter->gpus[0].cus;
	struct request request = request_for(0);
	struct lease *lease;

	request.wants[0].queues = 1;
	if (draw(run, 2)) {
		request.class = CLASS_REALTIME;
		request.wants[0].shader_engines = 1;
		request.start_inactive = draw(run, 10) < 3;
	} else {
		request.class = CLASS_GUARANTEED;
		request.wants[0].cus = max_u(cus / (8 + 8 * draw(run, 2)), 1);
	}
	lease = take(run, CLAIMANT, &request);
	if (lease)
		run->claims[run->n_claims++] = lease->id;
}

static void drop_claim(struct run *run)
{
	size_t i = draw(run, (unsigned)run->n_claims);

	arbiter_holder_gone(run->arbiter, run->claims[i]);
	CHECK(arbiter_observe(run->arbiter, NULL, 0) == 0);
	run->claims[i] = run->claims[--run->n_claims];
}

static void toggle_claim(struct run *run)
{
	const struct lease *lease = ledger_find(run->arbiter,
						run->claims[draw(run, (unsigned)run->n_claims)]);
	const struct caller caller = caller_of(CLAIMANT);
	struct result result = { 0 };

	if (lease->class == CLASS_REALTIME)
		set_active(run->arbiter, &caller, lease->id, lease->state == STATE_INACTIVE,
			   &result);
	result_done(&result);
}

static void disturb(struct run *run)
{
	unsigned what = draw(run, run->kind->claims ? 100 : 60);

	if (what < 40 && run->n < run->n_max)
		arrive(run);
	else if (what < 60 && run->n > 0)
		depart(run);
	else if (what >= 60 && what < 75 && run->n_claims < CLAIMS)
		claim(run);
	else if (what >= 75 && what < 85 && run->n_claims > 0)
		drop_claim(run);
	else if (what >= 85 && run->n_claims > 0)
		toggle_claim(run);
}

/* ---- until masks are at rest ------------------------------------------------------------- */

static void note_changes(struct run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct borrower *b = &run->borrowers[i];
		const struct lease *lease = ledger_find(run->arbiter, b->id);

		if (lease->state != STATE_GRANTED)
			continue;
		b->low = min_u(b->low, lease->partitions[0].count);
		if (lease->generation == b->generation)
			continue;
		b->changes += (unsigned)(lease->generation - b->generation);
		b->generation = lease->generation;
		b->ack_usec = run->now + b->slow_usec;
	}
}

/* What the daemon does after each event. */
static void settle(struct run *run)
{
	uint64_t start = bench_thread_nsec();
	struct lease *lease;
	unsigned touched;

	do {
		arbiter_lend(run->arbiter, run->now);
		while ((lease = ledger_take_touched(run->arbiter, &touched)))
			if (touched & TOUCH_REMOVED)
				lease_free(lease);
		if (arbiter_plan_growth(run->arbiter, run->now, &lease) > 0)
			arbiter_commit(run->arbiter, lease);
	} while (run->arbiter->touched);
	run->spent += bench_thread_nsec() - start;
	note_changes(run);
}

static void acknowledge(struct run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct borrower *b = &run->borrowers[i];

		if (b->ack_usec > run->now)
			continue;
		b->ack_usec = UINT64_MAX;
		CHECK(arbiter_acknowledge(run->arbiter, b->id, b->generation) == 0);
	}
	for (size_t i = 0; i < run->n_claims; i++) {
		const struct lease *lease = ledger_find(run->arbiter, run->claims[i]);

		CHECK(arbiter_acknowledge(run->arbiter, lease->id, lease->generation) == 0);
	}
}

/* Time passes until nothing is due. A lease that is granted later begins then. */
static void come_to_rest(struct run *run)
{
	run->spent = 0;
	settle(run);
	for (unsigned round = 0; round < 200; round++) {
		uint64_t next = arbiter_next_deadline(run->arbiter);

		for (size_t i = 0; i < run->n; i++)
			next = min_u64(next, run->borrowers[i].ack_usec);
		if (next == UINT64_MAX)
			return;
		run->now = max_u64(run->now, next);
		acknowledge(run);
		arbiter_expire(run->arbiter, run->now);
		settle(run);
	}
	run->tally->unsettled++;
}

/* ---- what is measured -------------------------------------------------------------------- */

static void begin_event(struct run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct borrower *b = &run->borrowers[i];
		const struct lease *lease = ledger_find(run->arbiter, b->id);

		b->before = b->low = lease->state == STATE_GRANTED ? lease->partitions[0].count : 0;
		b->changes = 0;
	}
}

static void count_event(struct run *run)
{
	struct tally *tally = run->tally;

	tally->events++;
	for (size_t i = 0; i < run->n; i++) {
		const struct borrower *b = &run->borrowers[i];
		const struct lease *lease = ledger_find(run->arbiter, b->id);
		unsigned less = min_u(b->before, lease->partitions[0].count);
		double kept = less > 0 ? fmin(1, (double)b->low / less) : 1;

		if (b->before == 0)
			continue;
		tally->changes += b->changes;
		tally->changes_max = max_u(tally->changes_max, b->changes);
		tally->kept += kept;
		tally->kept_min = fmin(tally->kept_min, kept);
		tally->kepts++;
	}
	if (tally->n_settle < TIMES)
		tally->settle[tally->n_settle++] = run->spent;
}

/* What the claims have, and what of it they lend. */
static void find_claims(const struct run *run, struct cuset *ret_active, struct cuset *ret_lent)
{
	memset(ret_active, 0, sizeof(*ret_active));
	memset(ret_lent, 0, sizeof(*ret_lent));
	for (size_t i = 0; i < run->n_claims; i++) {
		const struct lease *lease = ledger_find(run->arbiter, run->claims[i]);

		cuset_add(lease->state == STATE_INACTIVE ? ret_lent : ret_active,
			  &lease->partitions[0].cus);
	}
}

static size_t find_leases(const struct run *run, unsigned unit, unsigned units,
			  struct best_lease ret[static BEST_LEASES])
{
	for (size_t i = 0; i < run->n; i++) {
		const struct borrower *b = &run->borrowers[i];
		const struct lease *lease = ledger_find(run->arbiter, b->id);
		const struct partition *p = &lease->partitions[0];
		unsigned least = cuset_count(&p->adaptation->base);

		ret[i] = (struct best_lease){
			.least = (least + unit - 1) / unit,
			.most = min_u(p->asked / unit, units),
			.weight = tenant_named(run->arbiter->settings, lease->tenant)->weight,
			.account = b->account,
		};
	}
	return run->n;
}

static void count_ratio(struct run *run)
{
	const struct geometry *g = &run->arbiter->gpus[0].info.geometry;
	unsigned unit = g->xccs * (g->wgp ? 2 : 1), units = 0, used = 0;
	struct tally *tally = run->tally;
	struct best_column columns[BEST_COLUMNS];
	struct best_lease leases[BEST_LEASES];
	struct cuset active, lent;
	double worst = 1, second = 1, fair = 0, best;
	size_t n, n_columns;

	find_claims(run, &active, &lent);
	n_columns = best_columns(g, &active, &lent, columns);
	for (size_t c = 0; c < n_columns; c++)
		units += columns[c].own + columns[c].lent;
	n = find_leases(run, unit, units, leases);
	if (n == 0)
		return;
	best_fair(leases, n, units);
	for (size_t i = 0; i < n; i++) {
		const struct lease *lease = ledger_find(run->arbiter, run->borrowers[i].id);
		double has = (double)lease->partitions[0].count / unit;
		double part = has / leases[i].fair;

		used += lease->partitions[0].count / unit;
		fair += leases[i].fair;
		second = fmin(second, fmax(worst, part));
		worst = fmin(worst, part);
	}
	best = best_level(columns, n_columns, leases, n);
	if (best <= 0) {
		tally->unknown++;
		return;
	}
	tally->ratio += fmin(1, worst / best);
	tally->ratio_min = fmin(tally->ratio_min, worst / best);
	tally->below += worst / best < 0.85;
	tally->second += n > 1 ? second : 0;
	tally->seconds += n > 1;
	tally->sum += used / fair;
	tally->ratios++;
}

/* ---- runs -------------------------------------------------------------------------------- */

static struct arbiter *machine(const struct gpu_info *info, const struct kind *kind)
{
	struct gpu_info one = *info;
	struct arbiter *arbiter;

	one.queue_slots = one.process_slots = 1024; /* it is about CUs */
	one.reserve_queues = 0;
	arbiter = arbiter_of(&one, 1);
	for (unsigned uid = 1; uid <= USERS; uid++) {
		char name[16];

		snprintf(name, sizeof(name), "user-%u", uid);
		add_tenant(arbiter, name, uid, CLASS_BESTEFFORT)->weight =
			kind->weights && uid % 3 == 0 ? 300 : 100;
	}
	add_tenant(arbiter, "claimant", CLAIMANT, CLASS_REALTIME);
	return arbiter;
}

static void play(const struct gpu_info *info, const struct kind *kind, size_t n_max, unsigned seed,
		 unsigned events, struct tally *tally)
{
	struct run run = { .kind = kind,
			   .arbiter = machine(info, kind),
			   .random = { (unsigned short)seed, (unsigned short)n_max, 0x330e },
			   .now = 100 * SECOND_USEC,
			   .n_max = n_max,
			   .tally = tally };

	for (unsigned i = 0; i < events; i++) {
		begin_event(&run);
		disturb(&run);
		come_to_rest(&run);
		count_event(&run);
		count_ratio(&run);
		run.now += 10 * SECOND_USEC;
	}
	arbiter_free(run.arbiter);
}

static void tally_init(struct tally *tally)
{
	memset(tally, 0, sizeof(*tally));
	tally->ratio_min = tally->kept_min = 1;
}

static void print_header(void)
{
	printf("worst: the worst-off lease beside the exact best, in the mean, the least, and how often "
	       "below 0.85;\nsecond: the second worst-off one's part of its share; sum: CUs in use beside "
	       "fair shares; changes: of masks per event, and of a lease at most;\nkept: of a mask in between; plan, settle: CPU time of a decision, and of "
	       "all that follows an event\n\n%-13s %-8s %5s  %5s %5s %6s  %6s  %5s  %5s %3s  %5s %5s  "
	       "%4s %4s  %7s %7s %9s\n",
	       "profile", "kind", "n", "worst", "least", "<0.85", "second", "sum", "chang", "max",
	       "kept", "least", "refu", "rest", "plan us", "p99 us", "settle us");
}

static double usec_of(uint64_t *samples, size_t n, double q)
{
	return n > 0 ? (double)bench_quantile(samples, n, q) / 1000 : 0;
}

static void print_row(const char *profile, const char *kind, struct tally *t)
{
	printf("%-13s %-8s %5u  %5.3f %5.2f %5.1f%%  %6.3f  %5.3f  %5.2f %3u  %5.3f %5.2f  %4u %4u  "
	       "%7.1f %7.1f %9.1f\n",
	       profile, kind, t->ratios, t->ratio / t->ratios, t->ratio_min,
	       100.0 * t->below / t->ratios, t->second / t->seconds, t->sum / t->ratios,
	       (double)t->changes / t->events, t->changes_max, t->kept / t->kepts, t->kept_min,
	       t->refused, t->unsettled, usec_of(t->plan, t->n_plan, 0.5),
	       usec_of(t->plan, t->n_plan, 0.99), usec_of(t->settle, t->n_settle, 0.5));
	fflush(stdout);
}

static void json_row(const char *profile, const char *kind, struct tally *t, FILE *to)
{
	fprintf(to,
		"{\"profile\":\"%s\",\"kind\":\"%s\",\"worst\":%.4f,\"worst_least\":%.4f,"
		"\"below_085\":%.4f,\"second\":%.4f,\"sum\":%.4f,\"changes\":%.3f,\"changes_max\":%u,"
		"\"kept\":%.4f,\"kept_least\":%.4f,\"refused\":%u,\"unsettled\":%u,\"unknown\":%u,"
		"\"plan_us\":%.2f,\"plan_us_p99\":%.2f,\"settle_us\":%.2f}",
		profile, kind, t->ratio / t->ratios, t->ratio_min, (double)t->below / t->ratios,
		t->second / t->seconds, t->sum / t->ratios, (double)t->changes / t->events,
		t->changes_max, t->kept / t->kepts, t->kept_min, t->refused, t->unsettled,
		t->unknown, usec_of(t->plan, t->n_plan, 0.5), usec_of(t->plan, t->n_plan, 0.99),
		usec_of(t->settle, t->n_settle, 0.5));
}

static bool same_shape(const struct geometry *a, const struct geometry *b)
{
	return a->wgp == b->wgp && a->xccs == b->xccs && a->engines == b->engines &&
	       memcmp(a->active, b->active, sizeof(a->active)) == 0;
}

static void bench_profile(const struct gpu_info *info, const char *name, unsigned events,
			  FILE *json)
{
	static struct tally tally;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		tally_init(&tally);
		for (size_t n = LEASES_MIN; n <= BEST_LEASES; n++)
			for (unsigned seed = 1; seed <= SEEDS; seed++)
				play(info, &kinds[k], n, seed, events, &tally);
		print_row(name, kinds[k].name, &tally);
		fputs(ftell(json) > 0 ? "," : "", json);
		json_row(name, kinds[k].name, &tally, json);
	}
}

int main(int argc, char *argv[])
{
	unsigned events = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : EVENTS;
	struct gpu_info infos[SHIPPED_GPUS_MAX];
	char names[SHIPPED_GPUS_MAX][64], *rows = NULL;
	size_t n, size = 0;
	FILE *json = open_memstream(&rows, &size);

	CHECK(json);
	if (argc > 1)
		setenv("GPUARB_SOURCE_ROOT", argv[1], 1);
	n = load_shipped_gpus(infos, names);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		printf("%-8s %s\n", kinds[k].name, kinds[k].text);
	print_header();
	for (size_t i = 0; i < n; i++) {
		size_t same = 0;

		while (!same_shape(&infos[same].geometry, &infos[i].geometry))
			same++;
		if (same < i)
			printf("%-13s has the engines of %s\n", names[i], names[same]);
		else if (argc < 4 || strcmp(argv[3], names[i]) == 0)
			bench_profile(&infos[i], names[i], events, json);
	}
	fclose(json);
	printf("\n{\"events\":%u,\"seeds\":%u,\"rows\":[%s]}\n", events, SEEDS, rows);
	free(rows);
	return 0;
}
