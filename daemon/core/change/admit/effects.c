/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a request would do to the other leases: it is granted on a copy of the ledger, and played there until nothing
 * follows any more, with holders that acknowledge at once.
 */

#include "core/change/arbiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/policy/request.h"

/* ---- the play ----------------------------------------------------------------------------------- */

/* A play counts the leases on its GPUs anew each time that something is due, and ends at this sum, because gpuarbd
 * serves nobody meanwhile: 12 leases come to rest in 8 times, 96 in all. With more than about 20 it ends early. */
#define LEASES_MAX 192U

/* A copy of the ledger with leases of its own, without those that wait. */
struct play {
	const struct arbiter *arbiter;
	struct arbiter there;
	uint64_t gpus;                 /* that the request has to do with (bits) */
	size_t n_near;                 /* leases on them */
	uint64_t asked_usec, now_usec; /* now, and in the play */
	uint64_t id;                   /* of the lease that is asked for */
	bool waits;                    /* at first */
	bool granted;
	uint64_t before_usec; /* within which others make room so that it can be granted, */
	uint64_t until_usec;  /* and return the CUs that it was granted */
	struct effects *effects;
};

static bool is_near(const struct play *play, const struct lease *lease)
{
	return lease_gpus(lease) & play->gpus;
}

static void drain(struct play *play)
{
	struct lease *lease;
	unsigned touched;

	while ((lease = ledger_take_touched(&play->there, &touched)))
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
}

static void play_done(struct play *play)
{
	drain(play);
	while (play->there.n_leases > 0)
		lease_free(play->there.leases[--play->there.n_leases]);
	free(play->there.waiting);
	ledger_copy_done(&play->there);
}

/* Copies the leases on the GPUs of the play, and the leases beside them on their other GPUs: a lease that one of these
 * pauses does not move. */
static int copy_leases(struct play *play)
{
	const struct arbiter *arbiter = play->arbiter;
	struct arbiter *there = &play->there;
	uint64_t gpus = 0;

	FOR_EACH_LEASE(lease, arbiter)
		if (is_near(play, lease)) {
			gpus |= lease_gpus(lease);
			play->n_near++;
		}
	FOR_EACH_LEASE(lease, arbiter) {
		if (!(lease_gpus(lease) & gpus))
			continue;
		if (lease_next_version(lease, lease->n_partitions,
				       &there->leases[there->n_leases]) < 0)
			return -ENOMEM;
		there->n_leases++;
	}
	return 0;
}

/* gpus: where the lease is to be, and all GPUs of those that make room for it (bits). Nothing is granted, and no mask
 * grows, on others. */
static int play_new(const struct arbiter *arbiter, uint64_t gpus, uint64_t now_usec,
		    struct effects *effects, struct play *ret)
{
	struct arbiter *there = &ret->there;

	*ret = (struct play){ .arbiter = arbiter,
			      .gpus = gpus,
			      .asked_usec = now_usec,
			      .now_usec = now_usec,
			      .id = arbiter->next_id,
			      .effects = effects };
	if (ledger_copy(arbiter, there) < 0)
		return -ENOMEM;
	there->waiting = calloc(arbiter->n_leases + 1, sizeof(*there->waiting));
	there->n_leases = there->n_waiting = 0;
	there->touched = NULL;
	there->verifies = there->paused = false;
	there->next_examined = there->next_searched = 0;
	there->round_steps = UINT64_MAX;
	for (unsigned i = 0; i < there->n_gpus; i++)
		ret->gpus |= gpus >> i & 1 ? ledger_sharing(arbiter, i) : 0;
	for (unsigned i = 0; i < there->n_gpus; i++) {
		there->gpus[i].draining |= !(ret->gpus >> i & 1);
		there->gpus[i].lend.grow_usec *= ret->gpus >> i & 1;
	}
	if (there->waiting && copy_leases(ret) == 0)
		return 0;
	play_done(ret);
	return -ENOMEM;
}

