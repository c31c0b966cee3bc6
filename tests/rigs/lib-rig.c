/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib-rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "check-cond.h"

struct gpuarb *lib_rig_open(void)
{
	struct gpuarb *gpuarb = NULL;
	int r;

	do /* a test's signals may come already */
		r = gpuarb_open(&gpuarb);
	while (r == -EINTR);
	if (r < 0)
		fprintf(stderr, "%s\n", gpuarb_last_error(NULL));
	CHECK(r == 0);
	CHECK(strcmp(gpuarb_last_error(NULL), "") == 0);
	return gpuarb;
}

int lib_rig_reserve(struct gpuarb *gpuarb)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	int r;

	want.cus = 4;
	r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
	CHECK(r < 0 && !lease);
	return r;
}

void lib_rig_with(fake_answer_t answer, void *userdata,
		  void (*work)(struct gpuarb *gpuarb, struct fake_arbiter *fake))
{
	struct rig bus;
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;

	rig_new(&bus);
	fake_arbiter_start(bus.address, answer, userdata ? userdata : &bus, &fake);
	gpuarb = lib_rig_open();
	work(gpuarb, &fake);
	gpuarb_close(gpuarb);
	fake_arbiter_stop(&fake);
	rig_done(&bus);
}

static void ignore(int)
{
}

void lib_rig_signals(long usec)
{
	struct itimerval timer = { .it_interval = { .tv_usec = usec },
				   .it_value = { .tv_usec = usec } };
	struct sigaction action = { .sa_handler = ignore, .sa_flags = SA_RESTART };

	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}
