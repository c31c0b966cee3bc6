/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A plan says what a request would do to the other leases; then the request is made, and played until nothing
 * follows any more, with holders that acknowledge at once. Each lease that ends with fewer CUs, other CUs, paused
 * or revoked was announced with what it has, and nothing else was.
 *
 *	EFFECTS_RUNS=N           N machines
 *	EFFECTS_SEED=N           the same machines again
 */

#include "check.h"
#include "lend-rig.h"
#include "random-geometry.h"
#include "seed.h"
#include "shipped-gpus.h"

#define REQUESTS 30 /* of one machine */
#define LEASES 12U  /* on each GPU at the most */

/* ---- a machine ------------------------------------------------------------------------------ */

static struct lending begin(size_t gpus)
{
	struct gpu_info shipped[SHIPPED_GPUS_MAX], infos[4];
	char names[SHIPPED_GPUS_MAX][64];
	size_t n = load_shipped_gpus(shipped, names);
	struct lending l = { .now = 100 * SECOND_USEC };
	struct tenant *tenant;

	for (size_t i = 0; i < gpus; i++) {
		infos[i] = i > 0 && below(2) ? infos[i - 1] : shipped[below((unsigned)n)];
		snprintf(infos[i].name, sizeof(infos[i].name), "0000:%02zx:00.0", 3 + i);
		infos[i].kfd_gpu_id = (uint32_t)i + 1;
	}
	l.s.arbiter = arbiter_of(infos, gpus);
	add_tenant(l.s.arbiter, "night", OTHER, CLASS_BESTEFFORT)->preempt = true;
	add_tenant(l.s.arbiter, "lab", LAB, CLASS_GUARANTEED);
	tenant = add_tenant(l.s.arbiter, "vr", VR, CLASS_REALTIME);
	tenant->exclusive = EXCLUSIVE_ASK;
	for (size_t i = 0; i < l.s.arbiter->settings->n_tenants; i++)
		l.s.arbiter->settings->tenants[i].weight = 1 + below(4);
	if (below(4) == 0)
		l.s.arbiter->settings->tenants[below(3)].max_cus = (struct limit){ LIMIT_PERCENT,
										   30 + below(60) };
	l.s.arbiter->settings->share_by_lease = below(2);
	return l;
}

static struct request random_request(const struct arbiter *arbiter, uid_t uid)
{
	unsigned most = arbiter->gpus[below((unsigned)arbiter->n_gpus)].cus;
	struct request request = request_for(1 + below(below(2) ? most : most / 4 + 1));
	struct want *want = &request.wants[0];

	want->queues = 1;
	if (below(8) == 0)
		snprintf(want->gpu, sizeof(want->gpu), "%u", below((unsigned)arbiter->n_gpus));
	if (below(2)) {
		request.class = CLASS_BESTEFFORT;
		request.adaptable = true;
		want->cus_max = below(2) ? 400 : want->cus;
		want->cus_min = want->cus = 1 + below(min_u(want->cus, 12));
	} else if (uid == VR && below(2)) {
		want->cus = 0;
		want->shader_engines = 1 + below(2);
	}
	if (uid == VR && !request.adaptable) {
		request.start_inactive = below(4) == 0;
		request.exclusive = below(6) == 0;
	}
	if (arbiter->n_gpus > 1 && below(8) == 0) {
		request.wants[1] = *want;
		request.n_wants = 2;
	}
	return request;
}

/* ---- the daemon ----------------------------------------------------------------------------- */

static struct lease *decide(struct lending *l, const struct caller *caller,
			    const struct request *request)
{
	struct arbiter *arbiter = l->s.arbiter;
	struct lease *lease = NULL;
	struct move_set set;
	bool steps;
	int r;

	result_done(&l->s.result);
	r = preempt_plan(arbiter, caller, request, &lease, &l->s.result);
	if (arbiter_moves_help(arbiter, caller, request, r >= 0 ? lease : NULL, &l->s.result,
			       l->now, &set)) {
		steps = set.n_first < set.n;
		if (steps)
			move_set_done(&set);
		else
			commit_all(l, &set);
		if (r >= 0)
			lease_free(lease);
		result_done(&l->s.result);
		r = steps ? plan_new(arbiter, caller, request, true, &lease, &l->s.result)
			  : preempt_plan(arbiter, caller, request, &lease, &l->s.result);
		if (r >= 0 && steps)
			lease->wait.moves_usec = l->now;
	}
	if (r < 0)
		return NULL;
	lease = arbiter_commit(arbiter, lease);
	arbiter_add_holder(arbiter, lease->id);
	return lease;
}

