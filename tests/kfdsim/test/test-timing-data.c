/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The timing model against what was measured on real GPUs: how far off it may be. */

#include <math.h>

#include "measured.h"
#include "kfdsim/test/timing-rig.h"

#define FIELDS 32U
#define ROWS 64U

/* ---- tables: lines of fields apart by tabs, after comments and a line of names ---- */

struct row {
	char line[1024];
	const char *fields[FIELDS];
};

static bool read_row(FILE *table, struct row *row)
{
	size_t n = 0;

	do
		if (!fgets(row->line, sizeof(row->line), table))
			return false;
	while (row->line[0] == '#');
	row->line[strcspn(row->line, "\n")] = '\0';
	for (char *rest = row->line; rest; n++) {
		CHECK(n < FIELDS);
		row->fields[n] = strsep(&rest, "\t");
	}
	return true;
}

static FILE *open_table(const char *file)
{
	FILE *table = measured_open(file);
	struct row names;

	CHECK(read_row(table, &names));
	return table;
}

/* NAN where it is no number, as of a program that hung. */
static double number(const struct row *row, unsigned field)
{
	char *end;
	double value = strtod(row->fields[field], &end);

	return end > row->fields[field] && *end == '\0' ? value : NAN;
}

struct errors {
	double of[ROWS]; /* absolute, in parts of what was measured */
	size_t n;
};

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_error(struct errors *errors, double model, double measured)
{
	CHECK(errors->n < ROWS);
	errors->of[errors->n++] = fabs(model / measured - 1);
}

static void check_errors(struct errors *errors, const char *file, size_t rows, double median,
			 double worst)
{
	size_t n = errors->n;
	double middle;

	CHECK(n == rows);
	qsort(errors->of, n, sizeof(errors->of[0]), by_size);
	middle = (errors->of[(n - 1) / 2] + errors->of[n / 2]) / 2;
	printf("%s: %zu rows, median error %.1f %%, worst %.1f %%\n", file, n, middle * 100,
	       errors->of[n - 1] * 100);
	CHECK(middle <= median && errors->of[n - 1] <= worst);
}

/* ---- kernels in a loop, with CU masks ---- */

#define GAP_NS 50000U /* between kernels on the CPU: what 1 / iter_per_s - mean leaves */
#define TIMES 11U     /* an odd number: the median is one of them */

static const struct timing_kernel mm1024 = { .blocks = 1024, .threads = 1024 };
static const struct timing_kernel mm256 = { .blocks = 4096, .threads = 256 };

/* A thread that launches one kernel after the other on a stream with a CU mask. */
struct player {
	uint64_t mask, next, since; /* next: when it launches; TIMING_NEVER: it runs */
	const struct timing_kernel *kernel;
};

static struct timing *new_radeon_vii(unsigned queue_slots, unsigned process_slots)
{
	struct timing_gpu gpu = rig_gpu(1, 4, 15);

	gpu.queue_slots = queue_slots;
	gpu.process_slots = process_slots;
	return rig_new(&gpu);
}

/* Bits as KFD deals them over the engines. */
static struct words deal(uint64_t mask)
{
	struct words words = { 0 };

	for (unsigned bit = 0; bit < 64; bit++)
		if (mask >> bit & 1)
			words.of[0][bit % 4] |= UINT32_C(1) << bit / 4;
	return words;
}

static void launch(struct timing *timing, struct player *players, unsigned n, uint64_t now)
{
	for (unsigned i = 0; i < n; i++) {
		if (players[i].next > now)
			continue;
		CHECK(timing_dispatch(timing, i + 1, players[i].kernel, now) == 0);
		players[i].since = players[i].next;
		players[i].next = UINT64_MAX;
	}
}

