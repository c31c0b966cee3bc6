/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random adaptable leases, with weights, bases and bounds, beside random fixed leases, on all shipped
 * GPUs. When no lease comes or goes and all holders acknowledge, the masks reach a state that does
 * not change any more, and that is almost always as fair as rectangles and bases allow.
 *
 *	GPUARB_ROUNDS=N          N runs on each profile
 *	GROWTH_SEED=N            the same runs again
 */

#include "best-layout.h"
#include "check.h"
#include "lend-rig.h"
#include "random-geometry.h"
#include "seed.h"
#include "shipped-gpus.h"

#define TENANTS 3
#define LEASES 16U
#define ROUNDS 60   /* after which every state must be final */
#define NODES 20000 /* of one search */

/* ---- leases come and go ------------------------------------------------------------------- */

static struct lending begin(const struct gpu_info *gpu)
{
	static const char *const names[TENANTS] = { "a", "b", "c" };
	struct lending l = { .now = 100 * SECOND_USEC };
	struct gpu_info info = *gpu;
	struct settings *settings;

	info.queue_slots = info.process_slots = 1024;
	snprintf(info.name, sizeof(info.name), "0000:03:00.0");
	l.s.arbiter = arbiter_of(&info, 1);
	settings = l.s.arbiter->settings;
	for (uid_t i = 0; i < TENANTS; i++)
		add_tenant(l.s.arbiter, names[i], i + 1, i == 0 ? CLASS_REALTIME : CLASS_BESTEFFORT)
			->weight = 1U + below(below(2) ? 1000 : 10);
	if (below(4) == 0)
		settings->tenants[below(TENANTS)].max_cus = (struct limit){ LIMIT_PERCENT,
									    30 + below(60) };
	settings->share_by_lease = below(2);
	if (below(2)) {
		settings->grow_delay_usec = 100000;
		settings->activate_min_interval_usec = 100000;
	}
	return l;
}

static void arrive(struct lending *l)
{
	struct request request = request_for(1 + below(below(2) ? 8 : 30));
	struct want *want = &request.wants[0];

	request.adaptable = below(5) > 0;
	if (request.adaptable) {
		request.class = CLASS_BESTEFFORT;
		if (below(4) > 0)
			want->cus_min = want->cus;
		want->cus_max = below(3) > 0 ? 400 : want->cus + below(100);
	}
	reserve(l->s.arbiter, 1 + below(TENANTS), &request, &l->s.result);
	settle(l);
}

static void disturb(struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;

	switch (below(6)) {
	case 0:
		if (arbiter->n_leases > 0)
			release(arbiter, arbiter->leases[below((unsigned)arbiter->n_leases)]->id);
		settle(l);
		break;
	case 1: pass(l, below(2 * SECOND_USEC)); break;
	case 2: follow_each(l); break;
	default:
		if (arbiter->n_leases < LEASES)
			arrive(l);
	}
}

/* ---- what is final ------------------------------------------------------------------------ */

static void print(const struct lending *l)
{
	for (size_t i = 0; i < l->s.arbiter->n_leases; i++) {
		const struct lease *lease = l->s.arbiter->leases[i];
		const struct partition *p = &lease->partitions[0];

		printf("  lease %llu of %s%s: %u CUs, base %u, at most %u, generation %llu\n",
		       (unsigned long long)lease->id, lease->tenant,
		       lease->adaptable ? "" : ", fixed", p->count,
		       p->adaptation ? cuset_count(&p->adaptation->base) : p->count, p->asked,
		       (unsigned long long)lease->generation);
	}
}

/* Time passes until nothing is due any more. Returns how often something was. */
static int balance(struct lending *l)
{
	for (int round = 0;; round++) {
		uint64_t next;

		follow_each(l);
		next = arbiter_next_deadline(l->s.arbiter);
		if (next == UINT64_MAX)
			return round;
		if (round > ROUNDS)
			print(l);
		CHECK(round <= ROUNDS + 4);
		pass(l, next > l->now ? next - l->now : 0);
	}
}