/* The lease returns what it must within this time. */
static void add_time(const struct play *play, uint64_t id, uint64_t *within_usec)
{
	const struct lease *lease = ledger_find(play->arbiter, id);
	uint64_t over;

	if (!lease)
		return;
	over = enforce_over_at(play->arbiter, lease, play->asked_usec);
	*within_usec = max_u64(*within_usec,
			       over == UINT64_MAX ? UINT64_MAX : over - play->asked_usec);
}

/* Notes that the lease is granted, and within which time the leases that have its CUs return them. */
static void note_granted(struct play *play, const struct lease *lease)
{
	const struct arbiter *there = &play->there;

	play->granted = true;
	if (lease->state == STATE_INACTIVE)
		return;
	FOR_EACH_LEASE(other, there)
		if (borrow_overlap(there, lease, other, NULL) > 0)
			add_time(play, other->id, &play->until_usec);
}

/* Takes the leases of a step. */
static void take(struct play *play, enum step_kind kind, struct move_set *set)
{
	uint64_t within_usec = 0;

	for (size_t i = 0; i < set->n_first; i++) {
		struct lease *lease = TAKE_PTR(set->next[i]);

		if (kind == STEP_MOVE)
			add_time(play, lease->id, &within_usec);
		if (kind == STEP_GRANT && lease->id == play->id)
			note_granted(play, lease);
		arbiter_commit(&play->there, lease);
	}
	if (set->n_first < set->n)
		play->before_usec = sum_u64(play->before_usec, within_usec);
	else
		play->until_usec = max_u64(play->until_usec, within_usec);
	move_set_done(set);
}

static void reconcile(struct play *play)
{
	struct arbiter *there = &play->there;
	unsigned steps = ROOM_STEPS; /* as in each turn of the daemon */
	enum step_kind kind;
	struct move_set set;

	do {
		arbiter_lend(there, play->now_usec);
		drain(play);
		kind = arbiter_next_step(there, play->now_usec, false, &steps, &set);
		if (kind != STEP_NONE)
			take(play, kind, &set);
	} while (kind != STEP_NONE || there->touched);
}

static bool is_revoked(const struct effects *effects, uint64_t id)
{
	for (size_t i = 0; i < effects->revoked.n; i++)
		if (effects->revoked.ids[i] == id)
			return true;
	return false;
}

/* The lease is revoked for the one that waits, or ends before that. Returns whether it is gone. */
static bool leave(struct play *play, struct lease *lease, uint64_t *within_usec)
{
	struct advice *revoked = &play->effects->revoked;
	bool named = is_revoked(play->effects, lease->id);
	bool revokes = lease->state == STATE_REVOKING && lease->revoked_for == play->id;

	if (!named && !revokes &&
	    !(play->waits && is_near(play, lease) && advice_is_leaving(lease)))
		return false;
	if (!named && revokes && revoked->n < ADVICE_MAX)
		revoked->ids[revoked->n++] = lease->id;
	if (!play->granted)
		add_time(play, lease->id, within_usec);
	arbiter_end(&play->there, lease, RESULT_OK, "");
	ledger_remove(&play->there, lease);
	return true;
}

/* Holders acknowledge what they were told. Returns whether there was anything. */
static bool acknowledge(struct play *play)
{
	uint64_t within_usec = 0;
	bool any = false;

	for (size_t i = play->there.n_leases; i-- > 0;) {
		struct lease *lease = play->there.leases[i];

		if (leave(play, lease, &within_usec)) {
			any = true;
		} else if (lease->state != STATE_REVOKING && lease->state != STATE_ENDING) {
			any |= lease->acknowledged < lease->generation;
			arbiter_acknowledge(&play->there, lease->id, lease->generation);
		}
	}
	play->before_usec = sum_u64(play->before_usec, within_usec);
	return any;
}

