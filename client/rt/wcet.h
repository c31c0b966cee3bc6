/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a table of measured execution times says of a number of CUs. */

#include "client/rt/set.h"

enum rt_source {
	RT_MEASURED, /* on so many CUs */
	RT_MODELLED, /* between two that were measured, by the law of masks */
	RT_KEPT,     /* measured on fewer: it is taken that more do not make it slower */
	RT_UNKNOWN,  /* fewer CUs than were ever measured: nothing is said */
};

const char *rt_source_name(enum rt_source source); /* measured modelled kept unknown */

/*
 * The longest that one job takes on so many effective CUs, RT_UNSET if it is unknown.
 *
 * Between two points (n, t) and (m, u), n < m, the law of masks (time ~ 1/E, gpuarb(7)) has
 * two answers for e CUs: t n / e from below and u m / e from above. A kernel that gains less
 * from CUs than the law says has the second above the first, one that gains more the reverse;
 * the longer counts, but never more than t, which was measured on fewer CUs. Never less than
 * u, as u m / e > u. What the law is wrong by, 9 % where it was measured, is for the margin.
 * law = false: t.
 */
uint64_t rt_wcet(const struct rt_task *task, unsigned cus, bool law, enum rt_source *ret_source);
