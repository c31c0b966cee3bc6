/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The policies. Rivals choose as those who hand out masks do: by bits in the kernel's order. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/placement.h"
#include "core/decide/admit.h"
#include "core/mask/place.h"
#include "ledger-rig.h"

#define HOUR_USEC 3600e6

/* ---- what they share -------------------------------------------------------------------- */

/* CUs in each pair, and what they do: E; nothing without a CU on some XCC. */
struct tally {
	unsigned pair[CUSET_PAIRS];
};

static unsigned tally_useful(const struct machine *m, const struct tally *tally)
{
	unsigned used = 0, least = UINT32_MAX;

	for (unsigned x = 0; x < m->info.geometry.xccs; x++) {
		unsigned before = used;

		for (unsigned e = 0; e < m->info.geometry.engines; e++) {
			unsigned n = tally->pair[cuset_pair(x, e)];

			used += n > 0;
			least = n > 0 ? min_u(least, n) : least;
		}
		if (used == before)
			return 0;
	}
	return used * least;
}

static unsigned useful(const struct machine *m, const struct cuset *set)
{
	struct tally tally = { 0 };

	for (unsigned pair = 0; pair < CUSET_PAIRS; pair++)
		tally.pair[pair] = cuset_count_word(set->pair[pair]);
	return tally_useful(m, &tally);
}

/* What is free, less the engines that other realtime leases close. */
static void available(const struct machine *m, bool realtime, struct cuset *ret)
{
	*ret = m->all;
	cuset_remove(ret, &m->taken);
	for (unsigned pair = 0; realtime && pair < CUSET_PAIRS; pair++)
		if (m->engines >> pair % CUSET_ENGINES & 1)
			ret->pair[pair] = 0;
}

static bool is_free(const struct machine *m, const struct cuset *free, unsigned bit)
{
	return free->pair[m->codec.at[bit].pair] >> m->codec.at[bit].cu & 1;
}

static void set_bit(const struct machine *m, unsigned bit, struct cuset *set)
{
	set->pair[m->codec.at[bit].pair] |= UINT32_C(1) << m->codec.at[bit].cu;
}

static bool give(const struct machine *m, const struct cuset *set, struct grant *ret)
{
	ret->cus = *set;
	ret->granted = cuset_count(set);
	ret->effective = useful(m, set);
	return ret->effective > 0;
}

/* ---- gpuarb, and gpuarb told to use every engine ---------------------------------------- */

/* The holders have changed their masks. */
static void acknowledge(struct machine *m)
{
	for (size_t i = 0; i < m->arbiter->n_leases; i++) {
		const struct lease *lease = m->arbiter->leases[i];

		if (arbiter_acknowledge(m->arbiter, lease->id, lease->generation) < 0)
			abort();
	}
	arbiter_lend(m->arbiter, m->now_usec);
}

static bool move_for(struct machine *m, const struct caller *caller, const struct request *request)
{
	struct move_set set;

	if (arbiter_plan_moves(m->arbiter, caller, request, m->now_usec, MOVE_STEPS, &set) <= 0)
		return false;
	for (size_t i = 0; i < set.n_first; i++)
		arbiter_commit(m->arbiter, TAKE_PTR(set.next[i]));
	m->moves += (unsigned)set.n_first;
	move_set_done(&set);
	acknowledge(m);
	return true;
}

static bool ask(struct machine *m, const struct request *request, struct grant *ret)
{
	const struct caller caller = caller_of(1);
	struct result result = { 0 };
	struct lease *lease = NULL;

	while (arbiter_plan(m->arbiter, &caller, request, &lease, &result) < 0) {
		result_done(&result);
		if (!move_for(m, &caller, request))
			return false;
	}
	lease = arbiter_commit(m->arbiter, lease);
	arbiter_add_holder(m->arbiter, lease->id);
	acknowledge(m);
	if (lease->state != STATE_GRANTED)
		abort();
	ret->id = lease->id;
	return give(m, &lease->partitions[0].cus, ret);
}

static struct request request_of(const struct job *job, bool adaptable)
{
	struct request request = request_for(job->cus);

	request.class = job->realtime ? CLASS_REALTIME : CLASS_GUARANTEED;
	request.wants[0].queues = 1;
	if (adaptable && !job->realtime) {
		request.class = CLASS_BESTEFFORT;
		request.adaptable = true;
	}
	return request;
}

static bool take_gpuarb(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, false);

	return ask(m, &request, ret);
}

static bool take_half_adaptable(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, job->second);

	return ask(m, &request, ret);
}

static bool take_adaptable(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, true);

	return ask(m, &request, ret);
}

static bool take_spread(struct machine *m, const struct job *job, struct grant *ret)
{
	struct request request = request_of(job, false);

	request.wants[0].shader_engines = m->info.geometry.engines;
	return ask(m, &request, ret);
}

