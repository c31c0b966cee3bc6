/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/timing/timing-compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/timing/timing-play.h"
#include "kfdsim/timing/timing-rows.h"

#define NS_PER_MS 1e6

void comparisons_clear(struct comparisons *c)
{
	free(c->rows);
	*c = (struct comparisons){ 0 };
}

double comparison_error(const struct comparison *c)
{
	return c->model / c->measured - 1;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void comparisons_summary(const struct comparisons *c, struct summary *ret)
{
	_cleanup_(freep) double *errors = calloc(c->n + 1, sizeof(errors[0]));
	size_t n = 0;

	for (size_t i = 0; errors && i < c->n; i++)
		if (!c->rows[i].apart && !isnan(c->rows[i].measured))
			errors[n++] = fabs(comparison_error(&c->rows[i]));
	*ret = (struct summary){ .rows = n, .median = NAN, .worst = NAN };
	if (n == 0)
		return;
	qsort(errors, n, sizeof(errors[0]), by_size);
	ret->median = (errors[(n - 1) / 2] + errors[n / 2]) / 2;
	ret->worst = errors[n - 1];
}

/* Reads the table and compares each row with how(). */
static int compare(const char *dir, const char *file,
		   int (*how)(const struct rows *rows, size_t row, struct comparison *ret),
		   struct comparisons *ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	int r;

	*ret = (struct comparisons){ .file = file };
	r = rows_read(dir, file, &rows);
	if (r < 0)
		return r;
	ret->rows = calloc(rows_count(rows) + 1, sizeof(ret->rows[0]));
	if (!ret->rows)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < rows_count(rows); i++)
		r = how(rows, i, &ret->rows[ret->n++]);
	return r;
}

static int play_ms(const struct player *players, unsigned n, double *ret)
{
	uint64_t ns = 0;
	int r = play_loops(players, n, PLAY_TIMES, &ns);

	*ret = (double)ns / NS_PER_MS;
	return r;
}

static int compare_mask(const struct rows *rows, size_t row, struct comparison *ret)
{
	const char *hex = rows_text(rows, row, "mask_hex");
	const struct player player = { strtoull(hex, NULL, 16), MATRIX_1024 };

	ret->measured = rows_number(rows, row, "med");
	if (player.mask == 0 || isnan(ret->measured))
		return -EINVAL;
	return play_ms(&player, 1, &ret->model);
}

int compare_masks(const char *dir, struct comparisons *ret)
{
	return compare(dir, "cu_mask_distributed.tsv", compare_mask, ret);
}

static int kernel_named(const char *name, struct timing_kernel *ret)
{
	if (strcmp(name, "MM1024") != 0 && strcmp(name, "MM256") != 0)
		return -EINVAL;
	*ret = strcmp(name, "MM256") == 0 ? MATRIX_256 : MATRIX_1024;
	return 0;
}

static int compare_pair(const struct rows *rows, size_t row, struct comparison *ret)
{
	const char *measured = rows_text(rows, row, "measured");
	const char *competitor = rows_text(rows, row, "competitor");
	bool alone = strcmp(competitor, "-") == 0;
	struct player players[] = {
		{ .mask = strtoull(rows_text(rows, row, "mask"), NULL, 16) },
		{ .mask = strtoull(rows_text(rows, row, "competitor_mask"), NULL, 16) },
	};

	ret->measured = rows_number(rows, row, "med");
	if (players[0].mask == 0 || isnan(ret->measured) ||
	    kernel_named(measured, &players[0].kernel) < 0 ||
	    (!alone && kernel_named(competitor, &players[1].kernel) < 0))
		return -EINVAL;
	/* Slower than beside another kernel, for reasons that nobody has shown. */
	if (alone && strcmp(measured, "MM256") == 0)
		ret->apart = true; /* known not to fit */
	return play_ms(players, alone ? 1 : 2, &ret->model);
}

int compare_sharing(const char *dir, struct comparisons *ret)
{
	return compare(dir, "sharing.tsv", compare_pair, ret);
}

