/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Saves what is to be granted and puts it into force: the middle steps of the protocol plan, save,
 * commit, publish. Nothing is granted or published that a restart would not know. ARCHITECTURE.md has
 * the reasons and the exception, facts and ends, which are in force before they are saved.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/protocol.h"
#include "observe/observe.h"
#include "sys/state/state-json.h"

struct commit {
	int unsaved;          /* why the last changes could not be saved; 0: they are */
	uint64_t failed_usec; /* when a save failed that is tried again */
	bool grant_fails;     /* a waiting lease fits but cannot be saved, which was logged */
};

/* ---- saving ------------------------------------------------------------------------------ */

void commit_save_all(struct daemon *daemon)
{
	for (size_t i = 0; i < daemon->arbiter->n_leases; i++)
		(void)state_save(daemon->state, daemon->arbiter, daemon->arbiter->leases[i]);
}

static bool has_to_be_saved(const struct lease *lease)
{
	return (lease->touched & (TOUCH_CHANGED | TOUCH_ENDING | TOUCH_SAVE)) &&
	       !(lease->touched & TOUCH_REMOVED);
}

void commit_forget(struct daemon *daemon, const struct lease *lease)
{
	int r = state_forget(daemon->state, lease->id);

	if (r < 0)
		log_warning("lease %" PRIu64 ": cannot delete its file: %s", lease->id,
			    strerror(-r));
}

/* The file of a lease that had partitions goes before another one is granted them; that of a waiting
 * lease when its holder was told: publish.c. */
static void forget_removed(struct daemon *daemon)
{
	for (const struct lease *l = daemon->arbiter->touched; l; l = l->touched_next)
		if ((l->touched & TOUCH_REMOVED) && l->n_partitions > 0)
			commit_forget(daemon, l);
}

static int save_changed(struct daemon *daemon)
{
	_cleanup_(freep) struct lease **changed = NULL;
	size_t n = 0;

	for (struct lease *l = daemon->arbiter->touched; l; l = l->touched_next)
		n += has_to_be_saved(l);
	if (n == 0)
		return 0;
	changed = calloc(n, sizeof(*changed));
	if (!changed)
		return -ENOMEM;
	n = 0;
	for (struct lease *l = daemon->arbiter->touched; l; l = l->touched_next)
		if (has_to_be_saved(l))
			changed[n++] = l;
	return state_save_group(daemon->state, daemon->arbiter, changed, n);
}

int commit_error(const struct daemon *daemon)
{
	return daemon->commit->unsaved;
}

uint64_t commit_failed_usec(const struct daemon *daemon)
{
	return daemon->commit->failed_usec;
}

int commit_start(struct daemon *daemon)
{
	daemon->commit = calloc(1, sizeof(*daemon->commit));
	return daemon->commit ? 0 : -ENOMEM;
}

/* Clients see the file of a lease until its next version is saved. A file that cannot be read now is
 * none that a restart would read. */
static void show_saved(struct daemon *daemon)
{
	_cleanup_(freep) struct state_lease *saved = malloc(sizeof(*saved));

	for (struct lease *l = daemon->arbiter->touched; l && saved; l = l->touched_next)
		if (has_to_be_saved(l) && !l->shown && l->n_partitions > 0 &&
		    state_read(daemon->state, daemon->arbiter, l->id, saved) == 0)
			ledger_show(daemon->arbiter, l, saved->lease);
}

int commit_save_touched(struct daemon *daemon)
{
	int before = daemon->commit->unsaved, r;

	if (before < 0)
		arbiter_give_time(daemon->arbiter, daemon_now_usec());
	forget_removed(daemon);
	r = save_changed(daemon);
	daemon->commit->unsaved = r;
	if (r < 0) {
		daemon->commit->failed_usec = daemon_now_usec();
		show_saved(daemon);
	} else {
		for (struct lease *l = daemon->arbiter->touched; l; l = l->touched_next)
			l->shown = lease_free(l->shown);
	}
	if (r < 0 && before >= 0)
		log_error("%s: cannot save changes of leases: %s: nothing is granted, published or "
			  "acknowledged before that",
			  daemon->options->runtime_directory, strerror(-r));
	else if (r >= 0 && before < 0)
		log_notice("changes of leases are saved again");
	return r;
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
	r = commit_save_touched(daemon);
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

static void tell(struct daemon *daemon, enum step_kind kind, const struct lease *lease,
		 uint64_t acknowledged)
{
	switch (kind) {
	case STEP_GRANT:
		daemon->commit->grant_fails = false;
		if (lease->state != STATE_ACTIVATING)
			journal_events_granted(daemon, lease, ", after waiting");
		break;
	case STEP_MOVE:
		accounting_moved(daemon, lease);
		journal_events_changed(daemon, EVENT_RESIZED, lease);
		break;
	case STEP_GROW:
		if (lease->generation > acknowledged) /* else only its base has moved */
			journal_events_changed(daemon, EVENT_RESIZED, lease);
		break;
	case STEP_REQUEUE: journal_events_preempt(daemon, lease); break;
	case STEP_NONE: break;
	}
}

static void tell_unsaved(struct daemon *daemon, enum step_kind kind, uint64_t id, int error)
{
	if (kind == STEP_GRANT && !daemon->commit->grant_fails)
		log_error("lease %" PRIu64
			  ": it fits, but keeps waiting because it cannot be saved: %s",
			  id, strerror(-error));
	daemon->commit->grant_fails |= kind == STEP_GRANT;
}

bool commit_step(struct daemon *daemon, enum step_kind kind, struct move_set *set)
{
	int r = 0;

	for (size_t i = 0; i < set->n_first && r >= 0; i++) {
		uint64_t id = set->next[i]->id, acknowledged = set->next[i]->acknowledged;
		struct lease *lease = ledger_find(daemon->arbiter, id);
		/* It only shrinks, so that others can move. */
		bool stays = lease && lease->lend.moves == set->next[i]->lend.moves;

		r = commit_proposal(daemon, TAKE_PTR(set->next[i]), &lease);
		if (r < 0)
			tell_unsaved(daemon, kind, id, r);
		else
			tell(daemon, kind == STEP_MOVE && stays ? STEP_GROW : kind, lease,
			     acknowledged);
	}
	move_set_done(set);
	return r >= 0;
}

bool commit_next(struct daemon *daemon, unsigned *room_steps)
{
	struct move_set set;
	enum step_kind kind;
	bool done;

	kind = arbiter_next_step(daemon->arbiter, daemon_now_usec(), descriptors_bar_grants(daemon),
				 room_steps, &set);
	if (kind == STEP_NONE)
		return false;
	done = commit_step(daemon, kind, &set);
	if (!done) {
		daemon->commit->failed_usec = daemon_now_usec();
		arbiter_step_failed(daemon->arbiter, kind);
	}
	return done;
}
