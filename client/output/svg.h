/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Drawings of --svg. */

#include <stdio.h>

#include "client/options/options.h"
#include "util/base.h"

#define SVG_LINE 22U
#define SVG_CELL 18U   /* from cell to cell, also to the one below */
#define SVG_LABEL 100U /* room for "XCC 7 pipe 7" before a row of cells */
#define SVG_GAP 8U     /* between the cells and the legend */

/* A drawing grows downwards while it is drawn. */
struct svg {
	FILE *out;
	unsigned x, y;  /* of the next cell, or line of text */
	unsigned right; /* end of the longest row */
};

/* A text cut to as many characters: a legend stays within the drawing. Returns buf. */
#define SVG_NAME(characters) (sizeof("..") + 4U * (characters))
const char *svg_cut(const char *text, size_t characters, char *buf);

/* A line with the name of a GPU, and ", " with more. */
void svg_title(struct svg *svg, const struct gpuarb_gpu *gpu, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* The beginning of a row of cells. width: of the room for labels. */
void svg_row(struct svg *svg, const char *label, unsigned width);

/* A cell for number i with a letter. Neighbouring numbers get hues that are far apart. SVG_FREE: without
 * a letter. */
#define SVG_FREE (-1)
#define SVG_SHARED (-2)
void svg_cell(struct svg *svg, int i, char letter);

/* A line with a cell and what it stands for. */
void svg_legend(struct svg *svg, int i, char letter, const char *format, ...) PRINTF_LIKE(4, 5);

/* Draws to the file of --svg, "-": standard output. Returns the exit code. */
int svg_write(const struct command *command, void (*draw)(struct svg *svg, const void *drawing),
	      const void *drawing);
