/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Units that gpuarb-enforce has frozen for an overdue lease, until it has answered that they are thawed:
 * no process of the lease need be left by then. A unit stays frozen only while its lease has to be, while
 * every process in it belongs to the lease, and while the gpuarb-enforce that froze it lives. Only
 * gpuarb-enforce saves their names: it thaws them when gpuarbd ends.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "enforce/enforce.h"
#include "helpers/enforce-protocol.h"
#include "protocol/protocol.h"
#include "sys/cgroup.h"
#include "util/text.h"

struct frozen {
	LIST_HEAD(, frozen_unit) units;
	sd_event_source *retry; /* of a thaw that failed */
};

#define CHECK_USEC UINT64_C(1000000) /* between two readings of the processes of a unit */
#define RETRY_USEC UINT64_C(1000000) /* before a thaw that failed is repeated */

struct frozen_unit {
	uint64_t lease;
	char unit[ENFORCE_UNIT_MAX];
	char cgroup[1024];
	bool answered;       /* it is frozen */
	bool thaw;           /* it has to be thawed */
	bool asked;          /* gpuarb-enforce was asked to thaw it, and has not answered */
	bool fails;          /* the last attempt to thaw it failed, which was logged */
	uint64_t again_usec; /* of the next attempt */
	uint64_t checked_usec;
	size_t n_bound; /* of the lease at that time */
	LIST_ENTRY(frozen_unit) link;
};

/* ---- the list ---------------------------------------------------------------------------- */

static void drop(struct frozen_unit *frozen)
{
	LIST_REMOVE(frozen, link);
	free(frozen);
}

static struct frozen_unit *add(struct daemon *daemon, const char *unit)
{
	struct frozen_unit *frozen = calloc(1, sizeof(*frozen));

	if (!frozen)
		return NULL;
	snprintf(frozen->unit, sizeof(frozen->unit), "%s", unit);
	LIST_INSERT_HEAD(&daemon->frozen->units, frozen, link);
	return frozen;
}

static struct frozen_unit *find(struct daemon *daemon, uint64_t lease, const char *unit)
{
	struct frozen_unit *frozen;

	LIST_FOREACH(frozen, &daemon->frozen->units, link)
	if (frozen->lease == lease && !frozen->thaw && strcmp(frozen->unit, unit) == 0)
		return frozen;
	return NULL;
}

/* Several leases may have had the same unit frozen. */
static struct frozen_unit *find_thaw(struct daemon *daemon, const char *unit, bool asked)
{
	struct frozen_unit *frozen;

	LIST_FOREACH(frozen, &daemon->frozen->units, link)
	if (frozen->thaw && frozen->asked == asked && strcmp(frozen->unit, unit) == 0)
		return frozen;
	return NULL;
}

static bool is_needed(struct daemon *daemon, const char *unit)
{
	const struct frozen_unit *frozen;

	LIST_FOREACH(frozen, &daemon->frozen->units, link)
	if (!frozen->thaw && strcmp(frozen->unit, unit) == 0)
		return true;
	return false;
}

/* ---- which units may be frozen --------------------------------------------------------------- */

/* Whether every process of the unit belongs to the lease; otherwise the sentence. */
static bool has_only(const struct daemon *daemon, const struct lease *lease, const char *unit,
		     const char *cgroup, char *why, size_t size)
{
	pid_t other;
	int r = unit_find_other(daemon, lease, cgroup, &other);

	if (r < 0)
		snprintf(why, size, "cannot read the processes of %s: %s", unit, strerror(-r));
	if (r > 0)
		snprintf(why, size, "pid %d in %s does not belong to the lease", other, unit);
	return r == 0;
}

/* An agent in the unit does not belong to the lease: systemd 252 does not thaw a service whose main
 * process was killed, and the agent would stay frozen until the stop of the service times out. */
static bool find_unit(const struct daemon *daemon, const struct lease *lease,
		      struct unit_place *place, char *why, size_t size)
{
	int r;

