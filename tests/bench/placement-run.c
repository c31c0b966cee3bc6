/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/placement.h"

/* ---- one policy ----------------------------------------------------------------------- */

struct live {
	double until;
	struct grant grant;
};

struct run {
	struct machine *machine;
	const struct policy *policy;
	struct live *live;
	size_t n_live;
	double from, now; /* counted from; last event */
	double largest;   /* x time */
};

static void advance(struct run *run, double to)
{
	if (to > run->from) {
		double since = run->now > run->from ? run->now : run->from;

		run->largest += run->policy->largest(run->machine) * (to - since);
	}
	run->now = to;
}

/* Ends what ends before `to`, in order. */
static void end_until(struct run *run, double to)
{
	for (;;) {
		size_t first = run->n_live;

		for (size_t i = 0; i < run->n_live; i++)
			if (run->live[i].until <= to &&
			    (first == run->n_live || run->live[i].until < run->live[first].until))
				first = i;
		if (first == run->n_live)
			break;
		advance(run, run->live[first].until);
		machine_drop(run->machine, run->policy, &run->live[first].grant);
		run->live[first] = run->live[--run->n_live];
	}
	advance(run, to);
}

void run_policy(const struct gpu_info *info, const struct policy *policy, const struct job *jobs,
		size_t n, size_t forget, struct outcome_of_run *ret)
{
	_cleanup_(machine_freep) struct machine *machine = machine_new(info, policy);
	_cleanup_(freep) struct live *live = calloc(machine->cus, sizeof(*live));
	struct run run = {
		.machine = machine, .policy = policy, .live = live, .from = jobs[forget].at
	};
	double offered = 0, useful = 0, granted = 0, effective = 0;

	for (size_t i = 0; i < n; i++) {
		double duration = jobs[i].until - jobs[i].at;
		struct grant *grant;

		end_until(&run, jobs[i].at);
		grant = &live[run.n_live].grant;
		if (i >= forget)
			offered += jobs[i].cus * duration;
		if (!machine_take(machine, policy, &jobs[i], grant))
			continue;
		live[run.n_live++].until = jobs[i].until;
		if (i < forget)
			continue;
		useful += min_u(grant->effective, jobs[i].cus) * duration;
		granted += grant->granted * duration;
		effective += grant->effective * duration;
	}
	ret->useful = useful / offered;
	ret->per_granted = granted > 0 ? effective / granted : 0;
	ret->largest = run.largest / (run.now - run.from) / machine->cus;
}

/* ---- several instances ------------------------------------------------------------------ */

void mean_add(struct mean *mean, double value)
{
	mean->sum += value;
	mean->squares += value * value;
	mean->n++;
}

double mean_of(const struct mean *mean)
{
	return mean->n ? mean->sum / mean->n : 0;
}

double mean_error(const struct mean *mean)
{
	double m = mean_of(mean), variance;

	if (mean->n < 2)
		return 0;
	variance = (mean->squares - mean->n * m * m) / (mean->n - 1);
	return variance > 0 ? sqrt(variance / mean->n) : 0;
}