static void reconcile(struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	enum step_kind kind;
	struct move_set set;
	struct lease *lease;
	unsigned touched;

	do {
		arbiter_lend(arbiter, l->now);
		while ((lease = ledger_take_touched(arbiter, &touched)))
			if (touched & TOUCH_REMOVED)
				lease_free(lease);
		kind = arbiter_next_step(arbiter, l->now, false, &(unsigned){ UINT_MAX }, &set);
		if (kind != STEP_NONE)
			commit_all(l, &set);
	} while (kind != STEP_NONE || arbiter->touched);
}

/* Holders acknowledge. Returns whether there was anything. */
static bool follow_all(struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	bool any = false;

	for (size_t i = arbiter->n_leases; i-- > 0;) {
		struct lease *lease = arbiter->leases[i];

		any |= lease->acknowledged < lease->generation;
		arbiter_acknowledge(arbiter, lease->id, lease->generation);
	}
	CHECK(arbiter_observe(arbiter, NULL, 0) == 0);
	return any;
}

/* Until nothing is due any more. */
static void rest(struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	uint64_t next = 0;

	for (unsigned rounds = 0; next < UINT64_MAX; rounds++) {
		CHECK(rounds < 1000);
		l->now = max_u64(l->now, next);
		arbiter_expire(arbiter, l->now);
		do
			reconcile(l);
		while (follow_all(l));
		next = arbiter_next_deadline(arbiter);
	}
}

/* ---- what was announced --------------------------------------------------------------------- */

/* A lease before the request. */
struct before {
	uint64_t id, moves;
	size_t n;
	struct partition partitions[2];
};

/* How often what became of a lease was announced, and how not. */
static struct {
	unsigned plans, shrinks, moves, pauses, revokes;
	unsigned silent_shrinks, wrong_shrinks, silent_moves, silent_pauses, silent_revokes;
	unsigned vain, vain_shrinks, vain_moves, vain_pauses, vain_revokes, vain_verdicts;
} seen;

static size_t note(const struct arbiter *arbiter, struct before *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];

		ret[n] = (struct before){ lease->id, lease->lend.moves, lease->n_partitions, {} };
		for (size_t j = 0; j < lease->n_partitions; j++)
			ret[n].partitions[j] = lease->partitions[j];
		n += lease->n_partitions > 0;
	}
	return n;
}

static bool has(const uint64_t *ids, size_t n, uint64_t id)
{
	while (n > 0 && ids[n - 1] != id)
		n--;
	return n > 0;
}

static const struct shrinking *shrink_of(const struct arbiter *arbiter,
					 const struct effects *effects, uint64_t id, unsigned gpu)
{
	for (size_t i = 0; i < effects->n_shrinks; i++)
		if (effects->shrinks[i].lease == id &&
		    strcmp(effects->shrinks[i].gpu, arbiter->gpus[gpu].info.name) == 0)
			return &effects->shrinks[i];
	return NULL;
}

/* Counts a kind; returns whether it is a difference. */
static bool differs(bool happened, bool told, unsigned *count, unsigned *silent, unsigned *vain)
{
	*count += happened;
	*silent += happened && !told;
	*vain += told && !happened;
	return happened != told;
}

static bool compare_partition(const struct arbiter *arbiter, const struct effects *effects,
			      uint64_t id, const struct partition *was, const struct partition *p)
{
	const struct shrinking *shrink = shrink_of(arbiter, effects, id, was->gpu);
	bool wrong = shrink && p->count < was->count &&
		     (shrink->from != was->count || shrink->to != p->count);

	seen.wrong_shrinks += wrong;
	if (wrong)
		printf("  lease %llu: %u to %u, not %u to %u\n", (unsigned long long)id, was->count,
		       p->count, shrink->from, shrink->to);
	return differs(p->count < was->count, shrink, &seen.shrinks, &seen.silent_shrinks,
		       &seen.vain_shrinks) ||
	       wrong;
}

