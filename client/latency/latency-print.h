/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Prints the results as text, JSON or SVG. */

#include <stdio.h>

#include "client/latency/matrix.h"
#include "client/options/options.h"

struct findings {
	const char *gpu; /* "0000:03:00.0" */
	const struct model *model;
	const struct units *units;
	const struct matrix *matrix;
	const struct summary *summary;
	bool same_line;
	/* It is known which CUs are fused off; else the places of mask bits are assumed. */
	bool harvest_known;
};

extern const char *const pair_class_keys[PAIR_CLASSES]; /* JSON keys */

/* "SE0:3 and SE2:1", "SE0:3 with itself". */
#define PAIR_NAME (2 * UNIT_NAME + 16)
void pair_name(const struct findings *findings, size_t a, size_t b, char buf[static PAIR_NAME]);

/* The place where a unit ran: "SE0:5", or on all XCCs "XCC0.SE0:5 …". */
#define RAN_NAME (CUSET_XCCS * UNIT_NAME)
void ran_name(const struct findings *findings, size_t i, char buf[static RAN_NAME]);

void print_text(const struct command *command, const struct findings *findings, FILE *out);
void print_json(const struct findings *findings, FILE *out);
void print_svg(const struct findings *findings, FILE *out);
