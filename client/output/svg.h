/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Drawings of --svg. */

#include <stdio.h>

#include "client/options/options.h"
#include "util/base.h"

/* A drawing is readable on a dark page, too: it has a background of its own. */
#define SVG_INK "#222222"
#define SVG_PAPER "#ffffff"

#define SVG_LINE 22U
#define SVG_MARGIN 16U
#define SVG_CELL 18U                  /* from cell to cell, also to the one below */
#define SVG_LABEL 100U                /* room for "XCC 7 pipe 7" before a row of cells */
#define SVG_GAP 8U                    /* between the cells and the legend */
#define SVG_Y(y) ((y) + SVG_CELL - 6) /* of the text beside a cell at y */

void svg_begin(FILE *out, unsigned width, unsigned height);

/* Text of any user, escaped. */
void svg_text(FILE *out, const char *text);

/* The same, cut to as many characters: a legend stays within the drawing. */
void svg_name(FILE *out, const char *text, size_t characters);

/* The name of a GPU, and ", " with more. y: of a line of cells. */
void svg_title(FILE *out, unsigned y, const struct gpuarb_gpu *gpu, const char *format, ...)
	PRINTF_LIKE(4, 5);

/* A cell for number i with a letter. Neighbouring numbers get hues that are far apart. SVG_FREE: without
 * a letter. */
#define SVG_FREE (-1)
#define SVG_SHARED (-2)
void svg_cell(FILE *out, unsigned x, unsigned y, int i, char letter);

void svg_legend_free(FILE *out, unsigned y); /* the last line of a legend */

/* Draws to the file of --svg, "-": standard output. Returns the exit code. */
int svg_write(const struct command *command, void (*draw)(FILE *out, const void *drawing),
	      const void *drawing);
