/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/map-draw.h"

#include <inttypes.h>

#include "client/output/print.h"

/* Legible on light and dark grounds; the letters say the same without them. */
static void put_cell(const struct command *command, int cell)
{
	static const unsigned colours[] = { 31, 32, 33, 34, 35, 36, 91, 92, 93, 94, 95, 96 };

	if (command->colour && cell >= 0)
		printf("\033[%um%c" COLOUR_NONE, colours[(size_t)cell % ARRAY_SIZE(colours)],
		       grid_letter(cell));
	else
		putchar(grid_letter(cell));
}

static void draw_engine(const struct command *command, const struct grid *grid, unsigned xcc,
			unsigned engine)
{
	const struct geometry *geometry = &grid->model.geometry;

	if (geometry->xccs > 1)
		printf("XCC %u ", xcc);
	printf("SE %u ", engine);
	for (unsigned a = 0; a < geometry->arrays; a++) {
		putchar(a > 0 ? '|' : ' ');
		for (unsigned cu = 0; cu < geometry->active[xcc][engine][a]; cu++)
			put_cell(command, grid_cell(grid, xcc, engine, a, cu));
	}
	putchar('\n');
}

static void print_legend(const struct command *command, const struct grid *grid)
{
	for (size_t i = 0; i < grid->n_here; i++) {
		const struct gpuarb_lease_info *lease = grid->here[i];
		char lent[64];

		lent_text(&grid->all, lease, lent, sizeof(lent));
		put_cell(command, (int)i);
		print_line(stdout, "  lease %" PRIu64 " %.40s, %s, tenant %.40s, %s%s%s", lease->id,
			   lease->name, lease->lease_class, lease->tenant, lease->state,
			   *lent ? ", " : "", lent);
	}
	print_line(stdout, ".  free%s",
		   grid->model.geometry.arrays > 1 ? "; | between shader arrays" : "");
}

void map_draw_text(const struct command *command, const struct grid *grid)
{
	const struct geometry *geometry = &grid->model.geometry;

	print_line(stdout, "%s  %s, %u of %u CUs free%s", grid->gpu->name, grid->gpu->device,
		   grid->gpu->cus_free, grid->gpu->cus,
		   grid->gpu->harvest_known ? "" : " (which CUs are fused off is a guess)");
	for (unsigned x = 0; x < geometry->xccs; x++)
		for (unsigned e = 0; e < geometry->engines; e++)
			draw_engine(command, grid, x, e);
	if (!command->no_legend)
		print_legend(command, grid);
}