/* Time passes until something is due. false: nothing is. */
static bool pass(struct play *play)
{
	struct arbiter *there = &play->there;
	struct lease *waiting = there->n_waiting > 0 ? there->waiting[0] : NULL;
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; there->lending && i < there->n_gpus; i++) {
		next = min_u64(next, there->gpus[i].lend.join_usec);
		if (there->gpus[i].lend.grow_usec > 0)
			next = min_u64(next, there->gpus[i].lend.grow_usec);
	}
	if (waiting && waiting->wait.search_usec > 0)
		next = min_u64(next, waiting->wait.search_usec);
	if (next == UINT64_MAX)
		return false;
	play->now_usec = max_u64(play->now_usec, next);
	if (waiting)
		wait_search_again(there, waiting, play->now_usec);
	return true;
}

/* Takes the lease that is asked for. */
static void play_lease(struct play *play, struct lease *lease)
{
	size_t leases = 0;

	play->waits = lease->state == STATE_WAITING;
	if (!play->waits)
		note_granted(play, lease);
	arbiter_commit(&play->there, lease);
	if (play->effects->revoked.n > 0)
		acknowledge(play); /* of those that are revoked: others have nothing yet */
	do {
		do
			reconcile(play);
		while (acknowledge(play));
		leases += play->n_near + 1;
	} while (leases < LEASES_MAX && pass(play));
}

/* ---- what differs ------------------------------------------------------------------------------- */

static void add_shrinking(struct effects *effects, const struct lease *lease, const struct gpu *gpu,
			  unsigned from, unsigned to)
{
	struct shrinking *shrinking = &effects->shrinks[effects->n_shrinks++];

	*shrinking = (struct shrinking){ .lease = lease->id, .from = from, .to = to };
	memcpy(shrinking->gpu, gpu->info.name, sizeof(shrinking->gpu));
}

/* then: the lease after the play, on these GPUs (bits). */
static void add_lease(const struct arbiter *arbiter, const struct lease *lease,
		      const struct lease *then, uint64_t gpus, struct effects *effects)
{
	bool moved = then->lend.moves > lease->lend.moves, paused = false;

	FOR_EACH_PARTITION(p, lease) {
		const struct partition *q = lease_partition_on(then, p->gpu);

		if (!q || !(gpus >> p->gpu & 1))
			continue;
		if (q->count < p->count)
			add_shrinking(effects, lease, &arbiter->gpus[p->gpu], p->count, q->count);
		else
			moved |= !cuset_within(&p->cus, &q->cus);
		paused |= q->paused && !p->paused;
	}
	if (moved)
		effects->moves[effects->n_moves++] = lease->id;
	if (paused)
		effects->pauses[effects->n_pauses++] = lease->id;
}

static int add_leases(const struct play *play, struct effects *effects)
{
	const struct arbiter *then = &play->there;
	size_t room = 1;

	FOR_EACH_LEASE(lease, then)
		room += lease->n_partitions;
	effects->shrinks = calloc(room, sizeof(*effects->shrinks));
	effects->pauses = calloc(room, sizeof(*effects->pauses));
	effects->moves = calloc(room, sizeof(*effects->moves));
	if (!effects->shrinks || !effects->pauses || !effects->moves)
		return -ENOMEM;
	FOR_EACH_LEASE(next, then) {
		const struct lease *lease = ledger_find(play->arbiter, next->id);

		if (lease && lease->state != STATE_ENDING)
			add_lease(play->arbiter, lease, next, play->gpus, effects);
	}
	return 0;
}

/* ---- a plan ------------------------------------------------------------------------------------- */

/* Does the proposal for a realtime request for whole shader engines have fewer CUs than they? Then *ret is the same
 * request for all of them. */
static bool lacks_engines(const struct request *request, const struct lease *proposal,
			  struct request *ret)
{
	bool lacks = false;

