/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <math.h>
#include <stdlib.h>

#include "bench/placement.h"

struct source {
	unsigned short state[3];
};

static double uniform(struct source *source)
{
	return erand48(source->state);
}

static double exponential(struct source *source)
{
	return -log(1 - uniform(source));
}

/* How many requests are for at most which part of the GPU. */
static const struct {
	double share;
	unsigned part;
} sizes[] = { { 0.50, 8 }, { 0.35, 4 }, { 0.15, 2 } };

static double mean_size(unsigned units)
{
	double mean = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		mean += sizes[i].share * (1 + units / sizes[i].part) / 2;
	return mean;
}

static unsigned size(struct source *source, unsigned units)
{
	double at = uniform(source), below = sizes[0].share;
	size_t i = 0;

	while (i < ARRAY_SIZE(sizes) - 1 && at >= below)
		below += sizes[++i].share;
	return 1 + (unsigned)(uniform(source) * (units / sizes[i].part));
}

struct job *load_make(const struct load *load, unsigned cus, unsigned step)
{
	struct source source = { { (unsigned short)load->seed, (unsigned short)(load->seed >> 16),
				   0x330e } };
	struct job *jobs = calloc(load->n, sizeof(*jobs));
	double rate = load->offered * (cus / step) / mean_size(cus / step), now = 0;

	if (!jobs)
		abort();
	for (size_t i = 0; i < load->n; i++) {
		now += exponential(&source) / rate;
		jobs[i].at = now;
		jobs[i].until = now + exponential(&source);
		jobs[i].cus = size(&source, cus / step) * step;
		jobs[i].realtime = uniform(&source) < load->realtime;
		jobs[i].second = i % 2;
	}
	return jobs;
}