/* ---- what is fair ------------------------------------------------------------------------- */

/* An adaptable lease. */
struct party {
	const struct partition *p;
	double weight, base, most, share;
	unsigned user;
};

/* A search for masks in which every party has three quarters of its share. */
struct search {
	const struct geometry *geometry;
	struct party party[LEASES];
	size_t n;
	unsigned room[CUSET_XCCS][CUSET_ENGINES]; /* units that no fixed lease has */
	unsigned step;                            /* CUs of one */
	unsigned nodes;
};

/* Weighted max-min: of users and then of their leases, or of leases. */
static void set_shares(const struct arbiter *arbiter, struct search *search, unsigned cus)
{
	struct best_lease leases[LEASES];

	for (size_t i = 0; i < search->n; i++) {
		const struct party *party = &search->party[i];

		leases[i] = (struct best_lease){
			.least = (unsigned)party->base,
			.most = (unsigned)party->most,
			.weight = party->weight,
			.account = arbiter->settings->share_by_lease ? (unsigned)i : party->user,
		};
	}
	best_fair(leases, search->n, cus);
	for (size_t i = 0; i < search->n; i++)
		search->party[i].share = leases[i].fair;
}

static void find_parties(const struct lending *l, struct search *search)
{
	const struct arbiter *arbiter = l->s.arbiter;
	const struct geometry *geometry = &arbiter->gpus[0].info.geometry;
	struct cuset pool = arbiter->gpus[0].all;

	*search = (struct search){ .geometry = geometry,
				   .step = geometry_step(geometry),
				   .nodes = NODES };
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		const struct lease *lease = arbiter->leases[i];
		const struct partition *p = &lease->partitions[0];

		if (lease->adaptable)
			search->party[search->n++] = (struct party){
				.p = p,
				.weight = tenant_named(arbiter->settings, lease->tenant)->weight,
				.base = cuset_count(&p->adaptation->base),
				.most = p->asked,
				.user = lease->owner,
			};
		else
			cuset_remove(&pool, &p->occupied);
	}
	set_shares(arbiter, search, cuset_count(&pool));
	for (unsigned x = 0; x < geometry->xccs; x++)
		for (unsigned e = 0; e < geometry->engines; e++)
			search->room[x][e] = cuset_count_word(pool.pair[cuset_pair(x, e)]) /
					     search->step;
}

/* Units in each engine of the base; its engines. */
static unsigned height_of(const struct search *search, const struct party *party)
{
	uint32_t engines = cuset_engines(&party->p->adaptation->base);

	return cuset_count_word(party->p->adaptation->base.pair[__builtin_ctz(engines)]) /
	       search->step;
}

/* Takes units of these engines on every XCC; false, and nothing, if there are too few. */
static bool take(struct search *search, uint32_t engines, unsigned units)
{
	for (unsigned x = 0; x < search->geometry->xccs; x++)
		for (unsigned e = 0; e < search->geometry->engines; e++)
			if ((engines >> e & 1) && search->room[x][e] < units)
				return false;
	for (unsigned x = 0; x < search->geometry->xccs; x++)
		for (unsigned e = 0; e < search->geometry->engines; e++)
			search->room[x][e] -= engines >> e & 1 ? units : 0;
	return true;
}

static void put_back(struct search *search, uint32_t engines, unsigned units)
{
	for (unsigned x = 0; x < search->geometry->xccs; x++)
		for (unsigned e = 0; e < search->geometry->engines; e++)
			search->room[x][e] += engines >> e & 1 ? units : 0;
}