/* Ghost Exchange: 50 iterations, in each of which neighbours wait for each other twice: left
 * and right, then top and bottom. One, two and three waits were tried on the SPX rows: two fit
 * best. */
#define GHOST_STEPS (50U * 2U)

/* How many times as long as with slots for all. */
static int play_ghost(const struct ranks *ranks, double base_s, struct comparison *ret)
{
	struct ranks with = *ranks, without;
	uint64_t limited, free_of_limits;
	int r;

	if (ranks->ranks * ranks->queues <= ranks->queue_slots &&
	    ranks->ranks <= ranks->process_slots)
		ret->apart = true; /* within the limits */
	with.steps = GHOST_STEPS;
	with.step_ns = (uint64_t)(base_s * 1e9 / GHOST_STEPS);
	without = with;
	without.queue_slots = without.process_slots = 0;
	r = play_ranks(&with, &limited);
	if (r == 0)
		r = play_ranks(&without, &free_of_limits);
	if (r == 0)
		ret->model = (double)limited / (double)free_of_limits;
	return r;
}

static bool same(const struct rows *rows, size_t a, size_t b, const char *column)
{
	return strcmp(rows_text(rows, a, column), rows_text(rows, b, column)) == 0;
}

/* The nearest row before, or this one, of the same machine within its limits. */
static size_t base_of(const struct rows *rows, size_t row)
{
	size_t i = row;

	while (i > 0 && strncmp(rows_text(rows, i, "driver_msg"), "none", 4) != 0 &&
	       same(rows, i - 1, row, "gpu") && same(rows, i - 1, row, "mpi"))
		i--;
	return i;
}

static int compare_slice(const struct rows *rows, size_t row, struct comparison *ret)
{
	const char *gpu = rows_text(rows, row, "gpu"), *mode = rows_text(rows, row, "mode");
	double ranks = rows_number(rows, row, "ranks");
	double queues = rows_number(rows, row, "compute_queues");
	double base = rows_number(rows, base_of(rows, row), "total_s");
	struct ranks play = {
		/* 21 on MI250 is measured; why not 24 is not known. */
		.queue_slots = strcmp(gpu, "MI250") == 0 ? 21 : 24,
		.process_slots = strcmp(mode, "CPX") == 0 ? 6 : 13,
	};

	if (!(ranks >= 1 && ranks <= 64 && queues >= ranks && queues <= 1024) || isnan(base))
		return -EINVAL;
	play.ranks = (unsigned)ranks;
	play.queues = (unsigned)(queues / ranks);
	ret->measured = rows_number(rows, row, "total_s") / base;
	return play_ghost(&play, base, ret);
}

int compare_slices(const char *dir, struct comparisons *ret)
{
	return compare(dir, "oversubscription.tsv", compare_slice, ret);
}

/* Against the same program and ranks with one queue each to compute. */
static size_t spx_base(const struct rows *rows, size_t row)
{
	size_t i = row;

	while (i > 0 && same(rows, i - 1, row, "version") && same(rows, i - 1, row, "ranks"))
		i--;
	return i;
}

static int compare_spx_row(const struct rows *rows, size_t row, struct comparison *ret)
{
	double ranks = rows_number(rows, row, "ranks");
	double streams = rows_number(rows, row, "gpu_max_hw_queues");
	double base = rows_number(rows, spx_base(rows, row), "total_s");
	struct ranks play = { .queue_slots = 24, .process_slots = 13 };

	if (!(ranks >= 1 && ranks <= 64 && streams >= 1 && streams <= 16) || isnan(base))
		return -EINVAL;
	play.ranks = (unsigned)ranks;
	play.queues = (unsigned)streams + 1;
	ret->measured = rows_number(rows, row, "total_s") / base;
	return play_ghost(&play, base, ret);
}

int compare_spx(const char *dir, struct comparisons *ret)
{
	return compare(dir, "oversubscription_spx.tsv", compare_spx_row, ret);
}