static unsigned largest_rectangle(const struct machine *m, unsigned engines)
{
	struct place_request request = { .all = &m->all,
					 .aim = m->cus,
					 .floor = 1,
					 .ceiling = m->cus,
					 .limit = m->cus,
					 .engines = engines };
	struct place_miss miss;
	struct placement p;

	available(m, false, &request.avail);
	request.preferred = request.avail;
	return place(&m->info.geometry, &request, &p, &miss) == 0 ? p.effective : 0;
}

static unsigned largest_gpuarb(const struct machine *m)
{
	return largest_rectangle(m, 0);
}

static unsigned largest_spread(const struct machine *m)
{
	return largest_rectangle(m, m->info.geometry.engines);
}

/* ---- lowest free bits ------------------------------------------------------------------- */

static bool take_lowest(struct machine *m, const struct job *job, struct grant *ret)
{
	struct cuset free, set = { 0 };
	unsigned n = 0;

	available(m, job->realtime, &free);
	for (unsigned bit = 0; bit < m->codec.n_bits && n < job->cus; bit++) {
		if (!is_free(m, &free, bit))
			continue;
		set_bit(m, bit, &set);
		n++;
	}
	return n == job->cus && give(m, &set, ret);
}

/* The best of what it gives bit after bit; contiguous: anew after each bit that is taken. */
static unsigned largest_by_bits(const struct machine *m, bool contiguous)
{
	struct tally tally = { 0 };
	struct cuset free;
	unsigned most = 0;

	available(m, false, &free);
	for (unsigned bit = 0; bit < m->codec.n_bits; bit++) {
		if (is_free(m, &free, bit)) {
			tally.pair[m->codec.at[bit].pair]++;
			most = max_u(most, tally_useful(m, &tally));
		} else if (contiguous) {
			memset(&tally, 0, sizeof(tally));
		}
	}
	return most;
}

static unsigned largest_lowest(const struct machine *m)
{
	return largest_by_bits(m, false);
}

/* ---- a contiguous range of a whole number of per cent ------------------------------------ */

static bool take_range(struct machine *m, const struct job *job, struct grant *ret)
{
	unsigned percent = max_u(job->cus * 100 / m->cus, 1), length = 0;
	unsigned step = m->codec.step, n = m->cus * percent / 100 / step * step;
	struct cuset free;

	n = max_u(n, step);
	available(m, job->realtime, &free);
	for (unsigned bit = 0; bit < m->codec.n_bits; bit++) {
		struct cuset set = { 0 };

		length = is_free(m, &free, bit) ? length + 1 : 0;
		if (length < n || (bit + 1 - n) % step != 0)
			continue;
		for (unsigned i = bit + 1 - n; i <= bit; i++)
			set_bit(m, i, &set);
		return give(m, &set, ret);
	}
	return false;
}

static unsigned largest_range(const struct machine *m)
{
	return largest_by_bits(m, true);
}

/* ---- fixed eighths ----------------------------------------------------------------------- */

/* Cut engine after engine, each on all XCCs, so that an eighth is as level as it can be. */
static void cut_eighths(struct machine *m)
{
	unsigned step = m->codec.step, units = m->cus / step, n = 0;

	for (unsigned e = 0; e < m->info.geometry.engines; e++)
		for (unsigned bit = 0; bit < m->codec.n_bits; bit += step) {
			if (m->codec.at[bit].pair % CUSET_ENGINES != e)
				continue;
			for (unsigned i = bit; i < bit + step; i++)
				set_bit(m, i, &m->part[((n + 1) * EIGHTHS - 1) / units]);
			n++;
		}
}

static unsigned free_eighths(const struct machine *m, bool realtime)
{
	struct cuset free;
	unsigned parts = 0;

	available(m, realtime, &free);
	for (unsigned i = 0; i < EIGHTHS; i++)
		if (cuset_within(&m->part[i], &free))
			parts |= 1U << i;
	return parts;
}

static void join_eighths(const struct machine *m, unsigned parts, struct cuset *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < EIGHTHS; i++)
		if (parts >> i & 1)
			cuset_add(ret, &m->part[i]);
}

/* The fewest free eighths that have as many CUs, and of those the ones that do most. */
static bool take_eighths(struct machine *m, const struct job *job, struct grant *ret)
{
	unsigned free = free_eighths(m, job->realtime), best = 0, fewest = EIGHTHS + 1;

	for (unsigned parts = free; parts; parts = (parts - 1) & free) {
		unsigned n = (unsigned)__builtin_popcount(parts);
		struct cuset set;

		if (n > fewest || n > job->cus * EIGHTHS / m->cus + 2)
			continue;
		join_eighths(m, parts, &set);
		if (cuset_count(&set) < job->cus ||
		    (n == fewest && min_u(useful(m, &set), job->cus) <= best))
			continue;
		fewest = n;
		best = min_u(useful(m, &set), job->cus);
		give(m, &set, ret);
	}
	return best > 0;
}

