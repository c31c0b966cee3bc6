/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* kfdsim-timing prints the timing model beside each measured row, or with --play the time of
 * programs that the model runs beside each other. It does not judge the errors: tests do. */

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/timing/timing-compare.h"
#include "kfdsim/timing/timing-play.h"

static void print_row(const struct comparisons *c, const struct comparison *row)
{
	if (isnan(row->measured)) {
		printf("  %-52s     hangs %9.3f %s\n", row->what, row->model, c->unit);
		return;
	}
	printf("  %-52s %9.3f %9.3f %-5s %+7.1f %%%s%s\n", row->what, row->measured, row->model,
	       c->unit, comparison_error(row) * 100, row->apart ? "  " : "",
	       row->apart ? row->apart : "");
}

static void print_text(const struct comparisons *c)
{
	struct summary summary;

	comparisons_summary(c, &summary);
	printf("%s\n  %-52s  measured     model          error\n", c->file, "");
	for (size_t i = 0; i < c->n; i++)
		print_row(c, &c->rows[i]);
	printf("  model, %zu of %zu rows compared: median error %.1f %%, worst %.1f %%\n\n",
	       summary.rows, c->n, summary.median * 100, summary.worst * 100);
}

static int show(const char *dir)
{
	static int (*const each[])(const char *dir, struct comparisons *ret) = {
		compare_masks,
		compare_sharing,
		compare_slices,
		compare_spx,
	};

	puts("Times of the model, not of hardware: see tests/kfdsim/timing/timing.c.\n");
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		_cleanup_(comparisons_clear) struct comparisons c = { 0 };
		int r = each[i](dir, &c);

		if (r < 0) {
			fprintf(stderr, "kfdsim-timing: %s/%s: %s\n", dir, c.file, strerror(-r));
			return EXIT_FAILURE;
		}
		print_text(&c);
	}
	return EXIT_SUCCESS;
}

static int usage(FILE *to, int status)
{
	fputs("kfdsim-timing [DIRECTORY]\n"
	      "kfdsim-timing --play THREADS:MASK…\n\n"
	      "Prints the timing model beside each row measured on real GPUs, from the tables in\n"
	      "DIRECTORY (default: " KFDSIM_MEASURED ").\n"
	      "--play: simulates up to four programs on one Radeon VII. Each has a CU mask and\n"
	      "computes one product of 1024 x 1024 matrices after the other, with 1024 or 256\n"
	      "threads a block. Prints the median time of the first program in ms.\n",
	      to);
	return status;
}

/* "1024:0xd55555555555555" */
static bool read_player(const char *text, struct player *ret)
{
	char *end;
	unsigned long threads = strtoul(text, &end, 10);

	if ((threads != 1024 && threads != 256) || strncmp(end, ":0x", 3) != 0)
		return false;
	ret->kernel = threads == 1024 ? MATRIX_1024 : MATRIX_256;
	text = end + 1;
	ret->mask = strtoull(text, &end, 16);
	return *end == '\0' && ret->mask != 0 && ret->mask >> PLAY_CUS == 0;
}

static int play_them(char *texts[], int n)
{
	struct player players[PLAY_PLAYERS];
	uint64_t ns;
	int r;

	if (n < 1 || n > (int)PLAY_PLAYERS)
		return usage(stderr, 2);
	for (int i = 0; i < n; i++)
		if (!read_player(texts[i], &players[i]))
			return usage(stderr, 2);
	r = play_loops(players, (unsigned)n, PLAY_TIMES, &ns);
	if (r < 0) {
		fprintf(stderr, "kfdsim-timing: %s\n", strerror(-r));
		return EXIT_FAILURE;
	}
	printf("%.4f\n", (double)ns / 1e6);
	return EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "play", no_argument, NULL, 'p' },
		{ 0 },
	};
	bool play = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'h')
			return usage(stdout, EXIT_SUCCESS);
		if (c == '?')
			return usage(stderr, 2);
		play = true;
	}
	if (play)
		return play_them(argv + optind, argc - optind);
	if (argc - optind > 1)
		return usage(stderr, 2);
	return show(optind < argc ? argv[optind] : KFDSIM_MEASURED);
}
