/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ways to show a grid. */

#include <stdio.h>

#include "client/output/grid.h"

void map_draw_text(const struct command *command, const struct grid *grid);

/* One drawing of all the grids, below each other. */
void map_draw_svg(FILE *out, const struct grid *grids, size_t n);
