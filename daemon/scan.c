/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The scan: which processes use the GPUs. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "util/log.h"
#include "sys/process.h"

/* Reads all rows; there may be more of them than at the last call. */
static int read_uses(struct daemon *daemon)
{
	for (;;) {
		int n = daemon->ops->use(daemon->hw, daemon->scan.uses, daemon->scan.room);
		struct hw_use *more;

		if (n < 0 || (size_t)n <= daemon->scan.room)
			return n;
		more = reallocarray(daemon->scan.uses, (size_t)n + 16, sizeof(*more));
		if (!more)
			return -ENOMEM;
		daemon->scan.uses = more;
		daemon->scan.room = (size_t)n + 16;
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
		describe(&daemon->scan.uses[i], &rows[i]);
	daemon->scan.in_use = n > 0;
	return arbiter_observe(daemon->arbiter, rows, (size_t)n);
}

bool scan_hardware(struct daemon *daemon, uint64_t max_age_usec)
{
	uint64_t now = daemon_now_usec();
	int r;

	if (now - daemon->scan.usec < max_age_usec)
		return false;
	daemon->scan.usec = now;
	gpus_check(daemon);
	r = observe(daemon);
	if (r < 0 && !daemon->scan.fails)
		log_warning("cannot read which processes use the GPUs: %s: until then ending "
			    "leases keep what they have",
			    strerror(-r));
	if (r >= 0 && daemon->scan.fails)
		log_notice("the processes that use the GPUs can be read again");
	daemon->scan.fails = r < 0;
	return true;
}
