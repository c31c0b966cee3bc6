/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The measurements of «Exploring AMD GPU Scheduling Details by Experimenting With "Worst Practices"» (Otterness
 * and Anderson, RTNS 2021) on one's own GPU: products of matrices, on masks and beside competitors. What is
 * measured in which order, and what follows from it, needs no GPU: device.h.
 */

#include <stdio.h>

#include "client/calibrate/calibration.h"
#include "client/calibrate/sample.h"

#define PAPER_WARM 2U      /* runs that do not count */
#define PAPER_RUNS 5U      /* at a time */
#define PAPER_RUNS_MAX 30U /* while the interval of the median is wider than PAPER_WIDTH */
#define PAPER_WIDTH 0.02   /* of the median */
#define PAPER_GIVE_UP 3U   /* cases that fail in a row: the GPU is lost */
#define PAPER_SCHEMA "gpuarb-paper"

enum paper_set {
	PAPER_MASKS,      /* a kernel alone, on masks of 1 to all CUs */
	PAPER_COMPETITOR, /* beside a process that runs another kernel all the time */
	PAPER_QUEUES,     /* the same kernel on so many queues at once */
};
extern const char *const paper_sets[];

struct paper_case {
	enum paper_set set;
	const char *layout;        /* "distributed", "packed", ... */
	unsigned threads;          /* of a work-group */
	unsigned competitor;       /* its threads; 0: none */
	unsigned queues;           /* at once */
	struct cuset mask, theirs; /* theirs: the competitor's */
	unsigned cus, effective;
	bool done;
	struct sample sample[PAPER_RUNS_MAX];
	unsigned n;
	struct interval median; /* of the GPU's time; of queues, the host's */
	unsigned outliers;
};

/* The law of one kernel: fitted on half of its masks, judged on the others. */
struct paper_law {
	unsigned threads;
	struct law_fit fit; /* its errors are those at the judged masks; NAN: no law fits */
	size_t fitted, judged;
};

#define PAPER_KERNELS 3U

struct paper {
	struct paper_case *list; /* in the order of the plan */
	size_t n;
	size_t *order; /* in which they are measured */
	uint64_t seed;
	struct paper_law law[PAPER_KERNELS];
	struct calibration calibration; /* events and missing cases */
};

/* The work of one product with so many threads a work-group. */
struct work paper_work(unsigned threads);

/* Lists the cases, with a competitor if there may be one, and up to so many queues, and shuffles them. -ENOMEM. */
int paper_plan(const struct model *model, bool competitor, unsigned queues, uint64_t seed,
	       struct paper *ret);
void paper_done(struct paper *paper);

/* The longest time that the set takes if a work-group takes as long as on a Radeon VII. */
double paper_estimate(const struct paper *paper);

struct paper_run {
	const struct calibration_run *run; /* with room for paper_waves() waves */
	struct paper *paper;
	void (*sense)(void *data, struct sample *ret); /* clock and temperature; or NULL */
	int (*save)(void *data,
		    const struct paper_case *c); /* a negative errno ends the measurement */
	void *data;
};
unsigned paper_waves(void);

/* Measures the cases. One that fails is missing, and is not saved. 0; the error of save(); a reason to stop.
 * Laws are fitted in the end in any case. */
int paper_measure(const struct paper_run *run);

/* calibrate --paper: paper-run.c. Prints what failed and returns the exit code. */
int paper_command(struct command *command, struct bench *bench);

const char *paper_name(const struct paper_case *c, char *buf, size_t size);
