/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Hardware queue descriptors: a helper with the right to do so reads them, core/change/verify.c
 * compares them with the masks that were acknowledged. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "hw/kfd-mqd.h"

/* After this time the helper is asked again: the kernel prints a process under a mutex that the
 * process can hold for any time. */
#define READ_TIMEOUT_USEC UINT64_C(5000000)

/* Where no lease waits for them the descriptors are read at every 30th scan: to print them the
 * kernel takes the mutexes that creating a queue needs. */
#define SCANS_BETWEEN 30U

static void give_up(struct daemon *daemon, const char *why)
{
	if (daemon->arbiter->verifies)
		log_warning("hardware queue descriptors cannot be read%s: %s: acknowledgements "
			    "are accepted without verification",
			    daemon->descriptors.readable ? " any more" : "", why);
	daemon->arbiter->verifies = false;
	daemon->descriptors.pending = false;
	probe_cancel(daemon->descriptors.probe);
	arbiter_masks_observed(daemon->arbiter, NULL, 0);
}

static void take_up(struct daemon *daemon)
{
	if (!daemon->arbiter->verifies)
		log_notice("hardware queue descriptors can be read again: acknowledgements are "
			   "verified");
	else if (!daemon->descriptors.readable)
		log_info("hardware queue descriptors can be read: acknowledgements are verified");
	daemon->arbiter->verifies = daemon->descriptors.readable = true;
}

static void compare(struct daemon *daemon, const char *text, size_t size)
{
	_cleanup_(freep) struct gpu_info *gpus = calloc(REQUEST_WANTS, sizeof(*gpus));
	_cleanup_(freep) struct observed_mask *rows = NULL;
	size_t n_gpus = 0, n;
	char why[256];
	int r;

	if (!gpus)
		return;
	for (size_t i = 0; i < daemon->arbiter->n_gpus; i++)
		if (!daemon->arbiter->gpus[i].absent)
			gpus[n_gpus++] = daemon->arbiter->gpus[i].info;
	r = kfd_mqds_parse(text, size, gpus, n_gpus, &rows, &n, why, sizeof(why));
	if (r == -EBADMSG)
		give_up(daemon, why);
	if (r < 0)
		return;
	if (n_gpus > 0)
		take_up(daemon);
	arbiter_masks_observed(daemon->arbiter, rows, n);
}

static int on_probe(sd_event_source *, int, uint32_t, void *userdata)
{
	_cleanup_(freep) char *text = NULL;
	struct daemon *daemon = userdata;
	char why[256];
	size_t size;
	int r;

	r = probe_read(daemon->descriptors.probe, &text, &size, why, sizeof(why));
	if (r == -EAGAIN || r == -EINVAL)
		return 0;
	daemon->descriptors.pending = false;
	if (r < 0 && r != -ENOMEM)
		give_up(daemon, why);
	else if (r == 0 && !daemon->descriptors.outdated)
		compare(daemon, text, size);
	schedule_update(daemon);
	return 0;
}

static int ask(struct daemon *daemon)
{
	char why[256];
	int r;

	daemon->descriptors.usec = daemon_now_usec();
	r = probe_start(daemon->descriptors.probe, why, sizeof(why));
	daemon->descriptors.pending = r >= 0;
	daemon->descriptors.outdated = false;
	if (r < 0 && r != -EAGAIN && r != -EBUSY && r != -ENOMEM)
		give_up(daemon, why);
	return r;
}

static bool is_late(const struct daemon *daemon)
{
	return daemon_now_usec() - daemon->descriptors.usec > READ_TIMEOUT_USEC;
}

/* Queues change without an event, so they are read again from time to time; and so they are after a
 * read that failed. */
static bool is_due(const struct daemon *daemon)
{
	uint64_t age = daemon_now_usec() - daemon->descriptors.usec;
	uint64_t interval = daemon->arbiter->settings->audit_interval_usec;
	bool urgent;

	if (daemon->arbiter->verifies && arbiter_wants_masks(daemon->arbiter, &urgent))
		return urgent || age >= interval;
	return daemon->descriptors.readable && daemon->scan.in_use &&
	       age >= interval * SCANS_BETWEEN;
}

void descriptors_refresh(struct daemon *daemon)
{
	if ((!daemon->descriptors.pending || is_late(daemon)) && is_due(daemon))
		ask(daemon);
}

int descriptors_start(struct daemon *daemon)
{
	int r;

	r = probe_new(daemon->options->debugfs, &probe_mqds, &daemon->descriptors.probe);
	if (r >= 0)
		r = sd_event_add_io(daemon->event, &daemon->descriptors.source,
				    probe_fd(daemon->descriptors.probe), EPOLLIN, on_probe, daemon);
	if (r < 0)
		return r;
	if (strcmp(daemon->ops->name, "kfd") != 0)
		return 0; /* simulated GPUs have no hardware queues */
	daemon->arbiter->verifies = ask(daemon) >= 0;
	if (!daemon->arbiter->verifies)
		log_info("hardware queue descriptors cannot be read here: the tier of every lease "
			 "is cooperative");
	return 0;
}