/* The median of the first one's times from launch to end, in ms, on a Radeon VII. */
static double loop_ms(struct player *players, unsigned n)
{
	_cleanup_(timing_freep) struct timing *timing = new_radeon_vii(24, 8);
	double samples[TIMES];
	uint64_t key, end, now = 0;

	for (unsigned i = 0; i < n; i++) {
		rig_queue(timing, i + 1, 1, deal(players[i].mask), 0);
		players[i].next = i * GAP_NS;
	}
	for (unsigned done = 0; done < TIMES; launch(timing, players, n, now)) {
		uint64_t next = timing_next(timing);

		for (unsigned i = 0; i < n; i++)
			next = players[i].next < next ? players[i].next : next;
		now = next > now ? next : now;
		while (timing_ended(timing, now, &key, &end)) {
			players[key - 1].next = end + GAP_NS;
			if (key == 1 && done < TIMES)
				samples[done++] = (double)(end - players[0].since) / 1e6;
		}
	}
	qsort(samples, TIMES, sizeof(samples[0]), by_size);
	return samples[TIMES / 2];
}

TEST(model_of_masks_errs_at_most_nine_percent_and_three_in_the_median)
{
	enum { MASK_HEX = 3, MED = 12 };
	FILE *table = open_table("cu_mask_distributed.tsv");
	struct errors errors = { .n = 0 };
	struct row row;

	while (read_row(table, &row)) {
		struct player player = { .mask = strtoull(row.fields[MASK_HEX], NULL, 16),
					 .kernel = &mm1024 };

		CHECK(player.mask != 0);
		add_error(&errors, loop_ms(&player, 1), number(&row, MED));
	}
	check_errors(&errors, "cu_mask_distributed.tsv", 60, 0.03, 0.09);
	fclose(table);
}

static const struct timing_kernel *kernel_named(const char *name)
{
	CHECK(strcmp(name, "MM1024") == 0 || strcmp(name, "MM256") == 0);
	return strcmp(name, "MM256") == 0 ? &mm256 : &mm1024;
}

/* MM256 alone is slower than beside another kernel, for reasons that nobody has shown: it is known not to fit. */
TEST(model_of_shared_gpus_errs_at_most_fifteen_percent_except_mm256_alone)
{
	enum { MEASURED = 1, COMPETITOR, MASK = 4, COMPETITOR_MASK = 6, MED = 10 };
	FILE *table = open_table("sharing.tsv");
	struct errors errors = { .n = 0 };
	unsigned apart = 0;
	struct row row;

	while (read_row(table, &row)) {
		bool alone = strcmp(row.fields[COMPETITOR], "-") == 0;
		struct player players[] = {
			{ .mask = strtoull(row.fields[MASK], NULL, 16),
			  .kernel = kernel_named(row.fields[MEASURED]) },
			{ .mask = strtoull(row.fields[COMPETITOR_MASK], NULL, 16),
			  .kernel = alone ? NULL : kernel_named(row.fields[COMPETITOR]) },
		};

		CHECK(players[0].mask != 0);
		if (alone && players[0].kernel == &mm256)
			apart++;
		else
			add_error(&errors, loop_ms(players, alone ? 1 : 2), number(&row, MED));
	}
	CHECK(apart == 2);
	check_errors(&errors, "sharing.tsv", 48, 0.07, 0.15);
	fclose(table);
}

/* ---- ranks that wait for each other ---- */

/* Ghost Exchange: 50 iterations, in each of which neighbours wait for each other twice: left
 * and right, then top and bottom. One, two and three waits were tried on the SPX rows: two fit
 * best. */
#define GHOST_STEPS (50U * 2U)

struct ranks {
	unsigned ranks, queues; /* queues: of a rank, one at work at a time */
	unsigned queue_slots, process_slots;
};

/* Steps of one kernel of each rank; each needs all to have done the one before. In ns. */
static uint64_t play_ranks(const struct ranks *ranks, uint64_t step_ns)
{
	_cleanup_(timing_freep) struct timing *timing = new_radeon_vii(ranks->queue_slots,
								       ranks->process_slots);
	const struct timing_kernel kernel = { .blocks = 1, .threads = 1024, .block_ns = step_ns };
	uint64_t key, end, next, now = 0;

	for (unsigned i = 0; i < ranks->ranks * ranks->queues; i++)
		rig_queue(timing, i + 1, 1 + i / ranks->queues, rig_all(), 0);
	for (unsigned step = 0; step < GHOST_STEPS; step++) {
		for (unsigned i = 0; i < ranks->ranks; i++)
			CHECK(timing_dispatch(timing, 1 + i * ranks->queues, &kernel, now) == 0);
		for (unsigned left = ranks->ranks; left > 0;) {
			next = timing_next(timing);
			now = next > now ? next : now;
			while (timing_ended(timing, now, &key, &end))
				left--;
		}
	}
	return now;
}

