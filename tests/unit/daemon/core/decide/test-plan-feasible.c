/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Exactness of arbiter_plan(): on small GPUs, in every state of their engines and beside
 * neighbours of every kind, a request is refused exactly when no placement keeps the invariants.
 * The test states the invariants independently. The CUs of an engine are equivalent, so a
 * placement is a number of CUs for each (XCC, engine) pair.
 */

#include "check.h"
#include "seed.h"
#include "util/base.h"
#include "ledger-rig.h"

#define PAIRS 6U
#define SLOTS 6U /* of queues, processes, GiB */

/* Which kind of lease holds the CUs of an engine that are not free. */
enum neighbour { GUARANTEED, SHARED, REALTIME, TOLERANT, ALONE, NEIGHBOURS };

struct state {
	struct geometry geometry;
	struct cuset cus;                 /* that a mask can reach */
	unsigned all[PAIRS], free[PAIRS]; /* units of them, XCC after XCC */
	enum neighbour of[CUSET_ENGINES]; /* by engine */
	bool used[CUSET_ENGINES];
	unsigned left; /* queues, processes, GiB */
	unsigned seed;
};

struct asked {
	enum lease_class class;
	enum isolation isolation;
	bool alone;
	unsigned engines, aim, floor, ceiling, limit;
	bool exact, any_shape;
	unsigned queues, processes, vram;
};

static unsigned below(struct state *s, unsigned n)
{
	return (unsigned)rand_r(&s->seed) % n;
}

static unsigned pairs(const struct state *s)
{
	return s->geometry.xccs * s->geometry.engines;
}

/* ---- what the invariants allow ----------------------------------------------------- */

/* May a lease be granted CUs in the engine of this neighbour? Realtime isolation and `alone`. */
static bool may_enter(const struct asked *a, enum neighbour neighbour)
{
	if (neighbour == ALONE || a->alone)
		return false;
	if (a->class != CLASS_REALTIME || (neighbour != REALTIME && neighbour != TOLERANT))
		return true;
	return neighbour == TOLERANT && a->isolation == ISOLATION_CU;
}

/* Units of the pair that may be granted: free ones, and those that may be shared. */
static unsigned open_units(const struct state *s, const struct asked *a, unsigned pair)
{
	unsigned e = pair % s->geometry.engines;

	if (s->used[e] && !may_enter(a, s->of[e]))
		return 0;
	if (s->used[e] && s->of[e] == SHARED && a->isolation == ISOLATION_SHARED)
		return s->all[pair];
	return s->free[pair];
}

/* Is this placement a valid mask in the right engines? Returns its CUs, or 0. */
static unsigned valid_cus(const struct state *s, const struct asked *a, const unsigned *taken)
{
	const struct geometry *g = &s->geometry;
	unsigned first = 0, height = 0, n = 0;
	bool level = true, same = true, as_many = true, whole = true;

	for (unsigned x = 0; x < g->xccs; x++) {
		unsigned mine = 0;

		for (unsigned e = 0; e < g->engines; e++) {
			unsigned units = taken[x * g->engines + e];

			whole &= units == s->all[x * g->engines + e];
			if (units == 0)
				continue;
			level &= height == 0 || units == height;
			height = units;
			mine |= 1U << e;
			n += units;
		}
		if (!mine)
			return 0; /* an XCC without a CU */
		first = x == 0 ? mine : first;
		same &= mine == first;
		as_many &= __builtin_popcount(mine) == __builtin_popcount(first);
	}
	if (!whole && !a->any_shape &&
	    !(level && as_many && (same || !(a->engines || a->class == CLASS_REALTIME))))
		return 0;
	if (a->engines > 0 && whole && !same) { /* counted over the XCCs together */
		uint32_t any = 0;

		for (unsigned i = 0; i < pairs(s); i++)
			any |= taken[i] ? 1U << i % g->engines : 0;
		same = true;
		first = any;
	}
	if (a->engines > 0 && !(same && (unsigned)__builtin_popcount(first) == a->engines))
		return 0;
	return n * geometry_step(g);
}

/* The numbers of CUs for which there is a placement, as bits. */
static uint32_t counts(const struct state *s, const struct asked *a, bool empty)
{
	unsigned most[PAIRS], taken[PAIRS] = { 0 }, i;
	uint32_t found = 0;

	for (i = 0; i < pairs(s); i++)
		most[i] = empty ? s->all[i] : open_units(s, a, i);
	for (;;) {
		for (i = 0; i < pairs(s) && taken[i] == most[i]; i++)
			taken[i] = 0;
		if (i == pairs(s))
			return found;
		taken[i]++;
		found |= UINT32_C(1) << valid_cus(s, a, taken);
	}
}

