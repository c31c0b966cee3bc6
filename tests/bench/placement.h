/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A GPU under a random load: what bench-placement is made of.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/change/arbiter.h"

#define POLICIES 4
#define GPUARB 3 /* of them are the arbiter, the first of them without adaptable leases */
#define FLUID (POLICIES - 1)

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

/* What a job got. */
struct grant {
	uint64_t id;            /* the arbiter's */
	unsigned effective;     /* CUs that do work, E */
	unsigned whole_engines; /* fluid: so many */
};

/* One GPU as a policy sees it. */
struct machine {
	struct gpu_info info;
	unsigned cus, used, used_engines; /* used: of fluid */
	struct arbiter *arbiter;          /* those policies that ask it */
	uint64_t now_usec;
	unsigned moves; /* of adaptable leases */
};

struct policy {
	const char *name;
	bool arbiter;
	bool (*take)(struct machine *machine, const struct job *job, struct grant *ret);
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
	double useful;   /* min(E, asked) x time, of asked x time */
	double moves;    /* for each mean duration of a job */
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
		struct mean useful, of_fluid, moves, fairness;
	} by[POLICIES];
};