/* Are there masks for the parties from the i-th on, around the bases that they have? */
static bool is_possible(struct search *search, size_t i)
{
	const struct geometry *g = search->geometry;
	const struct party *party = &search->party[i];
	uint32_t base, all = (UINT32_C(1) << g->engines) - 1;

	if (i == search->n)
		return true;
	base = cuset_engines(&party->p->adaptation->base);
	for (uint32_t engines = all; engines > 0; engines--) {
		unsigned width = (unsigned)__builtin_popcount(engines) * g->xccs * search->step;
		unsigned units = height_of(search, party), cus;
		bool found;

		/* The engines of a base can differ from XCC to XCC. */
		if ((base & ~engines) || (g->xccs > 1 && engines != all))
			continue;
		while (units * width < 0.75 * (party->share + 1))
			units++;
		cus = units * width;
		if (search->nodes == 0 || cus > party->most)
			continue;
		search->nodes--;
		if (!take(search, engines, units))
			continue;
		found = is_possible(search, i + 1);
		put_back(search, engines, units);
		if (found)
			return true;
	}
	return false;
}

/* A lease below three quarters of its share, unless no masks would give everyone as much. */
static const struct party *find_starved(struct search *search)
{
	for (size_t i = 0; i < search->n; i++)
		if (search->party[i].p->count * 4 + 3 < (unsigned)search->party[i].share * 3)
			return is_possible(search, 0) ? &search->party[i] : NULL;
	return NULL;
}

/* ------------------------------------------------------------------------------------------- */

struct outcome_count {
	unsigned runs, rounds, most, starved, quota;
};

static bool has_quota(const struct arbiter *arbiter)
{
	for (size_t i = 0; i < arbiter->settings->n_tenants; i++)
		if (arbiter->settings->tenants[i].max_cus.kind != LIMIT_NONE)
			return true;
	return false;
}

static void run(const struct gpu_info *gpu, unsigned seed, struct outcome_count *count)
{
	_cleanup_(lending_done) struct lending l;
	struct search search;
	const struct party *starved;
	unsigned rounds;

	seed_rand(seed);
	l = begin(gpu);
	for (unsigned i = 0, n = 1 + below(20); i < n; i++)
		disturb(&l);
	rounds = (unsigned)balance(&l);
	count->runs++;
	count->rounds += rounds;
	count->most = rounds > count->most ? rounds : count->most;
	find_parties(&l, &search);
	starved = has_quota(l.s.arbiter) ? NULL : find_starved(&search);
	if (starved) {
		count->starved++;
		printf("seed %u: %u CUs, and the share is %.1f\n", seed, starved->p->count,
		       starved->share);
		print(&l);
	}
	while (l.s.arbiter->n_leases > 0)
		release(l.s.arbiter, l.s.arbiter->leases[0]->id);
}

TEST(masks_come_to_rest_and_are_fair)
{
	struct gpu_info infos[SHIPPED_GPUS_MAX];
	char names[SHIPPED_GPUS_MAX][64];
	size_t n = load_shipped_gpus(infos, names);
	unsigned seed = SEED_OF_RUN("GROWTH_SEED"), runs = check_rounds(7, 20);
	unsigned starved = 0;

	for (size_t i = 0; i < n; i++) {
		struct outcome_count count = { 0 };

		printf("%s\n", names[i]);
		fflush(stdout);
		for (unsigned j = 0; j < runs; j++)
			run(&infos[i], seed_nth(seed, j), &count);
		printf("%u runs: %.1f rounds, %u at most\n", count.runs,
		       (double)count.rounds / count.runs, count.most);
		starved += count.starved;
	}
	printf("%u of %zu leave a lease starved that need not be\n", starved, n * runs);
	/* The daemon tries some ways to divide, and not all: it misses one in some 10,000 runs. */
	CHECK(starved <= 1 + n * runs / 100);
}

/* ---- a storm ------------------------------------------------------------------------------ */

#define CROWD 24U
#define EVENT_USEC 20000U /* 50 a second */

/* What each lease had after the last event. */
struct masks {
	uint64_t id[CROWD];
	struct cuset cus[CROWD];
	size_t n;
};