static unsigned within(uint32_t found, unsigned low, unsigned high, bool most)
{
	unsigned best = 0;

	for (unsigned n = max_u(low, 1); n <= min_u(high, 31); n++)
		if (found >> n & 1 && (most || !best))
			best = n;
	return best;
}

/* Which of these numbers has to be granted; 0: the request is refused. */
static unsigned expected(uint32_t found, const struct asked *a)
{
	unsigned n = within(found, a->exact ? a->aim : a->floor, min_u(a->ceiling, a->limit), true);

	return n || a->exact ? n : within(found, a->aim + 1, a->limit, false);
}

/* ---- a ledger in that state -------------------------------------------------------- */

static struct gpu_info info_of(const struct geometry *geometry)
{
	struct gpu_info info = radeon_vii("gpu");

	info.geometry = *geometry;
	info.queue_slots = info.process_slots = SLOTS;
	info.vram_bytes = SLOTS;
	return info;
}

/* The lowest units of a word. */
static uint32_t lowest(const struct state *s, uint32_t word, unsigned n)
{
	uint32_t unit = (UINT32_C(1) << geometry_step(&s->geometry)) - 1, taken = 0;

	for (; n > 0; n--)
		taken |= unit << __builtin_ctz(word & ~taken);
	return taken;
}

static void add_neighbour(struct arbiter *arbiter, const struct state *s, unsigned e)
{
	enum neighbour kind = s->of[e];
	struct lease *lease = NULL;
	struct partition *p;

	CHECK(lease_new(&lease) == 0 && lease_make_partitions(lease, 1) == 0);
	lease->id = arbiter->next_id;
	lease->state = STATE_GRANTED;
	lease->class = kind >= REALTIME ? CLASS_REALTIME
		       : kind == SHARED ? CLASS_BESTEFFORT
					: CLASS_GUARANTEED;
	p = &lease->partitions[0];
	for (unsigned x = 0; x < s->geometry.xccs; x++) {
		unsigned i = x * s->geometry.engines + e;

		p->cus.pair[cuset_pair(x, e)] = lowest(s, s->cus.pair[cuset_pair(x, e)],
						       s->all[i] - s->free[i]);
	}
	p->occupied = p->cus;
	p->count = cuset_count(&p->cus);
	p->isolation = kind == SHARED                      ? ISOLATION_SHARED
		       : kind == REALTIME || kind == ALONE ? ISOLATION_SHADER_ENGINE
							   : ISOLATION_CU;
	p->alone = kind == ALONE;
	arbiter_commit(arbiter, lease);
}

static struct arbiter *ledger_of(const struct state *s)
{
	struct gpu_info info = info_of(&s->geometry);
	struct arbiter *arbiter = arbiter_of(&info, 1);

	add_tenant(arbiter, "rt", 1, CLASS_REALTIME);
	add_tenant(arbiter, "alone", 2, CLASS_REALTIME)->alone = true;
	for (unsigned e = 0; e < s->geometry.engines; e++)
		if (s->used[e])
			add_neighbour(arbiter, s, e);
	arbiter->gpus[0].charged.queues = arbiter->gpus[0].charged.processes = SLOTS - s->left;
	arbiter->gpus[0].charged.vram = SLOTS - s->left;
	return arbiter;
}

/* ---- requests ---------------------------------------------------------------------- */

static struct asked random_request(struct state *s, struct request *ret)
{
	static const enum isolation isolations[] = { ISOLATION_CU, ISOLATION_SHARED,
						     ISOLATION_SHADER_ENGINE };
	unsigned cus = cuset_count(&s->cus);
	struct asked a = { .class = (enum lease_class)below(s, 3),
			   .aim = 1 + below(s, cus + 1),
			   .exact = below(s, 4) == 0,
			   .any_shape = below(s, 4) == 0,
			   .queues = 1 + below(s, SLOTS + 1),
			   .vram = below(s, SLOTS + 2) };
	struct want *want;

	*ret = request_for(a.aim);
	want = &ret->wants[0];
	a.isolation = isolations[a.class == CLASS_GUARANTEED ? 0
				 : a.class == CLASS_REALTIME ? 2 * below(s, 2)
							     : below(s, 2)];
	a.alone = a.class == CLASS_REALTIME && below(s, 4) == 0;
	a.engines = below(s, 3) ? 0 : 1 + below(s, s->geometry.engines);
	a.floor = below(s, 2) ? a.aim - a.aim / 10 : 1 + below(s, a.aim);
	want->cus_min = a.floor;
	a.ceiling = a.aim;
	a.limit = UINT32_MAX;
	if (a.class == CLASS_BESTEFFORT && !a.exact && below(s, 2) == 0)
		want->cus_max = a.ceiling = a.limit = a.aim + below(s, 4);
	a.processes = 1 + below(s, a.queues);
	if (below(s, 2))
		a.queues = a.processes = 1, a.vram = 0;
	ret->class = (int)a.class;
	want->shader_engines = a.engines;
	want->exact = a.exact;
	want->any_shape = a.any_shape;
	want->isolation = a.isolation;
	want->queues = a.queues;
	want->processes = a.processes;
	want->vram = a.vram;
	return a;
}

