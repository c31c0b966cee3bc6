/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The library on a bus with a fake daemon. */

#include "fake-arbiter.h"
#include "libgpuarb/gpuarb.h"

/* Microseconds after which is given up here: what never comes, and what comes only after
 * something that must not be too late on any machine. */
#define LIB_RIG_SOON 100000U
#define LIB_RIG_LATE 3000000U

struct gpuarb *lib_rig_open(void);

/* Asks for 4 CUs, which must fail; returns the error. */
int lib_rig_reserve(struct gpuarb *gpuarb);

/* Does the work with a fake daemon on a private bus; without a dbus-daemon it does nothing
 * and returns false. userdata NULL: the bus, as answer() may want to kill it. */
bool lib_rig_with(fake_answer_t answer, void *userdata,
		  void (*work)(struct gpuarb *gpuarb, struct fake_arbiter *fake));

/* For a test that has nothing more to do. */
#define LIB_RIG_WITH(answer, userdata, work)               \
	do {                                               \
		if (!lib_rig_with(answer, userdata, work)) \
			SKIP("no dbus-daemon");            \
	} while (0)

/* SIGALRM every so many microseconds, with a handler and SA_RESTART; 0: no more. */
void lib_rig_signals(long usec);