static bool compare(const struct arbiter *arbiter, const struct effects *effects,
		    const struct before *before)
{
	const struct lease *lease = ledger_find(arbiter, before->id);
	bool gone = !lease || lease->n_partitions == 0, moved = false, paused = false, r;

	r = differs(gone, has(effects->revoked.ids, effects->revoked.n, before->id), &seen.revokes,
		    &seen.silent_revokes, &seen.vain_revokes);
	if (gone)
		return r;
	for (size_t i = 0; i < before->n; i++) {
		const struct partition *was = &before->partitions[i], *p = &lease->partitions[i];

		r |= compare_partition(arbiter, effects, before->id, was, p);
		moved |= p->count >= was->count && !cuset_within(&was->cus, &p->cus);
		paused |= p->paused && !was->paused;
	}
	r |= differs(moved || lease->lend.moves > before->moves,
		     has(effects->moves, effects->n_moves, before->id), &seen.moves,
		     &seen.silent_moves, &seen.vain_moves);
	return differs(paused, has(effects->pauses, effects->n_pauses, before->id), &seen.pauses,
		       &seen.silent_pauses, &seen.vain_pauses) ||
	       r;
}

/* Asks, makes the request, and compares. Returns whether there is a difference. */
static bool ask(struct lending *l)
{
	static struct before before[4 * LEASES + 1];
	uid_t uid = 1 + below(4);
	struct caller caller = caller_of(uid);
	struct request request = random_request(l->s.arbiter, uid);
	_cleanup_(effects_done) struct effects effects = { 0 };
	_cleanup_(lease_freep) struct lease *planned = NULL;
	const struct lease *lease;
	size_t n = note(l->s.arbiter, before);
	bool differ = false, reserved;
	int r;

	result_done(&l->s.result);
	r = arbiter_plan_effects(l->s.arbiter, &caller, &request, l->now, &planned, &effects,
				 &l->s.result);
	lease = decide(l, &caller, &request);
	reserved = lease != NULL;
	seen.plans += reserved;
	seen.vain_verdicts += (r >= 0) != reserved;
	if (!reserved)
		return (r >= 0) != reserved;
	rest(l);
	for (size_t i = 0; i < n; i++)
		differ |= compare(l->s.arbiter, &effects, &before[i]);
	seen.vain += differ;
	return differ;
}

/* Something else happens. */
static void disturb(struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	struct lease *lease;
	struct caller caller;

	if (arbiter->n_leases == 0)
		return;
	lease = arbiter->leases[below((unsigned)arbiter->n_leases)];
	caller = caller_of(lease->owner);
	result_done(&l->s.result);
	if (arbiter->n_leases >= LEASES * arbiter->n_gpus || below(3) == 0)
		release(arbiter, lease->id);
	else if (lease->class == CLASS_REALTIME)
		set_active(arbiter, &caller, lease->id, lease->state == STATE_INACTIVE,
			   &l->s.result);
	rest(l);
}

static unsigned play(unsigned seed)
{
	unsigned differences = 0;
	struct lending l;

	seed_rand(seed);
	l = begin(1 + below(4));
	for (unsigned i = 0; i < REQUESTS; i++) {
		disturb(&l);
		if (ask(&l) && differences++ == 0)
			printf("EFFECTS_SEED=%u: request %u differs\n", seed, i);
	}
	lending_done(&l);
	return differences;
}

TEST(a_plan_announces_what_the_request_does_to_others)
{
	const char *runs = getenv("EFFECTS_RUNS");
	unsigned n = runs ? (unsigned)strtoul(runs, NULL, 10) : check_rounds(10, 500);
	unsigned seed = SEED_OF_RUN("EFFECTS_SEED"), differences = 0;

	for (unsigned i = 0; i < n; i++)
		differences += play(i == 0 ? seed : seed_nth(seed, i));
	fflush(stdout);
	printf("%u requests: shrunk %u (silent %u, wrong %u, vain %u), moved %u (silent %u, vain %u), "
	       "paused %u (silent %u, vain %u), revoked %u (silent %u, vain %u); %u other verdicts; "
	       "%u with a difference\n",
	       seen.plans, seen.shrinks, seen.silent_shrinks, seen.wrong_shrinks, seen.vain_shrinks,
	       seen.moves, seen.silent_moves, seen.vain_moves, seen.pauses, seen.silent_pauses,
	       seen.vain_pauses, seen.revokes, seen.silent_revokes, seen.vain_revokes,
	       seen.vain_verdicts, seen.vain);
	fflush(stdout);
	CHECK(seen.shrinks > 0);
	/* In about one request of 25,000 the moves are other ones than on the copy. */
	CHECK(differences * 100 <= seen.plans);
}

/* Leases are paused on another GPU. */
TEST(a_plan_announces_it_on_machines_where_it_once_did_not)
{
	static const unsigned seeds[] = { 3995355181, 3377517819, 3832273625 };

	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		CHECK(play(seeds[i]) == 0);
}
