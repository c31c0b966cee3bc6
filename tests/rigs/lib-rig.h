/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The library on a bus with a fake daemon. */

#include "fake-arbiter.h"
#include "libgpuarb/gpuarb.h"
#include "rig.h"

/* Microseconds after which is given up here: what never comes, and what comes only after
 * something that must not be too late on any machine. */
#define LIB_RIG_SOON 100000U
#define LIB_RIG_LATE 3000000U

struct gpuarb *lib_rig_open(void);

/* Asks for 4 CUs, which must fail; returns the error. */
int lib_rig_reserve(struct gpuarb *gpuarb);

/* Does the work with a fake daemon on a private bus. userdata NULL: the rig, as answer() may want to kill its bus. */
void lib_rig_with(fake_answer_t answer, void *userdata,
		  void (*work)(struct gpuarb *gpuarb, struct fake_arbiter *fake));

/* For a test that has nothing more to do. */
#define LIB_RIG_WITH(answer, userdata, work)          \
	do {                                          \
		if (rig_bus_missing())                \
			SKIP(rig_bus_missing());      \
		lib_rig_with(answer, userdata, work); \
	} while (0)

/* A test with such a daemon and a handle: `gpuarb` and `fake` are those of the work. */
#define LIB_TEST(id, answer, userdata)                                         \
	static void id##_on_bus(struct gpuarb *, struct fake_arbiter *);       \
	TEST_CASE(id, LIB_RIG_WITH(answer, userdata, id##_on_bus));            \
	static void id##_on_bus(__attribute__((unused)) struct gpuarb *gpuarb, \
				__attribute__((unused)) struct fake_arbiter *fake)

/* SIGALRM every so many microseconds, with a handler and SA_RESTART; 0: no more. */
void lib_rig_signals(long usec);
