/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/decide/choice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decide/borrow.h"
#include "core/decide/exclusive.h"
#include "core/policy/request.h"

static uint64_t level(uint64_t cus, unsigned weight)
{
	return (cus << SHARE_LEVEL_BITS) / weight;
}

/* ---- what users hold ---------------------------------------------------------------------- */

static int by_account(const void *left, const void *right)
{
	const struct lease *a = ((const struct holding *)left)->lease;
	const struct lease *b = ((const struct holding *)right)->lease;

	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return strcmp(a->tenant, b->tenant);
}

static struct holding *holding_of(const struct choice *choice, const struct lease *lease)
{
	const struct holding key = { .lease = lease };

	return bsearch(&key, choice->holdings, choice->n_holdings, sizeof(key), by_account);
}

/* Sums up the masks that the leases of each user of a tenant have now. */
static int find_holdings(struct choice *choice)
{
	const struct arbiter *arbiter = choice->context->arbiter;
	struct holding *holdings = calloc(arbiter->n_leases + 1, sizeof(*holdings));
	size_t n = 0;

	if (!holdings)
		return -ENOMEM;
	for (size_t i = 0; i < arbiter->n_leases; i++) {
		holdings[i].lease = arbiter->leases[i];
		for (size_t j = 0; j < arbiter->leases[i]->n_partitions; j++)
			holdings[i].cus += arbiter->leases[i]->partitions[j].count;
	}
	holdings[arbiter->n_leases].lease = &choice->user;
	qsort(holdings, arbiter->n_leases + 1, sizeof(*holdings), by_account);
	for (size_t i = 1; i <= arbiter->n_leases; i++) {
		if (by_account(&holdings[n], &holdings[i]) == 0)
			holdings[n].cus += holdings[i].cus;
		else
			holdings[++n] = holdings[i];
	}
	choice->holdings = holdings;
	choice->n_holdings = n + 1;
	choice->richest = 0;
	for (size_t i = 0; i <= n; i++)
		if (!lease_same_account(holdings[i].lease, &choice->user))
			choice->richest = max_u64(
				choice->richest,
				level(holdings[i].cus, share_weight(arbiter, holdings[i].lease)));
	return 0;
}

/* ---- all GPUs ----------------------------------------------------------------------------- */

int choice_begin(const struct admit_context *context, uint64_t gpus, struct choice *ret)
{
	const struct tenant *tenant = context->tenant;
	size_t most = 0;

	ret->context = context;
	ret->user.owner = context->uid;
	snprintf(ret->user.tenant, sizeof(ret->user.tenant), "%s", tenant->name);
	ledger_view(context->arbiter, &ret->view);
	FOR_EACH_BIT(gpu, gpus) {
		const struct arbiter *there = ledger_on(&ret->view, (unsigned)gpu);

		most = there->n_leases > most ? there->n_leases : most;
	}
	choice_start(ret, gpus);
	ret->growers = reallocarray(NULL, most + 1, sizeof(*ret->growers));
	if (ret->growers && find_holdings(ret) == 0)
		return 0;
	free(ret->growers);
	free(ret->view.leases);
	return -ENOMEM;
}

void choice_start(struct choice *choice, uint64_t gpus)
{
	choice->gpus = gpus;
	choice->cus = 0;
	FOR_EACH_BIT(gpu, gpus)
		choice->cus = max_u(choice->cus, choice->context->arbiter->gpus[gpu].cus);
}

void choice_done(struct choice *choice)
{
	free(choice->view.leases);
	free(choice->growers);
	free(choice->holdings);
}

/* ---- one GPU ------------------------------------------------------------------------------ */

/* The more CUs up to those asked for, the better; a partition that had to be rounded up beyond
 * them is worth less than all of these. */
static unsigned worth(const struct partition *p)
{
	return p->count <= p->asked ? CODEC_BITS + p->count
				    : CODEC_BITS - min_u(p->count - p->asked, CODEC_BITS);
}

static struct grower grower_of(struct choice *choice, const struct partition *p)
{
	const struct admit_context *context = choice->context;
	const struct share none = { 0 };

	return (struct grower){
		.lease = &choice->user,
		.base = p->count,
		.cap = p->asked,
		.quota = quota_left(context->tenant, &context->arbiter->gpus[p->gpu],
				    context->shares ? &context->shares[p->gpu] : &none),
		.weight = tenant_weight(context->tenant),
	};
}

static bool has_enough(unsigned cus, unsigned asked)
{
	return cus + asked / 8 >= asked;
}

/* Does the want ask for a part of a GPU? That is more CUs on a larger one. */
static bool asks_for_share(const struct want *want)
{
	return want->cus_percent > 0 || want->cus_max_percent > 0;
}