	request_recall(request, ret);
	for (size_t i = 0; i < proposal->n_partitions; i++) {
		struct want *want = &ret->wants[i];

		if (proposal->class != CLASS_REALTIME || want->shader_engines == 0 ||
		    want->cus > 0 || want->cus_percent > 0)
			continue;
		lacks |= proposal->partitions[i].count < proposal->partitions[i].asked;
		want->exact = true;
	}
	return lacks;
}

/* Does the request get more CUs than the proposal at once after these moves? The quota of a user counts CUs that moved
 * leases have not returned. */
static bool gains(const struct arbiter *arbiter, const struct request *request,
		  const struct lease *proposal, const struct move_set *set)
{
	const struct asker asker = { proposal, request };
	_cleanup_(result_done) struct result result = { 0 };
	struct partition partitions[REQUEST_WANTS];
	struct arbiter after;
	int n, more = 0;

	if (borrow_copy_with(arbiter, set->next, set->n, &after) < 0)
		return false;
	n = plan_asked(&after, &asker, partitions, &result);
	ledger_copy_done(&after);
	for (int i = 0; i < n; i++)
		more += (int)partitions[i].count - (int)proposal->partitions[i].count;
	return more > 0;
}

static bool find_moves(const struct arbiter *arbiter, const struct caller *caller,
		       const struct request *request, const struct lease *proposal,
		       const struct result *result, uint64_t now_usec, struct move_set *ret)
{
	struct request whole;

	if (result->kind == RESULT_NO_CAPACITY)
		return arbiter_plan_moves(arbiter, caller, request, now_usec, MOVE_STEPS, ret) > 0;
	if (!proposal || !lacks_engines(request, proposal, &whole) ||
	    move_find(arbiter, &(struct asker){ proposal, &whole }, now_usec, MOVE_STEPS, ret) == 0)
		return false;
	if (ret->n_first == ret->n && gains(arbiter, request, proposal, ret))
		return true;
	move_set_done(ret); /* the request need not wait for moves */
	return false;
}

int arbiter_plan_moved(const struct arbiter *arbiter, const struct caller *caller,
		       const struct request *request, uint64_t now_usec, struct lease **ret,
		       struct result *result)
{
	int r = plan_new(arbiter, caller, request, true, ret, result);

	if (r >= 0 && (*ret)->state == STATE_WAITING)
		(*ret)->wait.moves_usec = (*ret)->wait.search_usec =
			now_usec + arbiter->settings->activate_grace_usec;
	return r;
}

/* Makes the first moves, if there are any, and decides as a Reserve is decided. */
static int decide(struct play *play, const struct caller *caller, const struct request *request,
		  struct move_set *set, struct lease **ret)
{
	_cleanup_(result_done) struct result result = { 0 };
	int r;

	if (set->n > 0) {
		take(play, STEP_MOVE, set);
		r = arbiter_plan_moved(&play->there, caller, request, play->now_usec, ret, &result);
	} else {
		r = preempt_plan(&play->there, caller, request, ret, &result);
	}
	return r >= 0 || result.kind == RESULT_NO_MEMORY ? r : 0;
}

/* The GPUs that the request has to do with (bits): where leases make room for it, which for several wants, and in a second
 * step, may be anywhere; or where it is granted. 0: it waits, and nothing is done for it. -ENOMEM. */
static int find_gpus(const struct arbiter *arbiter, const struct request *request,
		     const struct move_set *set, const struct lease *proposal,
		     struct effects *effects, uint64_t *ret)
{
	int found;

	*ret = proposal ? lease_gpus(proposal) : 0;
	for (size_t i = 0; i < set->n; i++)
		*ret |= lease_gpus(set->next[i]);
	if (proposal && proposal->state == STATE_WAITING) {
		found = advice_find(arbiter, proposal, ADVICE_REVOCABLE, &effects->revoked);
		if (found < 0 || (found == 0 && set->n == 0))
			return found;
		if (found > 0)
			FOR_EACH_LEASE(lease, arbiter)
				if (advice_is_leaving(lease) || is_revoked(effects, lease->id))
					*ret |= lease_gpus(lease);
		if (set->n > 0) /* only if it does not fit after the moves */
			effects->revoked.n = 0;
	}
	if (set->n > 0 ? request->n_wants > 1 || set->n_first < set->n
		       : request->n_wants > 1 && proposal->state == STATE_WAITING)
		*ret = UINT64_MAX;
	return 0;
}

