/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/placement.h"

/* ---- one policy ----------------------------------------------------------------------- */

struct live {
	double until;
	unsigned asked;
	bool counts; /* it was offered after the start had been forgotten */
	struct grant grant;
};

struct run {
	struct machine *machine;
	const struct policy *policy;
	struct live *live;
	size_t n_live;
	double from, last; /* counted: between these requests, and what was granted there */
	double now;
	double fairness, shared; /* x time, and the time with at least two adaptable leases */
	double useful;
};

/* A grant does what it does for this long. */
static void work(struct run *run, double duration)
{
	for (size_t i = 0; i < run->n_live; i++)
		if (run->live[i].counts)
			run->useful += min_u(run->live[i].grant.effective, run->live[i].asked) *
				       duration;
}

static void advance(struct run *run, double to)
{
	double since = fmax(run->now, run->from), until = fmin(to, run->last);

	if (until > since) {
		double fairness = machine_fairness(run->machine);

		if (!isnan(fairness)) {
			run->fairness += fairness * (until - since);
			run->shared += until - since;
		}
	}
	work(run, to - run->now);
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

static void refresh(struct run *run)
{
	for (size_t i = 0; i < run->n_live; i++)
		machine_refresh(run->machine, &run->live[i].grant);
}

void run_policy(const struct gpu_info *info, const struct policy *policy, const struct job *jobs,
		size_t n, size_t forget, struct outcome_of_run *ret)
{
	_cleanup_(machine_freep) struct machine *machine = machine_new(info, policy);
	_cleanup_(freep) struct live *live = calloc(machine->cus, sizeof(*live));
	struct run run = {
		.machine = machine,
		.policy = policy,
		.live = live,
		.from = jobs[forget].at,
		.last = jobs[n - 1].at,
	};
	double offered = 0, span = run.last - run.from;
	unsigned moves = 0;

	for (size_t i = 0; i < n; i++) {
		struct live *next;

		end_until(&run, jobs[i].at);
		if (i == forget)
			moves = machine->moves;
		if (i >= forget)
			offered += jobs[i].cus * (jobs[i].until - jobs[i].at);
		next = &live[run.n_live];
		if (!machine_take(machine, policy, &jobs[i], &next->grant))
			continue;
		next->until = jobs[i].until;
		next->asked = jobs[i].cus;
		next->counts = i >= forget;
		run.n_live++;
		if (machine->moves > 0)
			refresh(&run);
	}
	end_until(&run, INFINITY);
	ret->useful = run.useful / offered;
	ret->moves = (machine->moves - moves) / span;
	ret->fairness = run.shared > 0 ? run.fairness / run.shared : NAN;
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