static enum result_kind expected_kind(const struct state *s, const struct asked *a,
				      unsigned granted)
{
	unsigned most = max_u(max_u(a->queues, a->processes), a->vram);

	if (most > SLOTS || expected(counts(s, a, true), a) == 0)
		return RESULT_NEVER_FITS;
	return most > s->left || granted == 0 ? RESULT_NO_CAPACITY : RESULT_OK;
}

static void check_request(struct state *s, const struct arbiter *arbiter)
{
	struct request request;
	struct asked a = random_request(s, &request);
	struct caller caller = caller_of(a.alone ? 2 : 1);
	unsigned granted = expected(counts(s, &a, false), &a);
	_cleanup_(result_done) struct result result = { 0 };
	_cleanup_(lease_freep) struct lease *lease = NULL;
	int r;

	r = arbiter_plan(arbiter, &caller, &request, &lease, &result);
	CHECK((r == 0) == (result.kind == RESULT_OK));
	CHECK(result.kind == expected_kind(s, &a, granted));
	if (r == 0)
		CHECK(lease->partitions[0].count == granted);
}

/* ---- every state ------------------------------------------------------------------- */

static void list_pairs(struct state *s)
{
	struct gpu_info info = info_of(&s->geometry);
	struct gpu gpu;

	gpu_init(&gpu, &info, 0);
	s->cus = gpu.all;
	CHECK(pairs(s) <= PAIRS);
	for (unsigned x = 0; x < s->geometry.xccs; x++)
		for (unsigned e = 0; e < s->geometry.engines; e++)
			s->all[x * s->geometry.engines + e] =
				cuset_count_word(s->cus.pair[cuset_pair(x, e)]) /
				geometry_step(&s->geometry);
}

static void find_used(struct state *s)
{
	memset(s->used, 0, sizeof(s->used));
	for (unsigned i = 0; i < pairs(s); i++)
		s->used[i % s->geometry.engines] |= s->free[i] < s->all[i];
}

/* The next neighbours, then the next free profile; false after the last. */
static bool next_state(struct state *s)
{
	for (unsigned e = 0; e < s->geometry.engines; e++) {
		if (!s->used[e])
			continue;
		s->of[e] = (enum neighbour)((s->of[e] + 1) % NEIGHBOURS);
		if (s->of[e] != GUARANTEED)
			return true;
	}
	for (unsigned i = 0; i < pairs(s); i++) {
		s->free[i] = s->free[i] == s->all[i] ? 0 : s->free[i] + 1;
		if (s->free[i] > 0) {
			find_used(s);
			return true;
		}
	}
	return false;
}

static size_t check_states(const struct geometry *geometry, unsigned requests, unsigned *seed)
{
	struct state s = { .geometry = *geometry, .seed = *seed };
	size_t n = 0;

	list_pairs(&s);
	find_used(&s);
	do {
		struct arbiter *arbiter;

		if (below(&s, check_one_in(1, 1)) > 0)
			continue;
		s.left = below(&s, 3) ? SLOTS : below(&s, SLOTS + 1);
		arbiter = ledger_of(&s);
		for (unsigned i = 0; i < requests; i++)
			check_request(&s, arbiter);
		arbiter_free(arbiter);
		n++;
	} while (next_state(&s));
	*seed = s.seed;
	return n;
}

TEST(request_is_refused_exactly_when_no_placement_keeps_the_invariants)
{
	static const struct geometry shapes[] = {
		{ 1, 3, 1, 4, false, { { { 4 }, { 4 }, { 4 } } } },
		{ 1, 3, 1, 4, false, { { { 4 }, { 3 }, { 0 } } } },
		{ 1, 3, 2, 2, true, { { { 2, 2 }, { 2, 2 }, { 2, 2 } } } },
		{ 1, 2, 2, 4, true, { { { 4, 4 }, { 4, 2 } } } },
		{ 1, 1, 1, 4, false, { { { 4 } } } },
		{ 2, 2, 1, 2, false, { { { 2 }, { 2 } }, { { 2 }, { 2 } } } },
		{ 2, 2, 1, 4, false, { { { 4 }, { 1 } }, { { 2 }, { 2 } } } },
		{ 2, 3, 1, 2, false, { { { 1 }, { 1 }, { 0 } }, { { 0 }, { 2 }, { 1 } } } },
	};
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), requests = check_size(1, 80);
	size_t states = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		states += check_states(&shapes[i], requests, &seed);
	printf("%zu states, %u requests in each\n", states, requests);
}
