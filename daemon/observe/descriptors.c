/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Hardware queue descriptors: a helper with the right to do so reads them, core/change/machine/verify.c
 * compares them with the masks that were acknowledged. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "observe/observe.h"
#include "hw/kfd-queues.h"
#include "protocol/protocol.h"

/* To print a process the kernel takes the mutex that creating its queues needs: two reads are at
 * least so many times the duration of a read apart; but not more than the maximum, because a process can
 * make a read take long. */
#define READ_SHARE 50U
#define READ_PAUSE_MAX_USEC UINT64_C(5000000)

/* Where no lease depends on them the descriptors are read at every 30th scan. */
#define SCANS_BETWEEN 30U

/* A scan this much older than a read still tells to which lease its processes belong. */
#define SCAN_AGE_USEC UINT64_C(20000)

struct descriptors {
	struct probe *probe;
	struct queue_parser *parser; /* of the text that is being read; NULL: none */
	size_t n_gpus;               /* in it */
	uint64_t usec;               /* when the last read was started */
	uint64_t until_usec;         /* requests wait for the first read; 0: it has ended */
	bool readable;               /* a read has succeeded once */
	bool outdated;               /* a lease was acknowledged since the read was started */
	uint64_t due_usec;           /* of the next read; UINT64_MAX: none */
	uint64_t took_usec;          /* by the last read */
};

void descriptors_outdate(struct daemon *daemon)
{
	daemon->descriptors->outdated = true;
}

uint64_t descriptors_due_usec(const struct daemon *daemon)
{
	return daemon->descriptors->due_usec;
}

bool descriptors_awaited(const struct daemon *daemon)
{
	return daemon->descriptors->until_usec > 0;
}

bool descriptors_bar_grants(const struct daemon *daemon)
{
	return descriptors_awaited(daemon) &&
	       daemon->arbiter->settings->unmasked != UNMASKED_IGNORE;
}

static void end_first(struct daemon *daemon)
{
	if (!descriptors_awaited(daemon))
		return;
	daemon->descriptors->until_usec = 0;
	schedule_update(daemon);
	schedule_answers(daemon);
}

static void end_text(struct daemon *daemon)
{
	daemon->descriptors->parser = queue_parser_free(daemon->descriptors->parser);
	probe_cancel(daemon->descriptors->probe);
}

static void give_up(struct daemon *daemon, const char *why)
{
	if (daemon->arbiter->verifies)
		log_warning("hardware queue descriptors cannot be read%s: %s: acknowledgements "
			    "are accepted without verification",
			    daemon->descriptors->readable ? " any more" : "", why);
	daemon->arbiter->verifies = false;
	snprintf(daemon->arbiter->unseen, sizeof(daemon->arbiter->unseen), "%s", why);
	end_text(daemon);
	end_first(daemon);
	if (arbiter_masks_observed(daemon->arbiter, NULL, 0) < 0)
		log_warning("cannot forget the queue masks that were observed: out of memory");
}

static void take_up(struct daemon *daemon)
{
	if (!daemon->descriptors->readable)
		log_info("hardware queue descriptors can be read: acknowledgements are verified");
	else if (!daemon->arbiter->verifies)
		log_notice("hardware queue descriptors can be read again: acknowledgements are "
			   "verified");
	daemon->arbiter->verifies = daemon->descriptors->readable = true;
	daemon->arbiter->unseen[0] = '\0';
}

static void compare(struct daemon *daemon, const struct observed_mask *rows, size_t n)
{
	if (daemon->descriptors->n_gpus > 0)
		take_up(daemon);
	/* The rows have pids only: a scan before or during the read tells whose they are. A process
	 * that ends and whose pid another one gets within that time is mistaken for one scan. */
	daemon->descriptors->took_usec = daemon_now_usec() - daemon->descriptors->usec;
	scan_hardware(daemon, daemon->descriptors->took_usec + SCAN_AGE_USEC);
	if (arbiter_masks_observed(daemon->arbiter, rows, n) < 0)
		log_warning("cannot compare the masks of %zu queues: out of memory", n);
}

/* The parser of a text for the present GPUs. */
static int begin_text(struct daemon *daemon)
{
	size_t *n = &daemon->descriptors->n_gpus;
	_cleanup_(freep) struct gpu_info *gpus = scan_present_gpus(daemon, n);

	daemon->descriptors->parser = gpus ? queue_parser_new(gpus, *n, false) : NULL;
	return daemon->descriptors->parser ? 0 : -ENOMEM;
}

static int ask(struct daemon *daemon)
{
	char why[256];
	int r;

	end_text(daemon);
	daemon->descriptors->usec = daemon_now_usec();
	r = begin_text(daemon);
	if (r >= 0)
		r = probe_start(daemon->descriptors->probe, why, sizeof(why));
	daemon->descriptors->outdated = false;
	if (r < 0)
		end_text(daemon);
	if (r < 0 && r != -EAGAIN && r != -ENOMEM)
		give_up(daemon, why);
	return r;
}

static int end_parser(struct daemon *daemon, char *why, size_t size)
{
	struct queue_text read = { 0 };
	int r = queue_parser_end(daemon->descriptors->parser, &read, why, size);

	if (r >= 0 && !daemon->descriptors->outdated)
		compare(daemon, read.queues, read.n_queues);
	free(read.queues);
	return r;
}