/* Rows that no simple rule explains stay in: what is asked is the side that they are on. base: seconds that
 * were measured within the limits. Returns whether the row is beyond them. */
static bool compare_ranks(const struct ranks *ranks, double seconds, double base,
			  struct errors *errors)
{
	uint64_t step_ns = (uint64_t)(base * 1e9 / GHOST_STEPS);
	struct ranks without = { .ranks = ranks->ranks, .queues = ranks->queues };
	bool beyond = ranks->ranks * ranks->queues > ranks->queue_slots ||
		      ranks->ranks > ranks->process_slots;
	double model = (double)play_ranks(ranks, step_ns) / (double)play_ranks(&without, step_ns);

	CHECK(beyond ? model > 1.5 : fabs(model - 1) < 0.001);
	CHECK(beyond ? !(seconds / base < 1.5) : seconds / base < 1.1);
	if (beyond && !isnan(seconds))
		add_error(errors, model, seconds / base);
	return beyond;
}

/* Against the nearest row before, or this one, of the same machine within its limits. */
TEST(model_slows_down_exactly_the_slices_beyond_the_queue_limits)
{
	enum { GPU, MODE, MPI, RANKS, QUEUES = 5, TOTAL, DRIVER };
	FILE *table = open_table("oversubscription.tsv");
	struct errors errors = { .n = 0 };
	char machine[64] = "", last[64];
	unsigned beyond = 0;
	double base = NAN;
	struct row row;

	while (read_row(table, &row)) {
		struct ranks ranks = {
			.ranks = (unsigned)number(&row, RANKS),
			/* 21 on MI250 is measured; why not 24 is not known. */
			.queue_slots = strcmp(row.fields[GPU], "MI250") == 0 ? 21 : 24,
			.process_slots = strcmp(row.fields[MODE], "CPX") == 0 ? 6 : 13,
		};

		strcpy(last, machine);
		snprintf(machine, sizeof(machine), "%s %s", row.fields[GPU], row.fields[MPI]);
		if (strcmp(machine, last) != 0 || strncmp(row.fields[DRIVER], "none", 4) == 0)
			base = number(&row, TOTAL);
		ranks.queues = (unsigned)number(&row, QUEUES) / ranks.ranks;
		beyond += compare_ranks(&ranks, number(&row, TOTAL), base, &errors);
	}
	CHECK(beyond >= 12);
	check_errors(&errors, "oversubscription.tsv", 12, INFINITY, INFINITY);
	fclose(table);
}

/* Against the same program and ranks with one queue each to compute. */
TEST(model_slows_down_exactly_the_spx_rows_beyond_the_queue_limits)
{
	enum { VERSION, RANKS, STREAMS, TOTAL = 5 };
	FILE *table = open_table("oversubscription_spx.tsv");
	struct errors errors = { .n = 0 };
	char program[64] = "", last[64];
	double base = NAN;
	struct row row;

	while (read_row(table, &row)) {
		struct ranks ranks = { .ranks = (unsigned)number(&row, RANKS),
				       .queues = (unsigned)number(&row, STREAMS) + 1,
				       .queue_slots = 24,
				       .process_slots = 13 };

		strcpy(last, program);
		snprintf(program, sizeof(program), "%s %s", row.fields[VERSION], row.fields[RANKS]);
		if (strcmp(program, last) != 0)
			base = number(&row, TOTAL);
		compare_ranks(&ranks, number(&row, TOTAL), base, &errors);
	}
	check_errors(&errors, "oversubscription_spx.tsv", 15, 0.33, INFINITY);
	fclose(table);
}
