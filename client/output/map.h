/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The lease of each CU of a GPU, and drawings of it. */

#include <stdio.h>

#include "client/output/lease-text.h"
#include "client/output/model.h"

/* A cell is an index of grid.here, or one of these. */
#define GRID_FREE (-1)
#define GRID_SHARED (-2) /* in masks of several leases; a lent CU belongs to its borrower */

struct grid {
	struct model model;
	const struct gpuarb_gpu *gpu;
	struct lent all;                       /* leases of all GPUs */
	const struct gpuarb_lease_info **here; /* leases with a partition of this GPU, owned */
	size_t n_here;
	int cell[CUSET_PAIRS][CUSET_ARRAYS * CUSET_ARRAY_CUS];
};

/* -EINVAL: the daemon describes an impossible GPU; -ENOMEM. Both with an error in buf. */
int grid_init(struct grid *grid, const struct gpuarb_gpu *gpu,
	      const struct gpuarb_lease_info *leases, size_t n, char *buf, size_t size);
void grid_done(struct grid *grid);

/* '.', '+' for shared, else the lease's letter: a to z, A to Z, then '#'. */
char grid_letter(int cell);

/* The cell of a working CU. */
static inline int grid_cell(const struct grid *grid, unsigned xcc, unsigned engine, unsigned array,
			    unsigned cu)
{
	return grid->cell[cuset_pair(xcc, engine)][array * CUSET_ARRAY_CUS + cu];
}

void map_draw_text(const struct command *command, const struct grid *grid);

/* Draws all grids below each other. */
void map_draw_svg(FILE *out, const struct grid *grids, size_t n);