/* For how much the CUs count that the want has on a GPU. A share is one of the largest GPU. Less than that counts as
 * the part of that GPU which it is: 15 instead of 18 CUs of 72 are as 60 instead of 72. */
static unsigned counts_for(const struct choice *choice, const struct want *want, unsigned cus,
			   bool *ret_enough)
{
	struct want largest;
	unsigned asked;

	want_resolve_percent(want, choice->cus, &largest);
	asked = max_u(largest.cus, largest.cus_max);
	*ret_enough = has_enough(cus, asked);
	return asks_for_share(want) && !*ret_enough ? cus * choice->cus / asked : cus;
}

static uint64_t level_of(const struct grower *grower)
{
	return has_enough(grower->share, grower->cap) ? UINT64_MAX
						      : level(grower->share, grower->weight);
}

/* What the users have left on all GPUs who lose CUs on this one. */
static void find_lost(const struct choice *choice, size_t n, bool exclusive)
{
	holding_of(choice, &choice->user)->lost = 0;
	for (size_t i = 0; i < n; i++)
		holding_of(choice, choice->growers[i].lease)->lost = 0;
	for (size_t i = 0; i < n; i++) {
		const struct grower *grower = &choice->growers[i];
		unsigned keeps = exclusive ? 0 : min_u(grower->share, grower->p->count);

		holding_of(choice, grower->lease)->lost += grower->p->count - keeps;
	}
}

/* What users have on all GPUs then: the one of the request, with the CUs that it gains, unless it has about what it
 * asked for; and others who lose some. That a user has more than each other one does not count. */
static void add_users(const struct choice *choice, size_t n, bool exclusive, unsigned counts,
		      struct prospect *prospect)
{
	unsigned weight = tenant_weight(choice->context->tenant);
	const struct holding *own = holding_of(choice, &choice->user);
	bool runs = prospect->level > 0;
	uint64_t mine, theirs;

	find_lost(choice, n, exclusive);
	mine = level(own->cus - own->lost + (runs ? prospect->cus : 0), weight);
	prospect->users = choice->richest;
	if (prospect->level < UINT64_MAX)
		prospect->users = min_u64(level(own->cus - own->lost + (runs ? counts : 0), weight),
					  choice->richest);
	for (size_t i = 0; i < n; i++) {
		const struct grower *grower = &choice->growers[i];
		const struct holding *holding = holding_of(choice, grower->lease);

		theirs = level(holding->cus - holding->lost, grower->weight);
		if (holding == own || holding->lost == 0 || level_of(grower) == UINT64_MAX)
			continue;
		prospect->robs |= theirs < mine - mine / 8;
		prospect->users = min_u64(prospect->users, theirs);
	}
}

/* How far the adaptable leases come down for the request, which needs these CUs, or shares the others. */
static void add_neighbours(const struct choice *choice, size_t n, const struct cuset *needed,
			   bool exclusive, struct prospect *prospect)
{
	prospect->level = exclusive && n > 0 ? 0 : prospect->level;
	for (size_t i = 0; i < n; i++) {
		const struct grower *grower = &choice->growers[i];
		bool changes = exclusive || grower->share < grower->p->count ||
			       cuset_overlap(needed, &grower->p->occupied);

		prospect->changes += changes;
		prospect->others += changes && grower->lease->owner != choice->user.owner;
		prospect->level = min_u64(prospect->level, level_of(grower));
	}
}

int choice_add(struct choice *choice, const struct want *want, const struct partition *p)
{
	struct prospect *ret = &choice->prospects[p->gpu];
	const struct arbiter *there = ledger_on(&choice->view, p->gpu);
	const struct settings *settings = there->settings;
	bool adaptable = choice->context->adaptable, enough = true;
	unsigned counts = p->count;
	struct cuset claims, pool, needed = { 0 };
	struct grower *self;
	size_t n = share_find(there, p->gpu, NULL, choice->growers, &claims, &pool);

	*ret = (struct prospect){ .worth = 1 + worth(p), .cus = p->count, .level = UINT64_MAX };
	if (!adaptable) {
		borrow_needed(there, p, &needed);
		cuset_remove(&pool, &needed);
	}
	self = &choice->growers[n];
	*self = grower_of(choice, p);
	if (share_divide(there, choice->growers, n + adaptable, cuset_count(&pool)) < 0)
		return -ENOMEM;
	if (adaptable)
		ret->cus = self->share;
	if (adaptable || asks_for_share(want)) {
		ret->worth = 1;
		counts = counts_for(choice, want, ret->cus, &enough);
	}
	if (!enough)
		ret->level = level(counts, self->weight);
	if (adaptable && exclusive_on(choice->context->arbiter, p->gpu, NULL))
		ret->level = 0;
	if (borrow_waits_in_vain(choice->context->arbiter, p))
		ret->worth = 0;
	ret->changes = cuset_overlap(&p->cus, &choice->context->arbiter->gpus[p->gpu].shared);
	if (settings->gpu_order == GPU_ORDER_BALANCE && !settings->share_by_lease)
		add_users(choice, n, p->exclusive, counts, ret);
	add_neighbours(choice, n, &needed, p->exclusive, ret);
	return 0;
}

