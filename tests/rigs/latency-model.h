/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A device for gpuarbctl latency without a GPU. Each game takes a time that depends on the places
 * of the two CUs: 50 to 80 ns for a CU with itself, 100 to 130 ns within a shader engine, 150 to
 * 180 ns across shader engines. Hardware numbers count fused-off CUs, as those of real GPUs do.
 * Each failure that the program handles can be switched on.
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
	unsigned rules; /* of the last game */
	uint64_t random;

	size_t made, live, peak, games;

	/* Failures; each 0 or NULL: off. */
	size_t fail_at;             /* creating the stream of this number, from 1, fails … */
	int fail_with;              /* … with this error */
	bool fail_on;               /* and all that follow */
	size_t stop_at;             /* the check for a stop of this number, from 1, returns … */
	int stop_with;              /* … this */
	const struct place *slow;   /* games of this CU with others take 1.5 times as long */
	double slow_pair;           /* ns of the first CU of SE0 with the first of SE1 */
	const struct place *strays; /* this CU's kernels run in strays_to, whatever the mask is */
	struct place strays_to;
	bool ignores_masks;          /* all kernels run in the same place */
	bool bistable;               /* a test draws a slow state */
	int change_with;             /* the result of a change of a mask */
	unsigned slots;              /* more queues are slow; 0: any number fits */
	unsigned hangs_at;           /* so many queues do not end */
	bool no_pause;               /* queues cannot be paused */
	double noise;                /* of the time of work-groups, as a part of it */
	unsigned jumps;              /* so many of the next runs end when the clock was reset */
	size_t hot_from, hot_to;     /* these runs take 1.3 times as long */
	unsigned beside;             /* other processes … */
	enum neighbours beside_kind; /* … and what they use */
	bool wanders;                /* every other game runs on another shader engine */
	enum model_answer answer;
	size_t answer_from, answer_to; /* apply `answer` to these games, from 1; 0: to all */
};

void latency_model_open(struct latency_model *model, struct device *ret);
int latency_model_stop(void *model, int msec); /* a stop's */

/* The GPU of a shipped profile. */
struct model latency_gpu(const char *profile);