static unsigned largest_eighths(const struct machine *m)
{
	unsigned free = free_eighths(m, false), most = 0;

	for (unsigned parts = free; parts; parts = (parts - 1) & free) {
		struct cuset set;

		join_eighths(m, parts, &set);
		most = max_u(most, useful(m, &set));
	}
	return most;
}

/* ---- fluid repacking --------------------------------------------------------------------- */

/* Everything moves about freely and has no shape; realtime leases still take whole engines
 * from one another, since that is what they were promised. */
static bool take_fluid(struct machine *m, const struct job *job, struct grant *ret)
{
	const struct geometry *g = &m->info.geometry;
	unsigned engine = 0;

	for (unsigned e = 0; e < g->engines; e++) {
		unsigned n = 0;

		for (unsigned x = 0; x < g->xccs; x++)
			n += geometry_engine_cus(g, x, e);
		engine = max_u(engine, n);
	}
	ret->whole_engines = job->realtime ? (job->cus + engine - 1) / engine : 0;
	if (m->used + job->cus > m->cus || m->used_engines + ret->whole_engines > g->engines)
		return false;
	ret->granted = ret->effective = job->cus;
	return true;
}

static unsigned largest_fluid(const struct machine *m)
{
	return m->cus - m->used;
}

const struct policy policies[POLICIES] = {
	{ "gpuarb", true, take_gpuarb, largest_gpuarb },
	{ "half", true, take_half_adaptable, largest_gpuarb },
	{ "adaptable", true, take_adaptable, largest_gpuarb },
	{ "lowest", false, take_lowest, largest_lowest },
	{ "range", false, take_range, largest_range },
	{ "spread", true, take_spread, largest_spread },
	{ "eighths", false, take_eighths, largest_eighths },
	{ "fluid", false, take_fluid, largest_fluid },
};

/* ---- a machine ---------------------------------------------------------------------------- */

struct machine *machine_new(const struct gpu_info *info, const struct policy *policy)
{
	struct machine *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->info = *info;
	/* It is about CUs: nothing else shall be short. */
	m->info.queue_slots = m->info.process_slots = 4096;
	m->info.reserve_queues = 0;
	codec_init(&m->codec, &info->geometry);
	geometry_all(&info->geometry, &m->all);
	m->cus = cuset_count(&m->all);
	cut_eighths(m);
	if (policy->arbiter) {
		m->arbiter = arbiter_of(&m->info, 1);
		add_tenant(m->arbiter, "bench", 1, CLASS_REALTIME);
	}
	return m;
}

struct machine *machine_free(struct machine *m)
{
	if (!m)
		return NULL;
	arbiter_free(m->arbiter);
	free(m);
	return NULL;
}

/* What the leases of the arbiter have, after any of them may have moved. */
static void survey(struct machine *m)
{
	m->taken = (struct cuset){ 0 };
	m->engines = 0;
	for (size_t i = 0; i < m->arbiter->n_leases; i++) {
		const struct lease *lease = m->arbiter->leases[i];
		const struct cuset *cus = &lease->partitions[0].cus;
		uint32_t engines = lease->class == CLASS_REALTIME ? cuset_engines(cus) : 0;

		if (cuset_overlap(&m->taken, cus) || (m->engines & engines))
			abort(); /* a promise broken: nothing that follows would mean anything */
		cuset_add(&m->taken, cus);
		m->engines |= engines;
	}
}

void machine_refresh(const struct machine *m, struct grant *grant)
{
	const struct lease *lease = ledger_find(m->arbiter, grant->id);

	give(m, &lease->partitions[0].cus, grant);
}

double machine_fairness(const struct machine *m)
{
	unsigned n = 0;

	for (size_t i = 0; m->arbiter && i < m->arbiter->n_leases; i++)
		n += m->arbiter->leases[i]->adaptable;
	return n > 1 ? lend_fairness(m->arbiter, 0) : NAN;
}

bool machine_take(struct machine *m, const struct policy *policy, const struct job *job,
		  struct grant *ret)
{
	memset(ret, 0, sizeof(*ret));
	m->now_usec = (uint64_t)(job->at * HOUR_USEC);
	if (!policy->take(m, job, ret))
		return false;
	if (policy->arbiter) {
		survey(m);
		return true;
	}
	if (job->realtime)
		ret->engines = cuset_engines(&ret->cus);
	if (cuset_overlap(&m->taken, &ret->cus) || (m->engines & ret->engines))
		abort();
	cuset_add(&m->taken, &ret->cus);
	m->engines |= ret->engines;
	m->used += ret->granted;
	m->used_engines += ret->whole_engines;
	return true;
}

void machine_drop(struct machine *m, const struct policy *policy, const struct grant *grant)
{
	if (policy->arbiter) {
		release(m->arbiter, grant->id);
		survey(m);
		return;
	}
	cuset_remove(&m->taken, &grant->cus);
	m->engines &= ~grant->engines;
	m->used -= grant->granted;
	m->used_engines -= grant->whole_engines;
}
