/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/bound.h"

#include "util/base.h"

uint64_t bound_margin(const struct bound *bound, uint64_t work)
{
	return bound_divide_up(work * bound->margin_percent, 100);
}

/* The latency ends before the first change. */
uint64_t bound_changes(const struct bound *bound, uint64_t response)
{
	if (bound->change == 0)
		return 0;
	return bound_divide_up(response - bound->latency, bound->interval) + 1;
}

uint64_t bound_add(uint64_t sum, uint64_t count, uint64_t cost)
{
	uint64_t product;

	if (__builtin_mul_overflow(count, cost, &product) ||
	    __builtin_add_overflow(sum, product, &sum) || sum > BOUND_COST_MAX)
		return BOUND_COST_MAX;
	return sum;
}

uint64_t bound_rates_within(const struct bound_rates *rates, uint64_t window)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < rates->n; i++)
		least = min_u64(least, bound_add(0, bound_divide_up(window, rates->list[i].usec),
						 rates->list[i].count));
	return least;
}

/* The most events that reach into a window of this length. */
static uint64_t events_within(const struct bound_events *events, uint64_t window)
{
	return events->rates.n > 0
		       ? bound_rates_within(&events->rates, window + events->before) + events->late
		       : 0;
}

uint64_t bound_standstill(const struct bound *bound, uint64_t response)
{
	uint64_t sum = bound_add(bound->once, bound_changes(bound, response), bound->change);

	for (size_t i = 0; i < BOUND_SOURCES; i++)
		sum = bound_add(sum, events_within(&bound->events[i], response),
				bound->events[i].cost);
	return sum;
}

double bound_load(const struct bound *bound)
{
	double load = (double)bound->change / (double)bound->interval;

	for (size_t i = 0; i < BOUND_SOURCES; i++) {
		const struct bound_events *events = &bound->events[i];
		double least = 0;

		for (size_t k = 0; k < events->rates.n; k++) {
			const struct bound_rate *rate = &events->rates.list[k];
			double share = (double)rate->count / (double)rate->usec;

			least = k == 0 || share < least ? share : least;
		}
		load += least * (double)events->cost;
	}
	return load;
}

/* The least time from `still` on that has room for so much and the standstill within it; BOUND_NONE:
 * it is longer than `most`. */
static uint64_t iterate(const struct bound *bound, uint64_t still, uint64_t time, uint64_t most)
{
	uint64_t next;

	if (bound_load(bound) >= 1)
		return BOUND_NONE;
	while (time <= most) {
		next = still + bound_standstill(bound, time);
		if (next <= time)
			return time;
		time = next;
	}
	return BOUND_NONE;
}

uint64_t bound_finish(const struct bound *bound, uint64_t work, uint64_t most)
{
	uint64_t still = bound->latency + work;

	return iterate(bound, still, still, most);
}

static uint64_t respond(const struct bound *bound, uint64_t work, uint64_t most)
{
	return bound_finish(bound, bound->host + work + bound_margin(bound, work), most);
}

uint64_t bound_response(const struct bound *bound, uint64_t work)
{
	return respond(bound, work, BOUND_TIME_MAX);
}

uint64_t bound_longest_stop(const struct bound *bound)
{
	return iterate(bound, bound->latency, bound->latency + 1, BOUND_TIME_MAX);
}

int64_t bound_work_within(const struct bound *bound, uint64_t response)
{
	uint64_t fits = 0, fails;

	response = min_u64(response, BOUND_TIME_MAX);
	fails = response + 1;
	if (respond(bound, 0, response) == BOUND_NONE)
		return -1;
	while (fits + 1 < fails) {
		uint64_t work = (fits + fails) / 2;

		if (respond(bound, work, response) == BOUND_NONE)
			fails = work;
		else
			fits = work;
	}
	return (int64_t)fits;
}
