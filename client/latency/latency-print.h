/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints the results as text, JSON or SVG. */

#include <stdio.h>

#include "client/latency/matrix.h"
#include "client/options/options.h"

struct findings {
	const struct gpuarb_gpu *gpu;
	const struct model *model;
	const struct units *units;
	const struct matrix *matrix;
	const struct summary *summary;
	unsigned rules;
	bool emulated;
};

void print_text(const struct command *command, const struct findings *findings, FILE *out);
void print_json(const struct findings *findings, FILE *out);

/* To the file of --svg. Returns the exit code. */
int print_svg(const struct command *command, const struct findings *findings);
