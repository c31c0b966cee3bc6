/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which processes draw: gpuarb-fdinfo reads the DRM clients of all processes, core/change/graphics.c
 * compares them with GPUs and leases. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/change/graphics.h"
#include "core/policy/request.h"
#include "observe/observe.h"
#include "protocol/protocol.h"
#include "sys/process.h"

#define READ_TIMEOUT_USEC UINT64_C(5000000)

/* Observing takes at most these parts of one CPU: on its own, and for requests that must not miss a
 * process. */
#define CPU_PART 100U
#define CPU_PART_ALL 10U

struct graphics_scan {
	struct fdinfo *fdinfo;             /* NULL: simulated GPUs have no clients */
	struct drm_scan *last;             /* the last observation; n is 0 where it failed */
	uint64_t usec;                     /* when the last attempt ended; 0: there was none */
	uint64_t all_usec;                 /* … to read all processes */
	uint64_t cost_usec, all_cost_usec; /* CPU time of the last ones that succeeded */
	uint64_t observed_usec;            /* when the last observation ended; 0: there is none */
	bool pending;                      /* an attempt has not ended yet */
	bool all;                          /* it is for all processes */
	bool fails;                        /* the last attempt failed, which was logged */
	bool late;                         /* it left out processes, which was logged */
};

static uint64_t interval_usec(const struct daemon *daemon, bool all)
{
	uint64_t least = daemon->arbiter->settings->audit_interval_usec;
	uint64_t cost = all ? daemon->graphics->all_cost_usec * CPU_PART_ALL
			    : daemon->graphics->cost_usec * CPU_PART;

	return cost > least ? cost : least;
}

static bool is_due(const struct daemon *daemon, bool all)
{
	uint64_t last = all ? daemon->graphics->all_usec : daemon->graphics->usec;

	return last == 0 || daemon_now_usec() - last >= interval_usec(daemon, all);
}

/* all: it was to read all processes. A helper that was just started does so in any case. */
static void note_end(struct daemon *daemon, bool all, const struct drm_scan *scan)
{
	daemon->graphics->usec = daemon_now_usec();
	if (scan && scan->skipped > 0)
		daemon->graphics->cost_usec = scan->cpu_usec;
	if (scan && scan->skipped == 0)
		daemon->graphics->all_cost_usec = scan->cpu_usec;
	if (all || (scan && scan->skipped == 0))
		daemon->graphics->all_usec = daemon->graphics->usec;
}

/* Processes of one user that are counted as one belong to no lease. */
static void describe_several(const struct drm_use *use, struct observed *ret)
{
	*ret = (struct observed){ .uid = use->uid };
	snprintf(ret->command, sizeof(ret->command), "%u processes", use->processes);
}

/* A process that has ended, or whose pid another process has, is left out. */
static size_t describe(const struct drm_scan *scan, struct observed_client *rows)
{
	size_t n = 0;

	for (uint32_t i = 0; i < scan->n; i++) {
		const struct drm_use *use = &scan->uses[i];
		struct observed_client *row = &rows[n];
		struct caller place = { 0 };

		*row = (struct observed_client){ .process.pid = use->pid,
						 .busy = { use->gfx_nsec, use->compute_nsec,
							   use->dma_nsec },
						 .vram = use->vram,
						 .gtt = use->gtt };
		if (use->pid == 0)
			describe_several(use, &row->process);
		else
			process_describe(&row->process);
		if (row->process.start_time != use->start_time)
			continue;
		if (use->pid > 0)
			process_place(use->pid, &place);
		memcpy(row->process.unit, place.unit, sizeof(place.unit));
		memcpy(row->device, use->device, sizeof(row->device));
		n++;
	}
	return n;
}

static void fail(struct daemon *daemon, const char *why)
{
	if (!daemon->graphics->fails && daemon->arbiter->settings->graphics != GRAPHICS_IGNORE)
		log_info("it is unknown which processes draw: %s", why);
	daemon->graphics->fails = true;
	daemon->graphics->last->n = 0;
	daemon->graphics->observed_usec = 0;
	arbiter_clients_unknown(daemon->arbiter);
}

static void tell_late(struct daemon *daemon, const struct drm_scan *scan)
{
	bool late = scan->late > 0;

	if (late && !daemon->graphics->late)
		log_warning(
			"processes of uid %u have too many file descriptors: it is unknown of %u "
			"processes whether they draw, which refuses no realtime lease",
			scan->late_uid, scan->late);
	if (!late && daemon->graphics->late)
		log_notice("the file descriptors of all processes are read again");
	daemon->graphics->late = late;
}

static void take(struct daemon *daemon, const struct drm_scan *scan)
{
	_cleanup_(freep) struct observed_client *rows = calloc(scan->n + 1, sizeof(*rows));
	uint64_t before = daemon->graphics->observed_usec, now = daemon_now_usec();

	if (!rows) {
		fail(daemon, "out of memory");
		return;
	}
	if (daemon->graphics->fails)
		log_info("it can be observed again which processes draw");
	daemon->graphics->fails = false;
	daemon->graphics->observed_usec = now;
	tell_late(daemon, scan);
	memcpy(daemon->graphics->last, scan, drm_scan_size(scan));
	arbiter_observe_clients(daemon->arbiter, rows, describe(scan, rows),
				before > 0 ? now - before : 0, scan->unread == 0);
}

static void on_done(void *userdata, int r, const struct drm_scan *scan, const char *why)
{
	struct daemon *daemon = userdata;

	daemon->graphics->pending = false;
	note_end(daemon, daemon->graphics->all, scan);
	if (r < 0)
		fail(daemon, why);
	else
		take(daemon, scan);
	schedule_update(daemon);
	schedule_answers(daemon);
}

bool graphics_observe(struct daemon *daemon, bool all)
{
	char why[256];
	int r;

	if (!daemon->graphics->fdinfo)
		return false;
	if (daemon->graphics->pending)
		return true;
	if (!is_due(daemon, all))
		return false;
	r = fdinfo_ask(daemon->graphics->fdinfo, all, why, sizeof(why));
	daemon->graphics->pending = r >= 0;
	daemon->graphics->all = all;
	if (r >= 0)
		return true;
	note_end(daemon, all, NULL);
	fail(daemon, why);
	schedule_update(daemon);
	return false;
}

void graphics_refresh(struct daemon *daemon)
{
	if (daemon->arbiter->settings->graphics != GRAPHICS_IGNORE &&
	    (daemon->arbiter->n_leases > 0 || process_scan_in_use(daemon)))
		graphics_observe(daemon, false);
}

int graphics_start(struct daemon *daemon)
{
	daemon->graphics = calloc(1, sizeof(*daemon->graphics));
	if (daemon->graphics)
		daemon->graphics->last = calloc(1, sizeof(*daemon->graphics->last));
	if (!daemon->graphics || !daemon->graphics->last)
		return -ENOMEM;
	process_scan_watch(daemon, daemon->graphics->last);
	if (strcmp(daemon->ops->name, "kfd") != 0)
		return 0; /* nothing draws on simulated GPUs */
	return fdinfo_new(daemon->event, daemon->options->fdinfo, READ_TIMEOUT_USEC, on_done,
			  daemon, &daemon->graphics->fdinfo);
}

void graphics_stop(struct daemon *daemon)
{
	if (!daemon->graphics)
		return;
	fdinfo_free(daemon->graphics->fdinfo);
	free(daemon->graphics->last);
	free(daemon->graphics);
}
