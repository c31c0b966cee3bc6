/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How fairly a GPU is divided: adaptable leases of tenants with weights 1, 1, 2 and 4 come and go.
 * Jain's index of their CUs for each unit of weight, over time, beside the weighted max-min of the
 * same run, which divides CUs like water: no rectangles, no delay. Time is simulated; a holder
 * acknowledges each new mask after 20 ms. The floor: the same arrivals without grow-delay,
 * activate-min-interval and acknowledgements that take time, so that only rectangles are left.
 *
 *	bench-share SOURCE-ROOT [HOURS]
 */

#include <math.h>
#include <string.h>

#include "bench/bench.h"
#include "ledger-rig.h"
#include "sys/config/profile.h"

#define SEED 1U
#define HOURS 24U /* simulated */
#define LEASES 12U
#define MINUTE_USEC 60e6
#define ARRIVAL_USEC (3 * MINUTE_USEC) /* mean */
#define STAY_USEC (15 * MINUTE_USEC)   /* mean */
#define ACK_USEC 20000U
#define JOINS 4096U

static const unsigned weights[] = { 100, 100, 200, 400 };
static const char *const profiles[] = { "radeon-vii", "rx7900xtx", "mi100", "mi300x-spx" };

struct borrower {
	uint64_t id, until, joined, acknowledges; /* acknowledges: when; UINT64_MAX: nothing to */
	uint64_t generation;                      /* the last one that was acknowledged */
	unsigned base, weight;
	double ideal; /* CUs */
	bool waits;   /* for three quarters of its share */
};

struct run {
	struct arbiter *arbiter;
	bool at_once; /* without delays */
	unsigned short random[3];
	uint64_t now, next_arrival, end;
	struct borrower borrowers[LEASES];
	size_t n;
	unsigned cus;
	/* x time, while there are two borrowers or more */
	double shared, jain, ideal_jain, met, used;
	double below, lease_time; /* of all leases */
	unsigned long changes, joins, refused;
	uint64_t delays[JOINS]; /* from the request to three quarters of the ideal share */
	size_t n_delays;
};

static uint64_t exponential(struct run *run, double mean)
{
	return (uint64_t)(-log(1 - erand48(run->random)) * mean);
}

/* ---- the ideal ---------------------------------------------------------------------------- */

static double fill(struct run *run, double level)
{
	double sum = 0;

	for (size_t i = 0; i < run->n; i++) {
		struct borrower *b = &run->borrowers[i];

		b->ideal = fmin(fmax(level * b->weight, b->base), run->cus);
		sum += b->ideal;
	}
	return sum;
}

static void find_ideal(struct run *run)
{
	double low = 0, high = run->cus;

	for (unsigned i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (fill(run, middle) <= run->cus)
			low = middle;
		else
			high = middle;
	}
	fill(run, low);
}

/* ---- what is measured --------------------------------------------------------------------- */

static unsigned cus_of(const struct run *run, const struct borrower *borrower)
{
	const struct lease *lease = ledger_find(run->arbiter, borrower->id);

	return lease->state == STATE_GRANTED ? lease->partitions[0].count : 0;
}

