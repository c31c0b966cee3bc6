/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "lib-rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "private-bus.h"

static void must(bool so, const char *what)
{
	if (so)
		return;
	fprintf(stderr, "lib-rig: not so: %s\n", what);
	abort();
}

struct gpuarb *lib_rig_open(void)
{
	struct gpuarb *gpuarb = NULL;
	int r;

	do /* a test's signals may come already */
		r = gpuarb_open(&gpuarb);
	while (r == -EINTR);
	must(r == 0, gpuarb_last_error(NULL));
	must(strcmp(gpuarb_last_error(NULL), "") == 0, "no error is left");
	return gpuarb;
}

int lib_rig_reserve(struct gpuarb *gpuarb)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb_lease *lease = NULL;
	int r;

	want.cus = 4;
	r = gpuarb_reserve(gpuarb, &want, 1, NULL, &lease);
	must(r < 0 && !lease, "refused");
	return r;
}

bool lib_rig_with(fake_answer_t answer, void *userdata,
		  void (*work)(struct gpuarb *gpuarb, struct fake_arbiter *fake))
{
	struct private_bus bus;
	struct fake_arbiter fake;
	struct gpuarb *gpuarb;

	if (!private_bus_start(&bus))
		return false;
	fake_arbiter_start(bus.address, answer, userdata ? userdata : &bus, &fake);
	gpuarb = lib_rig_open();
	work(gpuarb, &fake);
	gpuarb_close(gpuarb);
	fake_arbiter_stop(&fake);
	private_bus_stop(&bus);
	return true;
}

static void ignore(int number)
{
	(void)number;
}

void lib_rig_signals(long usec)
{
	struct itimerval timer = { .it_interval = { .tv_usec = usec },
				   .it_value = { .tv_usec = usec } };
	struct sigaction action = { .sa_handler = ignore, .sa_flags = SA_RESTART };

	must(sigaction(SIGALRM, &action, NULL) == 0, "handler");
	must(setitimer(ITIMER_REAL, &timer, NULL) == 0, "timer");
}