	if (lease->n_bound == 0) {
		snprintf(why, size, "no process is bound to the lease");
		return false;
	}
	r = unit_of_process(lease->bound[0], place);
	if (r < 0) {
		snprintf(why, size, "cannot find its unit: %s", strerror(-r));
		return false;
	}
	return has_only(daemon, lease, place->unit, place->cgroup, why, size);
}

/* ---- freezing ---------------------------------------------------------------------------- */

int frozen_freeze(struct daemon *daemon, const struct lease *lease, int pidfd, uint64_t start_time,
		  uid_t user, char *why, size_t size)
{
	struct frozen_unit *frozen, *left;
	struct unit_place place;
	int r;

	if (!find_unit(daemon, lease, &place, why, size))
		return -EPERM;
	frozen = add(daemon, place.unit);
	if (!frozen)
		return refuse(why, size, -ENOMEM, "out of memory");
	frozen->lease = lease->id;
	strcpy(frozen->cgroup, place.cgroup);
	r = enforce_ask(daemon->enforce, ENFORCE_FREEZE, pidfd, start_time, user, place.unit,
			lease->id, why, size);
	if (r < 0) {
		drop(frozen);
		return r;
	}
	/* A thaw of the same unit that is to be repeated would come after the freeze. */
	while ((left = find_thaw(daemon, place.unit, false)))
		drop(left);
	return 0;
}

/* The unit may be frozen all the same. */
static bool is_uncertain(int r)
{
	return r == -ETIMEDOUT || r == -ECONNRESET || r == -EBADMSG;
}

static void say(struct daemon *daemon, uint64_t id, const char *what)
{
	const struct lease *lease = ledger_find(daemon->arbiter, id);

	if (lease)
		journal_events_lease(daemon, EVENT_OVERDUE, lease, ": %s", what);
	else
		log_notice("lease %" PRIu64 ": %s", id, what);
}

/* The enforcement step of the lease stays, without a frozen unit. */
static void forget_frozen(struct daemon *daemon, uint64_t id)
{
	struct lease *lease = ledger_find(daemon->arbiter, id);

	if (!lease || !lease->enforce.frozen)
		return;
	lease->enforce.frozen = false;
	ledger_touch(daemon->arbiter, lease, TOUCH_SAVE);
}

void frozen_answer_freeze(struct daemon *daemon, uint64_t lease, const char *unit, int r,
			  const char *sentence)
{
	struct frozen_unit *frozen = find(daemon, lease, unit);
	char what[ENFORCE_UNIT_MAX + ENFORCE_SENTENCE_MAX + 64];

	if (r >= 0)
		snprintf(what, sizeof(what),
			 "%s is frozen; work that its queues have already continues", unit);
	else
		snprintf(what, sizeof(what), "its unit is not frozen: %s", sentence);
	say(daemon, lease, what);
	if (!frozen) /* it has to be thawed already, and that was asked after the freeze */
		return;
	frozen->answered = r >= 0;
	if (r < 0)
		forget_frozen(daemon, lease);
	if (is_uncertain(r))
		frozen->thaw = true;
	else if (r < 0)
		drop(frozen);
	schedule_update(daemon);
}

/* ---- thawing ------------------------------------------------------------------------------ */

static void retry(struct daemon *daemon, struct frozen_unit *frozen, const char *why)
{
	if (!frozen->fails)
		log_warning("lease %" PRIu64 ": cannot thaw %s: %s; it is tried again until it can",
			    frozen->lease, frozen->unit, why);
	frozen->fails = true;
	frozen->again_usec = daemon_now_usec() + RETRY_USEC;
	sd_event_source_set_time(daemon->frozen->retry, frozen->again_usec);
	sd_event_source_set_enabled(daemon->frozen->retry, SD_EVENT_ONESHOT);
}

static void thaw(struct daemon *daemon, struct frozen_unit *frozen)
{
	char why[512];
	int r;

	if (is_needed(daemon, frozen->unit)) {
		drop(frozen);
		return;
	}
	r = enforce_ask(daemon->enforce, ENFORCE_THAW, -1, 0, 0, frozen->unit, frozen->lease, why,
			sizeof(why));
	frozen->asked = r >= 0;
	if (r < 0)
		retry(daemon, frozen, why);
}

