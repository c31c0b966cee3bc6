/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The clock, and the updates that others ask for. */

#include "protocol/protocol.h"
#include "protocol/timers.h"
#include "util/clock.h"

uint64_t daemon_now_usec(void)
{
	return clock_usec(CLOCK_BOOTTIME);
}

void schedule_update(struct daemon *daemon)
{
	sd_event_source_set_enabled(daemon->timer->update, SD_EVENT_ONESHOT);
}

void schedule_answers(struct daemon *daemon)
{
	sd_event_source_set_enabled(daemon->timer->answers, SD_EVENT_ONESHOT);
}

int schedule_add(struct daemon *daemon, uint64_t accuracy_usec, sd_event_time_handler_t handler,
		 sd_event_source **ret)
{
	int r = sd_event_add_time(daemon->event, ret, CLOCK_BOOTTIME, UINT64_MAX, accuracy_usec,
				  handler, daemon);

	return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}
