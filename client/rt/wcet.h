/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Looks up execution times by a number of CUs. */

#include "client/rt/set.h"

enum rt_source {
	RT_MEASURED, /* measured on so many CUs */
	RT_MODELLED, /* computed from two measurements by the law of masks */
	RT_KEPT,     /* measured on fewer CUs; more CUs do not make a task slower */
	RT_UNKNOWN,  /* fewer CUs than in any measurement */
};

const char *rt_source_name(enum rt_source source); /* measured modelled kept unknown */

/*
 * The longest time of one job on so many effective CUs; RT_UNSET: unknown.
 *
 * Between two points (n, t) and (m, u), n < m, the law of masks (time ~ 1/E, gpuarb(7)) has two
 * answers for e CUs: t n / e from below and u m / e from above. If a kernel gains less from CUs
 * than the law predicts, the second is larger, otherwise the first. The larger one counts, but
 * never more than t, which was measured on fewer CUs. It is never less than u, because u m / e > u.
 * The margin covers the error of the law, which was 9 % in measurements. law = false: t.
 */
uint64_t rt_wcet(const struct rt_task *task, unsigned cus, bool law, enum rt_source *ret_source);