/* The lease as it is when nothing follows any more: one that adapts has its share then. */
static int take_granted(const struct play *play, struct lease **proposal)
{
	const struct lease *then = ledger_find(&play->there, play->id);
	struct lease *next;

	if (!play->granted || !then)
		return 0;
	if (lease_next_version(then, then->n_partitions, &next) < 0)
		return -ENOMEM;
	lease_free(*proposal);
	*proposal = next;
	return 0;
}

/* What becomes of a request, and of the leases. *proposal: the lease without moves, and then as it is in the end; NULL: it
 * is refused. */
static int foresee(const struct arbiter *arbiter, const struct caller *caller,
		   const struct request *request, uint64_t now_usec, struct move_set *set,
		   struct lease **proposal, struct effects *effects)
{
	bool moves = set->n > 0, again = moves || (*proposal)->state == STATE_WAITING;
	struct lease *lease = NULL;
	struct play play;
	uint64_t gpus;
	int r = find_gpus(arbiter, request, set, *proposal, effects, &gpus);

	if (r < 0 || gpus == 0)
		return r;
	r = play_new(arbiter, gpus, now_usec, effects, &play);
	if (r < 0)
		return r;
	if (again)
		r = decide(&play, caller, request, set, &lease);
	else
		r = lease_next_version(*proposal, (*proposal)->n_partitions, &lease);
	if (lease)
		play_lease(&play, lease);
	if (r >= 0)
		r = add_leases(&play, effects);
	effects->within_usec = sum_u64(play.before_usec, play.until_usec);
	if (r >= 0 && (moves || (*proposal)->state != STATE_WAITING))
		r = take_granted(&play, proposal);
	play_done(&play);
	return r;
}

bool arbiter_moves_help(const struct arbiter *arbiter, const struct caller *caller,
			const struct request *request, const struct lease *proposal,
			const struct result *result, uint64_t now_usec, struct move_set *ret)
{
	_cleanup_(effects_done) struct effects effects = { 0 };
	_cleanup_(lease_freep) struct lease *granted = NULL;

	if (!find_moves(arbiter, caller, request, proposal, result, now_usec, ret))
		return false;
	if (ret->n_first == ret->n)
		return true;
	foresee(arbiter, caller, request, now_usec, ret, &granted, &effects);
	move_set_done(ret);
	return granted && find_moves(arbiter, caller, request, proposal, result, now_usec, ret);
}

int arbiter_plan_effects(const struct arbiter *arbiter, const struct caller *caller,
			 const struct request *request, uint64_t now_usec, struct lease **ret,
			 struct effects *effects, struct result *result)
{
	_cleanup_(lease_freep) struct lease *proposal = NULL;
	struct move_set set = { 0 };
	int r = preempt_plan(arbiter, caller, request, &proposal, result);

	if (!find_moves(arbiter, caller, request, proposal, result, now_usec, &set) && r < 0)
		return r;
	if (foresee(arbiter, caller, request, now_usec, &set, &proposal, effects) < 0) {
		r = result_set(result, RESULT_NO_MEMORY, "out of memory");
		proposal = lease_free(proposal);
	} else if (proposal && proposal->state != STATE_WAITING) {
		result_done(result);
		r = 0;
	}
	if (!proposal)
		effects_done(effects);
	*ret = TAKE_PTR(proposal);
	move_set_done(&set);
	return r;
}

void effects_done(struct effects *effects)
{
	free(effects->shrinks);
	free(effects->pauses);
	free(effects->moves);
	*effects = (struct effects){ 0 };
}
