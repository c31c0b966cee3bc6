/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* kfdsim-timing prints the time of programs that the timing model runs beside each other. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kfdsim/timing/timing-play.h"

static int usage(FILE *to, int status)
{
	fputs("kfdsim-timing --play THREADS:MASK…\n\n"
	      "Simulates up to four programs on one Radeon VII. Each has a CU mask and computes one\n"
	      "product of 1024 x 1024 matrices after the other, with 1024 or 256 threads a block.\n"
	      "Prints the median time of the first program in ms.\n",
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
	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return usage(stdout, EXIT_SUCCESS);
	if (argc < 2 || strcmp(argv[1], "--play") != 0)
		return usage(stderr, 2);
	return play_them(argv + 2, argc - 2);
}
