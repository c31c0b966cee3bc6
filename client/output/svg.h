/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Drawings of --svg. */

#include <stdio.h>

#include "client/options/options.h"

/* A drawing is readable on a dark page, too: it has a background of its own. */
#define SVG_INK "#222222"
#define SVG_PAPER "#ffffff"

#define SVG_LINE 22U
#define SVG_MARGIN 16U

void svg_begin(FILE *out, unsigned width, unsigned height);

/* Text of any user, escaped. */
void svg_text(FILE *out, const char *text);

/* A colour for number i. Neighbouring numbers get hues that are far apart. */
void svg_hue(FILE *out, unsigned i);

/* Draws to the file of --svg, "-": standard output. Returns the exit code. */
int svg_write(const struct command *command, void (*draw)(FILE *out, const void *drawing),
	      const void *drawing);
