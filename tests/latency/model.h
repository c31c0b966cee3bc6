/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A GPU that answers games as a real one might: figures by where the two CUs are (a place
 * with itself 50 to 80 ns, within a shader engine 100 to 130, across 150 to 180), numbers of
 * the hardware that count CUs which were fused off. And all that can go wrong.
 */

#include "client/latency/device.h"
#include "client/latency/unit.h"
#include "client/output/model.h"

enum model_answer {
	ANSWERS,
	STAYS_SILENT, /* nothing is written back */
	MEETS_NOBODY,
	LEAVES,
	IS_CUT_OFF,
};

struct latency_model {
	const struct model *gpu;
	bool same_line; /* what the last game was told */
	uint64_t random;

	size_t made, live, peak, games;

	/* What goes wrong; each 0 or NULL: nothing. */
	size_t fail_at; /* the stream of this number, from 1 … */
	int fail_with;  /* … with this error */
	size_t stop_at; /* look of this number, from 1 … */
	int stop_with;
	const struct place *slow;   /* takes half as long again, with all others */
	double slow_pair;           /* games of SE0's first with SE1's first take so long */
	const struct place *strays; /* runs in strays_to whatever its mask says */
	struct place strays_to;
	bool ignores_masks; /* all run in the same place */
	bool wanders;       /* every other game elsewhere */
	enum model_answer answer;
	size_t answer_from, answer_to; /* for these games only, from 1; 0: for all */
};

void latency_model_open(struct latency_model *model, struct device *ret);
int latency_model_stop(void *model, int msec); /* a stop's */
