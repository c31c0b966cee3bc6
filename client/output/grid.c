/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/grid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is lent is its borrower's. */
static int both(const struct grid *grid, int one, int other)
{
	if (one == GRID_FREE || (one >= 0 && lent_by(grid->here[one])))
		return other;
	return lent_by(grid->here[other]) ? one : GRID_SHARED;
}

static void mark(struct grid *grid, const struct cuset *set, int who)
{
	for (size_t pair = 0; pair < CUSET_PAIRS; pair++) {
		for (unsigned bit = 0; bit < CUSET_ARRAYS * CUSET_ARRAY_CUS; bit++) {
			int *cell = &grid->cell[pair][bit];

			if (set->pair[pair] >> bit & 1)
				*cell = both(grid, *cell, who);
		}
	}
}

static void add_lease(struct grid *grid, const struct gpuarb_lease_info *lease)
{
	for (size_t i = 0; i < lease->n_partitions; i++) {
		const struct gpuarb_partition *partition = &lease->partitions[i];
		struct cuset set;

		if (strcmp(partition->gpu, grid->gpu->name) != 0)
			continue;
		codec_decode(&grid->model.codec, partition->cu_mask, partition->cu_mask_words,
			     &set);
		grid->here[grid->n_here] = lease;
		mark(grid, &set, (int)grid->n_here++);
		return; /* a lease has one partition on a GPU */
	}
}

int grid_init(struct grid *grid, const struct gpuarb_gpu *gpu,
	      const struct gpuarb_lease_info *leases, size_t n, char *buf, size_t size)
{
	if (model_of_gpu(gpu, &grid->model, buf, size) < 0)
		return -EINVAL;

	grid->gpu = gpu;
	grid->all = (struct lent){ leases, n };
	grid->n_here = 0;
	grid->here = calloc(n + 1, sizeof(struct gpuarb_lease_info *));
	if (!grid->here) {
		snprintf(buf, size, "no memory");
		return -ENOMEM;
	}
	for (size_t pair = 0; pair < CUSET_PAIRS; pair++)
		for (unsigned bit = 0; bit < CUSET_ARRAYS * CUSET_ARRAY_CUS; bit++)
			grid->cell[pair][bit] = GRID_FREE;
	for (size_t i = 0; i < n; i++)
		add_lease(grid, &leases[i]);
	return 0;
}

void grid_done(struct grid *grid)
{
	free(grid->here);
	grid->here = NULL;
}

char grid_letter(int cell)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (cell == GRID_FREE)
		return '.';
	if (cell == GRID_SHARED)
		return '+';
	return (size_t)cell < sizeof(letters) - 1 ? letters[cell] : '#';
}
