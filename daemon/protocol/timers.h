/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The timers of update.c; schedule.c sets two of them for others. */

#include <systemd/sd-event.h>

struct timers {
	sd_event_source *update;   /* update_now() before the next request */
	sd_event_source *answers;  /* to calls that wait for an observation */
	sd_event_source *deadline; /* of any lease */
	sd_event_source *scan;     /* of the hardware */
	sd_event_source *round;    /* the next part of a round through the waiting leases */
	sd_event_source *idle;     /* the same, sooner */
};