static double jain(double sum, double squares, size_t n)
{
	return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

static void advance(struct run *run, uint64_t to)
{
	double dt = (double)(to - run->now), sum = 0, squares = 0, ideal = 0, ideal_squares = 0;
	double met = 0, used = 0;

	for (size_t i = 0; i < run->n; i++) {
		const struct borrower *b = &run->borrowers[i];
		double has = cus_of(run, b), x = has / b->weight, y = b->ideal / b->weight;

		sum += x, squares += x * x;
		ideal += y, ideal_squares += y * y;
		met += fmin(has, b->ideal) / run->cus;
		used += has / run->cus;
		run->below += has < 0.75 * b->ideal ? dt : 0;
		run->lease_time += dt;
	}
	run->now = to;
	if (run->n < 2)
		return;
	run->shared += dt;
	run->jain += jain(sum, squares, run->n) * dt;
	run->ideal_jain += jain(ideal, ideal_squares, run->n) * dt;
	run->met += met * dt;
	run->used += used * dt;
}

/* ---- what happens ------------------------------------------------------------------------- */

static void note_changes(struct run *run)
{
	for (size_t i = 0; i < run->n; i++) {
		struct borrower *b = &run->borrowers[i];
		const struct lease *lease = ledger_find(run->arbiter, b->id);

		if (lease->generation > b->generation && b->acknowledges == UINT64_MAX) {
			b->acknowledges = run->now + (run->at_once ? 1 : ACK_USEC);
			run->changes++;
		}
		if (!b->waits || cus_of(run, b) < 0.75 * b->ideal)
			continue;
		b->waits = false;
		if (run->n_delays < JOINS)
			run->delays[run->n_delays++] = run->now - b->joined;
	}
}

/* What the daemon does after each event. */
static void settle(struct run *run)
{
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
	note_changes(run);
}

static void join(struct run *run)
{
	struct borrower *b = &run->borrowers[run->n];
	unsigned tenant = (unsigned)(erand48(run->random) * ARRAY_SIZE(weights));
	const struct caller caller = caller_of(tenant + 1);
	struct request request = request_for(run->cus / 15);
	struct result result = { 0 };
	struct lease *lease = NULL;

	run->next_arrival = run->now + exponential(run, ARRIVAL_USEC);
	if (run->n == LEASES)
		return;
	request.class = CLASS_BESTEFFORT;
	request.adaptable = true;
	request.wants[0].cus_min = run->cus / 15;
	request.wants[0].cus_max = run->cus;
	request.wants[0].queues = 1;
	if (arbiter_plan(run->arbiter, &caller, &request, &lease, &result) < 0) {
		result_done(&result);
		run->refused++;
		return;
	}
	result_done(&result);
	lease = arbiter_commit(run->arbiter, lease);
	arbiter_add_holder(run->arbiter, lease->id);
	*b = (struct borrower){ .id = lease->id,
				.until = run->now + exponential(run, STAY_USEC),
				.joined = run->now,
				.acknowledges = UINT64_MAX,
				.generation = lease->generation,
				.base = cuset_count(&lease->partitions[0].adaptation->base),
				.weight = weights[tenant],
				.waits = true };
	run->n++;
	run->joins++;
	find_ideal(run);
}

static void leave(struct run *run, size_t i)
{
	arbiter_holder_gone(run->arbiter, run->borrowers[i].id);
	CHECK(arbiter_observe(run->arbiter, NULL, 0) == 0);
	run->borrowers[i] = run->borrowers[--run->n];
	find_ideal(run);
}

/* A holder uses the mask that it was sent ACK_USEC ago; a later one takes as long again. */
static void follow(struct run *run, struct borrower *b)
{
	const struct lease *lease = ledger_find(run->arbiter, b->id);

	b->generation = lease->generation;
	b->acknowledges = UINT64_MAX;
	CHECK(arbiter_acknowledge(run->arbiter, b->id, b->generation) == 0);
}

static uint64_t next_event(const struct run *run)
{
	uint64_t next = run->next_arrival, deadline = arbiter_next_deadline(run->arbiter);

	next = deadline < next ? deadline : next;
	for (size_t i = 0; i < run->n; i++) {
		const struct borrower *b = &run->borrowers[i];

		next = b->until < next ? b->until : next;
		next = b->acknowledges < next ? b->acknowledges : next;
	}
	return next < run->end ? next : run->end;
}

static void step(struct run *run)
{
	uint64_t next = next_event(run);

	advance(run, next > run->now ? next : run->now);
	for (size_t i = run->n; i-- > 0;)
		if (run->borrowers[i].acknowledges <= run->now)
			follow(run, &run->borrowers[i]);
	for (size_t i = run->n; i-- > 0;)
		if (run->borrowers[i].until <= run->now)
			leave(run, i);
	if (run->next_arrival <= run->now)
		join(run);
	settle(run);
}

static void start(struct run *run, const struct gpu_info *info, unsigned hours, bool at_once)
{
	*run = (struct run){ .random = { SEED, 0, 0x330e }, .now = 1, .at_once = at_once };
	run->arbiter = arbiter_of(info, 1);
	run->arbiter->settings->share_by_lease = true; /* as the ideal is */
	if (at_once)
		run->arbiter->settings->grow_delay_usec =
			run->arbiter->settings->activate_min_interval_usec = 0;
	run->cus = run->arbiter->gpus[0].cus;
	run->end = (uint64_t)(hours * 60 * MINUTE_USEC);
	run->next_arrival = exponential(run, ARRIVAL_USEC);
	for (unsigned i = 0; i < ARRAY_SIZE(weights); i++) {
		char name[16];

		snprintf(name, sizeof(name), "weight-%u", i);
		add_tenant(run->arbiter, name, i + 1, CLASS_BESTEFFORT)->weight = weights[i];
	}
}

static void play(struct run *run, const struct gpu_info *info, unsigned hours, bool at_once)
{
	start(run, info, hours, at_once);
	while (run->now < run->end)
		step(run);
	arbiter_free(run->arbiter);
}

/* ---- what is printed ---------------------------------------------------------------------- */

static void print_run(const char *name, struct run *run, const struct run *at_once, unsigned hours)
{
	double p50 = (double)bench_quantile(run->delays, run->n_delays, 0.5) / 1000;
	double p90 = (double)bench_quantile(run->delays, run->n_delays, 0.9) / 1000;
	double p99 = (double)bench_quantile(run->delays, run->n_delays, 0.99) / 1000;

	printf("%-11s %6lu %7lu  %6.4f %6.4f  %6.4f %7.4f %6.4f %6.4f  %9.1f  %7.0f %7.0f %7.0f\n",
	       name, run->joins, run->refused, run->jain / run->shared,
	       run->ideal_jain / run->shared, run->met / run->shared,
	       at_once->met / at_once->shared, run->used / run->shared,
	       run->below / run->lease_time, (double)run->changes / hours, p50, p90, p99);
}

static void json_run(const char *name, struct run *run, const struct run *at_once, unsigned hours)
{
	printf("{\"profile\":\"%s\",\"leases\":%lu,\"refused\":%lu,\"jain\":%.4f,"
	       "\"ideal_jain\":%.4f,\"of_ideal\":%.4f,\"at_once\":%.4f,\"used\":%.4f,\"changes_an_hour\":%.1f,"
	       "\"below\":%.4f,\"share_ms_p50\":%.0f,\"share_ms_p90\":%.0f,\"share_ms_p99\":%.0f}",
	       name, run->joins, run->refused, run->jain / run->shared,
	       run->ideal_jain / run->shared, run->met / run->shared,
	       at_once->met / at_once->shared, run->used / run->shared,
	       (double)run->changes / hours, run->below / run->lease_time,
	       (double)bench_quantile(run->delays, run->n_delays, 0.5) / 1000,
	       (double)bench_quantile(run->delays, run->n_delays, 0.9) / 1000,
	       (double)bench_quantile(run->delays, run->n_delays, 0.99) / 1000);
}

int main(int argc, char *argv[])
{
	unsigned hours = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : HOURS;
	static struct run runs[ARRAY_SIZE(profiles)], floors[ARRAY_SIZE(profiles)];
	struct diagnostics diagnostics = { 0 };
	char dir[4096];

	snprintf(dir, sizeof(dir), "%s/conf/gpus", argc > 1 ? argv[1] : ".");
	printf("seed %u, %u hours, weights 1, 1, 2 and 4; ideal: weighted max-min without rectangles "
	       "and delays\n%-11s %6s %7s  %6s %6s  %6s %7s %6s %6s  %9s  %7s %7s %7s\n",
	       SEED, hours, "profile", "leases", "refused", "Jain", "ideal", "met", "at once",
	       "used", "below", "changes/h", "p50 ms", "p90 ms", "p99 ms");
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		struct profile profile;

		if (profile_load(dir, profiles[i], &profile, &diagnostics) < 0) {
			fprintf(stderr, "%s/%s.conf cannot be loaded\n", dir, profiles[i]);
			diagnostics_done(&diagnostics);
			return 1;
		}
		play(&runs[i], &profile.info, hours, false);
		play(&floors[i], &profile.info, hours, true);
		print_run(profiles[i], &runs[i], &floors[i], hours);
		fflush(stdout);
	}
	diagnostics_done(&diagnostics);
	printf("met: min(has, ideal) of the GPU, over time; at once: the same without delays; below: part of "
	       "the leases' time\nbelow 3/4 of the ideal share; ms: from the request to 3/4 of the ideal "
	       "share. The ideal divides single CUs, a mask\nhas as many CUs in each of its engines: steps "
	       "of 4, 8, 12 CUs on 4 engines.\n\n{\"seed\":%u,\"hours\":%u,\"rows\":[",
	       SEED, hours);
	for (size_t i = 0; i < ARRAY_SIZE(profiles); i++) {
		printf("%s", i ? "," : "");
		json_run(profiles[i], &runs[i], &floors[i], hours);
	}
	printf("]}\n");
	return 0;
}