static int on_piece(void *userdata, const char *text, size_t size, char *why, size_t why_size)
{
	struct daemon *daemon = userdata;

	probe_go_on(daemon->descriptors->probe);
	return queue_parser_feed(daemon->descriptors->parser, text, size, why, why_size);
}

/* What was observed before stays in force. */
static void tell_late(struct daemon *daemon)
{
	char *unseen = daemon->arbiter->unseen;

	if (*unseen == '\0')
		log_warning("hardware queue descriptors are not read within %u s: masks of queues "
			    "are as they were before",
			    (unsigned)(PROBE_USEC / 1000000));
	snprintf(unseen, sizeof(daemon->arbiter->unseen),
		 "they were not read within %u s: a process that uses a GPU may be blocked in the "
		 "driver",
		 (unsigned)(PROBE_USEC / 1000000));
}

/* The kernel prints a process under a mutex that the process can hold for any time: a read that is late is
 * given up, and another one begins. */
static void on_done(void *userdata, int r, const char *unread)
{
	struct daemon *daemon = userdata;
	char why[256];

	snprintf(why, sizeof(why), "%s", unread);
	if (r >= 0)
		r = end_parser(daemon, why, sizeof(why));
	if (r == -ETIMEDOUT)
		tell_late(daemon);
	else if (r < 0 && r != -ENOMEM && daemon->descriptors->n_gpus > 0)
		give_up(daemon, why);
	end_text(daemon);
	if (daemon->descriptors->outdated && descriptors_awaited(daemon))
		ask(daemon);
	else if (r != -ETIMEDOUT)
		end_first(daemon);
	schedule_update(daemon);
}

/* Does the promise of a lease depend on what others do? */
static bool is_guarded(const struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->class > CLASS_BESTEFFORT &&
		    arbiter->leases[i]->n_partitions > 0)
			return true;
	return false;
}

/* When to read next. Queues change without an event, so they are read again from time to time; and
 * so they are after a read that failed: debugfs can be mounted later. */
static uint64_t next_read(const struct daemon *daemon)
{
	const struct arbiter *arbiter = daemon->arbiter;
	uint64_t last = daemon->descriptors->usec,
		 interval = arbiter->settings->audit_interval_usec;
	uint64_t pause = daemon->descriptors->took_usec * READ_SHARE;
	uint64_t least = pause < READ_PAUSE_MAX_USEC ? pause : READ_PAUSE_MAX_USEC;
	uint64_t grace = arbiter->settings->drift_grace_usec / 2;
	bool urgent, wanted = arbiter->verifies && arbiter_wants_masks(arbiter, &urgent);

	if (wanted && urgent)
		return 0;
	if (arbiter->verifies &&
	    (arbiter_drift_at(arbiter, FRESH_MASKS) != UINT64_MAX || intrusions_pending(daemon)))
		return last + (grace > least ? grace : least);
	if (wanted || (arbiter->verifies && process_scan_in_use(daemon) &&
		       (arbiter->queues_changed || is_guarded(arbiter))))
		return last + (interval > least ? interval : least);
	if (process_scan_in_use(daemon))
		return last + interval * SCANS_BETWEEN;
	return UINT64_MAX;
}

void descriptors_refresh(struct daemon *daemon)
{
	if (descriptors_awaited(daemon) && daemon_now_usec() >= daemon->descriptors->until_usec) {
		log_warning("the first read of hardware queue descriptors takes long: requests are "
			    "decided without it");
		end_first(daemon);
	}
	if (!daemon->descriptors->parser && next_read(daemon) <= daemon_now_usec())
		ask(daemon);
	daemon->descriptors->due_usec = daemon->descriptors->parser ? UINT64_MAX
								    : next_read(daemon);
	if (descriptors_awaited(daemon) &&
	    daemon->descriptors->due_usec > daemon->descriptors->until_usec)
		daemon->descriptors->due_usec = daemon->descriptors->until_usec;
}

int descriptors_start(struct daemon *daemon)
{
	int r;

	daemon->descriptors = calloc(1, sizeof(*daemon->descriptors));
	if (!daemon->descriptors)
		return -ENOMEM;
	r = probe_new(daemon->event, daemon->options->debugfs, &probe_mqds, PROBE_USEC, on_piece,
		      on_done, daemon, &daemon->descriptors->probe);
	if (r < 0)
		return r;
	if (hw_is_simulated(daemon->hw))
		return 0; /* simulated GPUs have no hardware queues */
	daemon->arbiter->verifies = ask(daemon) >= 0;
	if (daemon->descriptors->parser)
		daemon->descriptors->until_usec = daemon->descriptors->usec + PROBE_USEC;
	if (!daemon->arbiter->verifies)
		log_info("hardware queue descriptors cannot be read here: no mask is verified");
	return 0;
}

void descriptors_stop(struct daemon *daemon)
{
	if (!daemon->descriptors)
		return;
	if (daemon->descriptors->probe)
		end_text(daemon);
	probe_free(daemon->descriptors->probe);
	free(daemon->descriptors);
}
