/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which processes draw: gpuarb-fdinfo reads the DRM clients of all processes, core/change/machine/graphics.c
 * compares them with GPUs and leases. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/change/graphics.h"
#include "core/policy/caller.h"
#include "hw/drm-queues.h"
#include "observe/observe.h"
#include "protocol/protocol.h"
#include "sys/process.h"

#define READ_TIMEOUT_USEC UINT64_C(5000000)

/* Observing takes at most these parts of one CPU: on its own, and for requests that must not miss a
 * process. */
#define CPU_PART 100U
#define CPU_PART_ALL 10U

struct graphics_scan {
	struct asker *fdinfo;              /* NULL: simulated GPUs have no clients */
	struct drm_scan *last;             /* the last observation; n is 0 where it failed */
	uint64_t usec;                     /* when the last attempt ended; 0: there was none */
	uint64_t all_usec;                 /* … to read all processes */
	uint64_t cost_usec, all_cost_usec; /* CPU time of the last ones that succeeded */
	uint64_t observed_usec;            /* when the last observation ended; 0: there is none */
	bool pending;                      /* an attempt has not ended yet */
	bool all;                          /* it is for all processes */
	bool fails;                        /* the last attempt failed, which was logged */
	bool late;                         /* it left out processes, which was logged */

	struct probe *queues; /* reads user queues after it, where a GPU can have them */
	struct drm_queue_parser parser;
	bool uncounted; /* the last read of user queues failed, which was logged */
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
static size_t describe(const struct daemon *daemon, const struct drm_scan *scan,
		       struct observed_client *rows)
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
			liveness_describe(daemon, &row->process);
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
	arbiter_observe_clients(daemon->arbiter, NULL, 0, 0, false);
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
	arbiter_observe_clients(daemon->arbiter, rows, describe(daemon, scan, rows),
				before > 0 ? now - before : 0, scan->unread == 0);
}

/* ---- user queues -------------------------------------------------------------------------- */

/* Before Linux 6.17 debugfs has no clients: then those that fdinfo shows may have queues. */
static size_t add_unused(const struct daemon *daemon, struct observed_user_queues *rows, size_t n)
{
	const struct drm_scan *last = daemon->graphics->last;
	const struct arbiter *arbiter = daemon->arbiter;
	bool complete = daemon->graphics->observed_usec > 0 && last->unread == 0;

	for (unsigned i = 0; complete && i < arbiter->n_gpus; i++) {
		const char *name = arbiter->gpus[i].info.name;
		bool used = false;

		for (uint32_t k = 0; k < last->n; k++)
			used |= strcmp(last->uses[k].device, name) == 0;
		for (size_t k = 0; k < n; k++)
			used |= strcmp(rows[k].device, name) == 0;
		if (!used)
			memcpy(rows[n++].device, name, GPU_NAME_MAX);
	}
	return n;
}

/* why: they cannot be counted; NULL: the text has ended. */
static void count_queues(struct daemon *daemon, const char *why)
{
	const struct drm_queue_parser *parser = &daemon->graphics->parser;
	struct observed_user_queues rows[DRM_QUEUE_DEVICES + REQUEST_WANTS] = { 0 };
	size_t n = why ? 0 : parser->n_devices;

	for (size_t i = 0; i < n; i++) {
		memcpy(rows[i].device, parser->devices[i].device, GPU_NAME_MAX);
		rows[i].compute = parser->devices[i].compute;
	}
	if (why && !daemon->graphics->uncounted)
		log_info("user queues of the graphics driver cannot be counted: %s", why);
	daemon->graphics->uncounted = why;
	note_end(daemon, daemon->graphics->all,
		 NULL); /* or the calls that waited would wait again */
	if (!why)
		n = add_unused(daemon, rows, n);
	arbiter_count_user_queues(daemon->arbiter, rows, n);
	drm_queues_reset(&daemon->graphics->parser);
	daemon->graphics->pending = false;
	schedule_update(daemon);
	schedule_answers(daemon);
}

static int on_piece(void *userdata, const char *text, size_t size, char *why, size_t why_size)
{
	struct daemon *daemon = userdata;

	return drm_queues_feed(&daemon->graphics->parser, text, size, why, why_size);
}

static void on_text(void *userdata, int r, const char *why)
{
	count_queues(userdata, r < 0 ? why : NULL);
}

/* Returns whether a read is under way. */
static bool read_queues(struct daemon *daemon)
{
	char why[256] = "";
	int r;

	if (!arbiter_has_user_queues(daemon->arbiter))
		return false;
	r = probe_start(daemon->graphics->queues, why, sizeof(why));
	if (r < 0)
		count_queues(daemon, why);
	daemon->graphics->pending = r >= 0;
	return r >= 0;
}

/* ---- clients ------------------------------------------------------------------------------ */

static void on_done(void *userdata, const struct asker_request *, int r, const void *scan,
		    const char *why)
{
	struct daemon *daemon = userdata;

	daemon->graphics->pending = false;
	note_end(daemon, daemon->graphics->all, scan);
	if (r < 0)
		fail(daemon, why);
	else
		take(daemon, scan);
	if (read_queues(daemon))
		return;
	schedule_update(daemon);
	schedule_answers(daemon);
}

bool graphics_observe(void *userdata, bool all)
{
	struct daemon *daemon = userdata;
	static const unsigned char requests[] = { false, true };
	char why[256];
	int r;

	if (!daemon->graphics->fdinfo)
		return false;
	if (daemon->graphics->pending)
		return true;
	if (!is_due(daemon, all))
		return false;
	r = asker_ask(daemon->graphics->fdinfo, &requests[all], 1, -1, 0, why, sizeof(why));
	daemon->graphics->pending = r >= 0;
	daemon->graphics->all = all;
	if (r >= 0)
		return true;
	note_end(daemon, all, NULL);
	fail(daemon, why);
	schedule_update(daemon);
	return read_queues(daemon);
}

void graphics_refresh(struct daemon *daemon)
{
	if ((daemon->arbiter->settings->graphics != GRAPHICS_IGNORE ||
	     arbiter_has_user_queues(daemon->arbiter)) &&
	    (daemon->arbiter->n_leases > 0 || process_scan_in_use(daemon)))
		graphics_observe(daemon, false);
}

int graphics_start(struct daemon *daemon)
{
	int r;

	daemon->graphics = calloc(1, sizeof(*daemon->graphics));
	if (daemon->graphics)
		daemon->graphics->last = calloc(1, sizeof(*daemon->graphics->last));
	if (!daemon->graphics || !daemon->graphics->last)
		return -ENOMEM;
	process_scan_watch(daemon, daemon->graphics->last);
	if (hw_is_simulated(daemon->hw))
		return 0; /* nothing draws on simulated GPUs */
	r = probe_new(daemon->event, daemon->options->debugfs, &probe_userqs, PROBE_USEC, on_piece,
		      on_text, daemon, &daemon->graphics->queues);
	return r < 0 ? r
		     : asker_new(daemon->event, &fdinfo_helper, daemon->options->fdinfo,
				 READ_TIMEOUT_USEC, on_done, NULL, daemon,
				 &daemon->graphics->fdinfo);
}

void graphics_stop(struct daemon *daemon)
{
	if (!daemon->graphics)
		return;
	drm_queues_reset(&daemon->graphics->parser);
	probe_free(daemon->graphics->queues);
	asker_free(daemon->graphics->fdinfo);
	free(daemon->graphics->last);
	free(daemon->graphics);
}
