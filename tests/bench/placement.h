/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A GPU under a random load, and who may choose the CUs: what bench-placement is made of.
 *
 * Every policy works under the same promises: CUs are exclusive, and no two realtime leases
 * are in one shader engine. Only the choice differs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/change/arbiter.h"

#define POLICIES 8
#define GPUARB 3 /* of them are the arbiter, the first of them without adaptable leases */
#define FLUID (POLICIES - 1)
#define EIGHTHS 8U

struct job {
	double at, until;
	unsigned cus;
	bool realtime;
	bool second; /* every second one */
};

/* Poisson arrivals, exponential durations of mean 1 (an hour, for what happens in an hour); half of the requests are for 1 to an
 * eighth of the GPU, 35 % for 1 to a quarter, 15 % for 1 to a half, each number as likely, in
 * what a mask can name (CUs, or WGPs). */
struct load {
	double offered;  /* CU time asked for, of what the GPU has */
	double realtime; /* share of the requests */
	size_t n;
	unsigned seed;
};

struct job *load_make(const struct load *load, unsigned cus, unsigned step);

/* What a job got: CUs that are its own, and those of them that do work, E. */
struct grant {
	uint64_t id; /* the arbiter's */
	struct cuset cus;
	unsigned granted, effective;
	uint32_t engines;       /* closed to other realtime leases */
	unsigned whole_engines; /* fluid: so many */
};

/* One GPU as a policy sees it. */
struct machine {
	struct gpu_info info;
	struct codec codec;
	struct cuset all, taken;
	uint32_t engines; /* with a realtime lease */
	unsigned cus, used, used_engines;
	struct cuset part[EIGHTHS];
	struct arbiter *arbiter; /* those policies that ask it */
	uint64_t now_usec;
	unsigned moves; /* of adaptable leases */
};

struct policy {
	const char *name;
	bool arbiter;
	bool (*take)(struct machine *machine, const struct job *job, struct grant *ret);
	unsigned (*largest)(const struct machine *machine); /* E of what it would give now */
};

extern const struct policy policies[POLICIES]; /* the first are gpuarb's, the last the upper line */

struct machine *machine_new(const struct gpu_info *info, const struct policy *policy);
struct machine *machine_free(struct machine *machine);
DEFINE_CLEANUP(struct machine *, machine_free)

bool machine_take(struct machine *machine, const struct policy *policy, const struct job *job,
		  struct grant *ret);
/* Brings a grant up to date after moves. */
void machine_refresh(const struct machine *machine, struct grant *grant);
/* Jain's index of the CUs of the adaptable leases, or NAN: there are fewer than two. They do not
 * grow here, so it is close to the index of the numbers of CUs that they asked for. */
double machine_fairness(const struct machine *machine);
void machine_drop(struct machine *machine, const struct policy *policy, const struct grant *grant);

/* What came of a policy, of what was offered after the start had been forgotten. */
struct outcome_of_run {
	double useful;      /* min(E, asked) x time, of asked x time */
	double per_granted; /* E of granted CUs */
	double largest;     /* request still possible, of the GPU, over time */
	double moves;       /* for each mean duration of a job */
	double fairness; /* over the time with at least two adaptable leases; NAN: there is none */
};

void run_policy(const struct gpu_info *info, const struct policy *policy, const struct job *jobs,
		size_t n, size_t forget, struct outcome_of_run *ret);

/* ---- several instances of a row ------------------------------------------------------ */

struct mean {
	double sum, squares;
	unsigned n;
};

void mean_add(struct mean *mean, double value);
double mean_of(const struct mean *mean);
double mean_error(const struct mean *mean); /* its standard error */

struct row {
	char profile[32];
	unsigned xccs, engines, cus;
	double offered, realtime;
	struct {
		struct mean useful, per_granted, largest, of_fluid, moves, fairness;
	} by[POLICIES];
	struct mean ahead; /* of the best rival in useful work, of that */
};
