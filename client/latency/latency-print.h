/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Ways to show what was measured. */

#include <stdio.h>

#include "client/latency/judge.h"
#include "client/options/options.h"

struct findings {
	const char *gpu; /* "0000:03:00.0" */
	const struct model *model;
	const struct units *units;
	const struct matrix *matrix;
	const struct summary *summary;
	bool same_line;
	/* Which CUs are fused off. Otherwise it is assumed where a bit of a mask leads. */
	bool harvest_known;
};

extern const char *const pair_class_keys[PAIR_CLASSES]; /* of JSON */

/* "SE0:3 and SE2:1", "SE0:3 with itself". */
#define PAIR_NAME (2 * UNIT_NAME + 16)
void pair_name(const struct findings *findings, size_t a, size_t b, char buf[static PAIR_NAME]);

/* Where a unit ran, as its name is: "SE0:5", of several XCCs all, "XCC0.SE0:5 …". */
#define RAN_NAME (CUSET_XCCS * UNIT_NAME)
void ran_name(const struct findings *findings, size_t i, char buf[static RAN_NAME]);

void print_text(const struct command *command, const struct findings *findings, FILE *out);
void print_json(const struct findings *findings, FILE *out);
void print_svg(const struct findings *findings, FILE *out);
