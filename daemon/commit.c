/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Saves what is to be granted and puts it into force: the middle steps of the protocol plan, save,
 * commit, publish. Nothing is granted that a restart would not know. ARCHITECTURE.md has the reasons
 * and the exception, facts and ends, which are in force before they are saved.
 */

#include <inttypes.h>
#include <string.h>

#include "daemon.h"

/* ---- saving ------------------------------------------------------------------------------ */

int commit_save_again(struct daemon *daemon)
{
	bool stale = daemon->commit.stale;
	int r = 0;

	for (size_t i = 0; stale && r >= 0 && i < daemon->arbiter->n_leases; i++)
		r = state_save(daemon->state, daemon->arbiter, daemon->arbiter->leases[i]);
	daemon->commit.stale = r < 0;
	return r;
}

void commit_save_all(struct daemon *daemon)
{
	daemon->commit.stale = true;
	commit_save_again(daemon);
}

/* All are saved before the first is published: the CUs that one lease gave back may be the CUs
 * in the next record of another one. */
void commit_save_touched(struct daemon *daemon)
{
	for (const struct lease *l = daemon->arbiter->touched; l; l = l->touched_next) {
		int r;

		if (!(l->touched & (TOUCH_CHANGED | TOUCH_ENDING | TOUCH_SAVE)) ||
		    (l->touched & TOUCH_REMOVED))
			continue;
		r = state_save(daemon->state, daemon->arbiter, l);
		if (r < 0)
			log_warning("lease %" PRIu64 ": cannot save it: %s", l->id, strerror(-r));
		daemon->commit.stale |= r < 0;
	}
}

/* ---- plan, save, commit -------------------------------------------------------------------- */

/* A lease is dated when it begins to wait, and when it is granted. */
static void date(const struct daemon *daemon, struct lease *planned)
{
	const struct lease *lease = ledger_find(daemon->arbiter, planned->id);

	if (!lease || (lease->state == STATE_WAITING) != (planned->state == STATE_WAITING))
		planned->since_usec = daemon_now_usec();
	else
		planned->since_usec = lease->since_usec;
}

int commit_proposal(struct daemon *daemon, struct lease *proposal, struct lease **ret_lease)
{
	_cleanup_(lease_freep) struct lease *planned = proposal;
	struct lease *lease;
	int r;

	date(daemon, planned);
	r = commit_save_again(daemon);
	if (r >= 0)
		r = state_ids_until(daemon->state, planned->id);
	if (r >= 0)
		r = state_save(daemon->state, daemon->arbiter, planned);
	if (r < 0)
		return r;
	lease = arbiter_commit(daemon->arbiter, TAKE_PTR(planned));
	if (ret_lease)
		*ret_lease = lease;
	return 0;
}

/* What cannot be saved is not granted: the lease keeps its place in the queue until the next
 * scan. */
static bool grant_next(struct daemon *daemon)
{
	struct lease *proposal, *lease;
	uint64_t id;
	int r;

	if (arbiter_plan_next(daemon->arbiter, &proposal) <= 0)
		return false;
	id = proposal->id;
	r = commit_proposal(daemon, proposal, &lease);
	if (r < 0) {
		if (!daemon->commit.grant_fails)
			log_error("lease %" PRIu64
				  ": it fits, but keeps waiting because it cannot be saved: %s",
				  id, strerror(-r));
		daemon->commit.grant_fails = true;
		daemon->arbiter->next_examined = 0; /* no lease behind it may pass it */
		return false;
	}
	daemon->commit.grant_fails = false;
	if (lease->state != STATE_ACTIVATING)
		journal_events_granted(daemon, lease, ", after waiting");
	return true;
}

bool commit_moves(struct daemon *daemon, struct move_set *set)
{
	bool all = true;

	for (size_t i = 0; i < set->n_first && all; i++) {
		struct lease *lease;

		all = commit_proposal(daemon, TAKE_PTR(set->next[i]), &lease) >= 0;
		if (!all)
			break;
		accounting_moved(daemon, lease);
		journal_events_changed(daemon, EVENT_RESIZED, lease);
	}
	move_set_done(set);
	return all;
}

/* Makes room for a waiting lease. */
static bool move_next(struct daemon *daemon)
{
	struct move_set set;

	return arbiter_plan_moves_waiting(daemon->arbiter, daemon_now_usec(), &set) > 0 &&
	       commit_moves(daemon, &set);
}

static bool grow_next(struct daemon *daemon)
{
	struct lease *proposal, *lease;
	uint64_t acknowledged;

	if (arbiter_plan_growth(daemon->arbiter, daemon_now_usec(), &proposal) <= 0)
		return false;
	acknowledged = proposal->acknowledged;
	if (commit_proposal(daemon, proposal, &lease) < 0) {
		ledger_grow(daemon->arbiter, UINT64_MAX); /* repeats the round after grow-delay */
		return false;
	}
	if (lease->generation > acknowledged) /* else only its base has moved */
		journal_events_changed(daemon, EVENT_RESIZED, lease);
	return true;
}

/* What cannot be saved stays revoked until the next scan. */
static bool requeue_next(struct daemon *daemon)
{
	struct lease *proposal, *lease;

	if (arbiter_plan_requeue(daemon->arbiter, &proposal) <= 0 ||
	    commit_proposal(daemon, proposal, &lease) < 0)
		return false;
	journal_events_preempt(daemon, lease);
	return true;
}

/* No lease is granted, and none moves for it, before it is known which queues cover CUs. */
static bool serve_waiting(struct daemon *daemon)
{
	return !descriptors_bar_grants(daemon) && (grant_next(daemon) || move_next(daemon));
}

bool commit_next(struct daemon *daemon)
{
	return requeue_next(daemon) || serve_waiting(daemon) ||
	       (!arbiter_in_round(daemon->arbiter) && daemon->arbiter->round_steps > 0 &&
		grow_next(daemon));
}
