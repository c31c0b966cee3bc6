/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Looking at the hardware: who uses it, and when to look again. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon.h"
#include "util/log.h"
#include "sys/process.h"

uint64_t daemon_now_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* All rows, however many there are; they may grow while they are read. */
static int read_uses(struct daemon *daemon)
{
	for (;;) {
		int n = daemon->ops->use(daemon->hw, daemon->uses, daemon->uses_room);
		struct hw_use *more;

		if (n < 0 || (size_t)n <= daemon->uses_room)
			return n;
		more = reallocarray(daemon->uses, (size_t)n + 16, sizeof(*more));
		if (!more)
			return -ENOMEM;
		daemon->uses = more;
		daemon->uses_room = (size_t)n + 16;
	}
}

static void describe(const struct hw_use *use, struct observed *row)
{
	struct caller place = { 0 };

	row->pid = use->pid;
	row->kfd_gpu_id = use->kfd_gpu_id;
	row->queues = use->queues;
	row->sdma_queues = use->sdma_queues;
	row->vram = use->vram;
	process_describe(row);
	process_place(use->pid, &place);
	memcpy(row->unit, place.unit, sizeof(row->unit));
}

static int observe(struct daemon *daemon)
{
	_cleanup_(freep) struct observed *rows = NULL;
	int n = read_uses(daemon);

	if (n < 0)
		return n;
	rows = calloc((size_t)n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (int i = 0; i < n; i++)
		describe(&daemon->uses[i], &rows[i]);
	daemon->in_use = n > 0;
	return arbiter_observe(daemon->arbiter, rows, (size_t)n);
}

static bool anything_ending(const struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		if (daemon->arbiter->leases[i]->state == STATE_ENDING)
			return true;
	return false;
}

/* sysfs is read on a timer only while somebody uses a GPU; else when somebody asks. */
void daemon_plan_look(struct daemon *daemon)
{
	uint64_t delay = daemon->arbiter->settings->audit_interval_usec;
	bool wanted = daemon->in_use || daemon->arbiter->n_leases > 0 || daemon->unsettled;

	if (daemon->unsettled && delay > GPUS_SETTLE_USEC)
		delay = GPUS_SETTLE_USEC;
	if (anything_ending(daemon) && delay > LOOK_WHILE_ENDING_USEC)
		delay = LOOK_WHILE_ENDING_USEC;
	if (wanted)
		sd_event_source_set_time(daemon->audit, daemon->looked_usec + delay);
	sd_event_source_set_enabled(daemon->audit, wanted ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

bool daemon_look(struct daemon *daemon, uint64_t max_age_usec)
{
	uint64_t now = daemon_now_usec();
	int r;

	if (now - daemon->looked_usec < max_age_usec)
		return false;
	daemon->looked_usec = now;
	daemon_check_gpus(daemon);
	r = observe(daemon);
	if (r < 0 && !daemon->blind)
		log_warning("cannot read what processes do on the GPUs: %s; until that is over, "
			    "leases that end keep what they have",
			    strerror(-r));
	if (r >= 0 && daemon->blind)
		log_notice("what processes do on the GPUs can be read again");
	daemon->blind = r < 0;
	return true;
}
