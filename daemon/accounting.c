/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Accounting of leases and refusals (core/ledger/usage.h): brought up to date with each change of a
 * lease, and saved every ten minutes and at the end. A crash loses ten minutes at most. Beside it are
 * the counters (core/ledger/counters.h), which are not saved. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"
#include "core/ledger/usage.h"
#include "core/policy/request.h"
#include "protocol/protocol.h"
#include "util/fd.h"

#define SAVE_USEC UINT64_C(600000000)

struct accounting {
	struct usage *usage;
	sd_event_source *timer; /* to save it */
	bool scheduled, fails;
};

static struct usage_now now(void)
{
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	return (struct usage_now){ daemon_now_usec(), day.tv_sec > 0 ? (uint64_t)day.tv_sec : 0 };
}

/* "": unknown, so no two boots are the same. */
static void read_boot(char ret[static 37])
{
	_cleanup_fd_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, ret, 36) != 36)
		strcpy(ret, "unknown");
	else
		ret[36] = '\0';
}

static void add_all(struct daemon *daemon)
{
	const struct usage_now present = now();

	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		usage_lease(daemon->accounting->usage, daemon->arbiter->leases[i], false, &present);
}

/* A failure is logged once: the next call tries again. */
static void save(struct daemon *daemon)
{
	_cleanup_(freep) char *text = NULL;
	char boot[37];
	int r;

	read_boot(boot);
	add_all(daemon);
	r = usage_format(daemon->accounting->usage, boot, daemon_now_usec(), &text);
	if (r >= 0)
		r = state_save_usage(daemon->state, text);
	if (r < 0 && !daemon->accounting->fails)
		log_warning("cannot save the accounting: %s", strerror(-r));
	daemon->accounting->fails = r < 0;
}

static void schedule_save(struct daemon *daemon)
{
	if (daemon->accounting->scheduled)
		return;
	daemon->accounting->scheduled = true;
	sd_event_source_set_time(daemon->accounting->timer, daemon_now_usec() + SAVE_USEC);
	sd_event_source_set_enabled(daemon->accounting->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *, uint64_t, void *userdata)
{
	struct daemon *daemon = userdata;

	save(daemon);
	daemon->accounting->scheduled = false;
	if (daemon->arbiter->n_leases > 0)
		schedule_save(daemon);
	return 0;
}

int accounting_start(struct daemon *daemon)
{
	_cleanup_(freep) char *text = NULL;
	const struct usage_now present = now();
	char boot[37];
	int r;

	daemon->accounting = calloc(1, sizeof(*daemon->accounting));
	r = daemon->accounting ? usage_new(&present, &daemon->accounting->usage) : -ENOMEM;
	if (r >= 0)
		r = schedule_add(daemon, SAVE_USEC / 10, on_timer, &daemon->accounting->timer);
	if (r < 0)
		return r;
	read_boot(boot);
	r = state_load_usage(daemon->state, &text);
	if (r >= 0)
		r = usage_parse(daemon->accounting->usage, text, boot);
	if (r < 0 && r != -ENOENT)
		log_warning("the saved accounting cannot be read, and begins again: %s",
			    strerror(-r));
	return 0;
}

static void count(struct counters *counters, const struct lease *lease, unsigned touched)
{
	if ((touched & TOUCH_ENDING) && lease_was_revoked(lease))
		counters_add(counters, lease->tenant, COUNTER_REVOCATIONS);
	else if ((touched & TOUCH_PREEMPT) && lease->state == STATE_REVOKING)
		counters_add(counters, lease->tenant, COUNTER_PREEMPTIONS);
	if ((touched & TOUCH_DRIFT) && lease_drifts(lease))
		counters_add(counters, lease->tenant, COUNTER_DRIFTS);
}

void accounting_lease(struct daemon *daemon, struct lease *lease, unsigned touched)
{
	const struct usage_now present = now();

	if (!daemon->accounting) /* the daemon is ending */
		return;
	usage_lease(daemon->accounting->usage, lease, touched & TOUCH_REMOVED, &present);
	count(usage_counters(daemon->accounting->usage), lease, touched);
	schedule_save(daemon);
}

void accounting_moved(struct daemon *daemon, const struct lease *lease)
{
	counters_add(usage_counters(daemon->accounting->usage), lease->tenant, COUNTER_MOVES);
}

void accounting_decided(struct daemon *daemon, uint64_t usec)
{
	counters_took(usage_counters(daemon->accounting->usage), DURATION_DECISION, usec);
}

void accounting_refused(struct daemon *daemon, const struct caller *caller,
			const struct request *request, const struct result *result)
{
	_cleanup_(result_done) struct result none = { 0 };
	const struct usage_now present = now();
	const struct tenant *tenant = NULL;
	enum lease_class lease_class;

	if (result->kind != RESULT_NO_CAPACITY && result->kind != RESULT_NEVER_FITS &&
	    result->kind != RESULT_QUOTA_EXCEEDED && result->kind != RESULT_NOT_PERMITTED)
		return;
	(void)tenant_find(daemon->arbiter->settings, caller, request->tenant, &tenant, &none);
	if (request->class >= 0)
		lease_class = (enum lease_class)request->class;
	else
		lease_class = tenant ? tenant->class : CLASS_BESTEFFORT;
	usage_refused(
		daemon->accounting->usage, caller->uid, tenant ? tenant->name : "", lease_class,
		result->n_refusals > 0 ? result->refusals[result->deciding].reason : REASON_POLICY,
		&present);
	schedule_save(daemon);
}

int accounting_read(void *userdata, uint64_t since, struct usage_row **ret, size_t *ret_n,
		    uint64_t *ret_from)
{
	struct daemon *daemon = userdata;

	add_all(daemon);
	return usage_sum(daemon->accounting->usage, since, ret, ret_n, ret_from);
}

/* Each tenant has a row, before anything has happened to it: then its first event is an increase. */
const struct counters *accounting_counters(void *userdata)
{
	const struct daemon *daemon = userdata;
	const struct settings *settings = daemon->arbiter->settings;
	struct counters *counters = usage_counters(daemon->accounting->usage);

	for (size_t i = 0; i < settings->n_tenants; i++)
		counters_row(counters, settings->tenants[i].name);
	return counters;
}

void accounting_end(struct daemon *daemon)
{
	if (!daemon->accounting)
		return;
	if (daemon->accounting->usage && daemon->arbiter && daemon->state)
		save(daemon);
	sd_event_source_disable_unref(daemon->accounting->timer);
	usage_free(daemon->accounting->usage);
	free(daemon->accounting);
	daemon->accounting = NULL;
}