/* Whether repeating a thaw would change nothing: the unit is not frozen, or cannot be. */
static bool is_final(int r)
{
	return r == 0 || r == -ESRCH || r == -ENOENT || r == -EOPNOTSUPP || r == -EPERM ||
	       r == -EINVAL;
}

void frozen_answer_thaw(struct daemon *daemon, const char *unit, int r, const char *sentence)
{
	struct frozen_unit *frozen = find_thaw(daemon, unit, true);

	if (!frozen)
		return;
	frozen->asked = false;
	if (!is_final(r)) {
		retry(daemon, frozen, sentence);
		return;
	}
	if (r == 0)
		say(daemon, frozen->lease, "its unit is thawed");
	drop(frozen);
}

static int on_retry(sd_event_source *, uint64_t, void *userdata)
{
	frozen_review(userdata);
	return 0;
}

/* ---- while it is frozen ------------------------------------------------------------------- */

/* Returns whether the unit has to be thawed; foreign: because of a process in it, with the sentence. */
static bool is_over(const struct daemon *daemon, struct frozen_unit *frozen,
		    const struct lease *lease, bool *foreign, char *why, size_t size)
{
	uint64_t now = daemon_now_usec();

	*foreign = false;
	if (!lease || !lease->enforce.frozen)
		return true;
	if (!frozen->answered ||
	    (frozen->n_bound == lease->n_bound && now - frozen->checked_usec < CHECK_USEC))
		return false;
	frozen->n_bound = lease->n_bound;
	frozen->checked_usec = now;
	*foreign = !has_only(daemon, lease, frozen->unit, frozen->cgroup, why, size);
	return *foreign;
}

static void check(struct daemon *daemon, struct frozen_unit *frozen)
{
	struct lease *lease = ledger_find(daemon->arbiter, frozen->lease);
	char why[512];
	bool foreign;

	if (!is_over(daemon, frozen, lease, &foreign, why, sizeof(why)))
		return;
	frozen->thaw = true;
	if (!foreign)
		return;
	journal_events_lease(daemon, EVENT_OVERDUE, lease, ": its unit does not stay frozen: %s",
			     why);
	forget_frozen(daemon, lease->id);
}

void frozen_review(struct daemon *daemon)
{
	struct frozen_unit *frozen, *next;

	LIST_FOREACH(frozen, &daemon->frozen->units, link)
	if (!frozen->thaw)
		check(daemon, frozen);
	for (frozen = LIST_FIRST(&daemon->frozen->units); frozen; frozen = next) {
		next = LIST_NEXT(frozen, link);
		if (frozen->thaw && !frozen->asked && daemon_now_usec() >= frozen->again_usec)
			thaw(daemon, frozen);
	}
}

void frozen_helper_lost(struct daemon *daemon)
{
	struct frozen_unit *frozen;

	LIST_FOREACH(frozen, &daemon->frozen->units, link)
	{
		if (frozen->thaw)
			continue;
		frozen->thaw = true;
		say(daemon, frozen->lease,
		    "its unit does not stay frozen: gpuarb-enforce has ended");
		forget_frozen(daemon, frozen->lease);
	}
	if (!LIST_EMPTY(&daemon->frozen->units))
		schedule_update(daemon);
}

/* ---- life --------------------------------------------------------------------------------- */

int frozen_start(struct daemon *daemon)
{
	daemon->frozen = calloc(1, sizeof(*daemon->frozen));
	if (!daemon->frozen)
		return -ENOMEM;
	LIST_INIT(&daemon->frozen->units);
	return schedule_add(daemon, 0, on_retry, &daemon->frozen->retry);
}

void frozen_free(struct daemon *daemon)
{
	if (!daemon->frozen)
		return;
	while (!LIST_EMPTY(&daemon->frozen->units))
		drop(LIST_FIRST(&daemon->frozen->units));
	sd_event_source_disable_unref(daemon->frozen->retry);
	free(daemon->frozen);
}
