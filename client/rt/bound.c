/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/rt/bound.h"

#define RESPONSE_MAX (UINT64_C(24) * 3600 * 1000000)

static uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b > 0);
}

uint64_t bound_margin(const struct bound *bound, uint64_t work)
{
	return divide_up(work * bound->margin_percent, 100);
}

/* The latency ends before the first change. */
uint64_t bound_changes(const struct bound *bound, uint64_t response)
{
	if (bound->change == 0)
		return 0;
	return divide_up(response - bound->latency, bound->interval) + 1;
}

uint64_t bound_standstill(const struct bound *bound, uint64_t response)
{
	return bound_changes(bound, response) * bound->change + bound->once;
}

uint64_t bound_response(const struct bound *bound, uint64_t work)
{
	uint64_t still = bound->latency + bound->host + work + bound_margin(bound, work);
	uint64_t response = still, next;

	/* Changes that take the whole interval leave no time for jobs. */
	if (bound->change >= bound->interval)
		return BOUND_NONE;
	while (response <= RESPONSE_MAX) {
		next = still + bound_standstill(bound, response);
		if (next == response)
			return response;
		response = next;
	}
	return BOUND_NONE;
}

/* The time for jobs in a window of this length; may be negative. */
static int64_t left_of(const struct bound *bound, uint64_t window)
{
	return (int64_t)window - (int64_t)bound->latency - (int64_t)bound->host -
	       (int64_t)bound_standstill(bound, window);
}

/*
 * The least fixed point is within the response if and only if some window that is not longer has
 * room for the work. What is left of a window grows with it but where one more change begins,
 * just past a multiple of the interval: with change < interval the most is left at the end or
 * at the last such multiple before it.
 */
int64_t bound_work_within(const struct bound *bound, uint64_t response)
{
	uint64_t last;
	int64_t left, before;

	if (bound->change >= bound->interval || response < bound->latency)
		return -1;
	left = left_of(bound, response);
	last = bound->latency + (response - bound->latency) / bound->interval * bound->interval;
	before = left_of(bound, last);
	if (before > left)
		left = before;
	if (left < 0)
		return -1;
	/* The most work with work + ceil(work x margin / 100) <= left. */
	return (int64_t)((uint64_t)left * 100 / (100 + bound->margin_percent));
}