/* Has a lease CUs that it did not have before? One that begins does not count. */
static bool any_grew(const struct arbiter *arbiter, struct masks *masks)
{
	struct masks now = { .n = arbiter->n_leases };
	bool grew = false;

	for (size_t i = 0; i < now.n; i++) {
		const struct lease *lease = arbiter->leases[i];

		now.id[i] = lease->state == STATE_GRANTED ? lease->id : 0;
		now.cus[i] = lease->partitions[0].cus;
		for (size_t j = 0; j < masks->n; j++)
			grew |= now.id[i] > 0 && masks->id[j] == now.id[i] &&
				!cuset_within(&now.cus[i], &masks->cus[j]);
	}
	*masks = now;
	return grew;
}

/* Leases with any least, up to the whole GPU. The holder of the first one, which has an eighth at the most or its least,
 * never acknowledges. */
static void storm_event(struct lending *l)
{
	struct arbiter *arbiter = l->s.arbiter;
	unsigned cus = arbiter->gpus[0].cus;
	struct request request = request_for(1 + below(below(8) ? max_u(cus / CROWD, 1) : cus));

	for (size_t i = 1; i < arbiter->n_leases; i++)
		if (arbiter->leases[i]->generation > arbiter->leases[i]->acknowledged)
			follow(l, arbiter->leases[i]);
	if (arbiter->n_leases == CROWD || (arbiter->n_leases > 1 && below(2))) {
		release(arbiter, arbiter->leases[1 + below((unsigned)arbiter->n_leases - 1)]->id);
	} else {
		request.class = CLASS_BESTEFFORT;
		request.adaptable = true;
		request.wants[0].cus_min = request.wants[0].cus;
		request.wants[0].cus_max = arbiter->n_leases > 0
						   ? cus
						   : max_u(request.wants[0].cus, cus / 8);
		request.wants[0].queues = 1;
		reserve(arbiter, 1 + below(TENANTS), &request, &l->s.result);
	}
	pass(l, EVENT_USEC);
}

/* 50 leases a second come or go, of tenants with weights from 1 to 10,000. */
TEST(masks_grow_once_in_an_interval_while_leases_come_and_go)
{
	const uint64_t interval = SECOND_USEC;
	struct masks masks = { .n = 0 };
	uint64_t growths = 0;
	struct gpu_info infos[SHIPPED_GPUS_MAX];
	char names[SHIPPED_GPUS_MAX][64];
	unsigned most = 0, gpu;
	_cleanup_(lending_done) struct lending l;

	seed_rand(SEED_OF_RUN("GROWTH_SEED"));
	gpu = below((unsigned)load_shipped_gpus(infos, names));
	l = begin(&infos[gpu]);
	for (size_t i = 0; i < TENANTS; i++)
		l.s.arbiter->settings->tenants[i].weight = i == 0 ? 1 : i == 1 ? 100 : 10000;
	l.s.arbiter->settings->activate_min_interval_usec = interval;
	l.s.arbiter->settings->grow_delay_usec = interval / 10;
	for (unsigned i = 0; i < check_rounds(4, 60) * 50; i++) {
		uint64_t last = l.s.arbiter->gpus[0].lend.grown_usec;

		storm_event(&l);
		most = max_u(most, (unsigned)l.s.arbiter->n_leases);
		CHECK(!any_grew(l.s.arbiter, &masks) ||
		      l.s.arbiter->gpus[0].lend.grown_usec != last);
		if (l.s.arbiter->gpus[0].lend.grown_usec == last)
			continue;
		CHECK(growths == 0 || l.s.arbiter->gpus[0].lend.grown_usec >= last + interval);
		growths++;
	}
	printf("%s: %u leases at the most, masks grew %llu times\n", names[gpu], most,
	       (unsigned long long)growths);
	CHECK_REACHED(most > 0);
	CHECK(balance(&l) < ROUNDS);
}