/* ---- order -------------------------------------------------------------------------------- */

static unsigned users(const struct gpu *gpu)
{
	return gpu->n_partitions + (unsigned)gpu->observed.unmanaged.processes;
}

/* Those that use other GPUs with the same memory. */
static unsigned neighbours(const struct arbiter *arbiter, const struct gpu *gpu)
{
	uint64_t gpus = ledger_sharing(arbiter, (unsigned)(gpu - arbiter->gpus));
	unsigned n = 0;

	for (size_t i = 0; i < arbiter->n_gpus; i++)
		if (gpus >> i & 1 && &arbiter->gpus[i] != gpu)
			n += users(&arbiter->gpus[i]);
	return n;
}

static uint64_t in_order(unsigned a, unsigned b, unsigned c, unsigned d)
{
	const unsigned most = UINT16_MAX;

	return (uint64_t)min_u(a, most) << 48 | (uint64_t)min_u(b, most) << 32 |
	       (uint64_t)min_u(c, most) << 16 | min_u(d, most);
}

/* Ranks GPUs of which none is better for the request: the lowest first. */
static uint64_t rank_of(const struct choice *choice, size_t g)
{
	const struct arbiter *arbiter = choice->context->arbiter;
	const struct prospect *prospect = &choice->prospects[g];
	const struct gpu *gpu = &arbiter->gpus[g];
	/* For a fixed lease, adaptable ones return what they borrow. */
	unsigned room = choice->context->adaptable ? gpu_cus_free(gpu) : gpu_cus_unclaimed(gpu);
	unsigned changes = min_u(prospect->others, UINT8_MAX) << 8 |
			   min_u(prospect->changes, UINT8_MAX);

	switch (arbiter->settings->gpu_order) {
	case GPU_ORDER_PACK: return room;
	case GPU_ORDER_SPREAD: return CODEC_BITS - room;
	default: break;
	}
	if (choice->context->adaptable)
		return in_order(changes, users(gpu), neighbours(arbiter, gpu),
				CODEC_BITS - prospect->cus);
	return in_order(changes, (unsigned)gpu->observed.unmanaged.processes, room,
			neighbours(arbiter, gpu));
}

/* The GPUs with the highest value come first, whatever their level and rank: those that grant most, and of these those
 * where no user with less loses CUs. */
static unsigned duty_of(const struct choice *choice, size_t g)
{
	return 2 * choice->prospects[g].worth + !choice->prospects[g].robs;
}

/* What decides before the rank, in this order. */
enum value { VALUE_USERS, VALUE_LEASES, VALUES };

static uint64_t value_of(const struct choice *choice, size_t g, enum value value)
{
	const struct prospect *prospect = &choice->prospects[g];

	if (choice->context->arbiter->settings->gpu_order == GPU_ORDER_BALANCE)
		return value == VALUE_USERS ? prospect->users : prospect->level;
	return prospect->cus;
}

/* Of these GPUs those with about the highest value: a difference of less than an eighth is none. */
static uint64_t with_most(const struct choice *choice, uint64_t gpus, enum value value)
{
	uint64_t best = 0, ret = 0;

	FOR_EACH_BIT(g, gpus)
		best = max_u64(best, value_of(choice, g, value));
	FOR_EACH_BIT(g, gpus)
		ret |= value_of(choice, g, value) >= best - best / 8 ? bit_u64(g) : 0;
	return ret;
}

/* Of these GPUs those that come first, whatever their rank. */
static uint64_t best_of(const struct choice *choice, uint64_t gpus)
{
	unsigned most = 0;
	uint64_t ret = 0;

	FOR_EACH_BIT(g, gpus)
		most = max_u(most, duty_of(choice, g));
	FOR_EACH_BIT(g, gpus)
		ret |= duty_of(choice, g) == most ? bit_u64(g) : 0;
	for (enum value i = 0; i < VALUES; i++)
		ret = with_most(choice, ret, i);
	return ret;
}

void choice_order(const struct choice *choice, size_t order[static REQUEST_WANTS])
{
	uint64_t ranks[REQUEST_WANTS], gpus = choice->gpus;

	FOR_EACH_BIT(g, gpus)
		ranks[g] = rank_of(choice, g);
	for (size_t n = 0; gpus; n++) {
		uint64_t best = best_of(choice, gpus);

		order[n] = (size_t)__builtin_ctzll(best);
		FOR_EACH_BIT(g, best)
			if (ranks[g] < ranks[order[n]])
				order[n] = g;
		gpus &= ~bit_u64(order[n]);
	}
}
