/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/explain.h"

#include <limits.h>

#include "util/base.h"

static void count_pairs(const struct model *model, struct explanation *ret)
{
	for (unsigned x = 0; x < model->geometry.xccs; x++) {
		for (unsigned e = 0; e < model->geometry.engines; e++) {
			uint32_t word = ret->set.pair[cuset_pair(x, e)];
			unsigned cus = (unsigned)__builtin_popcount(word);

			ret->pair[x][e] = cus;
			ret->engine[e] += cus;
		}
	}
	ret->engines_used = (unsigned)__builtin_popcount(cuset_engines(&ret->set));
}

/* The most effective CUs of one XCC. */
static unsigned best_of_xcc(const struct model *model, struct explanation *e, unsigned xcc)
{
	unsigned best = 0;

	for (unsigned i = 0; i < model->geometry.engines; i++) {
		unsigned used = 0, each = e->pair[xcc][i];

		for (unsigned s = 0; s < model->geometry.engines; s++)
			used += each > 0 && e->pair[xcc][s] >= each;
		if (each * used > best) {
			best = each * used;
			e->each[xcc] = each;
		}
	}
	return best;
}

static void find_best(const struct model *model, struct explanation *e)
{
	unsigned least = UINT_MAX;

	for (unsigned x = 0; x < model->geometry.xccs; x++)
		least = min_u(least, best_of_xcc(model, e, x));
	e->best = model->geometry.xccs * least;
}

/* Whether the kernel refuses the mask for half a WGP, or ROCr finds no CU in its bits: the queue then goes
 * on without a mask (tests/data/measured: rx7800xt_occupied.tsv, mi300x_occupied.tsv). */
static bool is_lost(const struct model *model, const uint32_t *mask, size_t words,
		    const struct cuset *set)
{
	const uint32_t firsts = UINT32_C(0x55555555);
	bool any = false, split = false;

	for (size_t i = 0; i < words; i++) {
		any |= mask[i] != 0;
		split |= ((mask[i] ^ mask[i] >> 1) & firsts) != 0;
	}
	return (any && cuset_empty(set)) || (split && geometry_step(&model->geometry) == 2);
}

static void find_unmasked(const struct model *model, struct explanation *e)
{
	struct cuset occupied = model->all;

	if (!e->lost)
		geometry_occupied(&model->geometry, &e->set, &occupied);
	e->occupied = cuset_count(&occupied);
	for (unsigned x = 0; x < model->geometry.xccs && (e->lost || e->occupied > e->cus); x++)
		if (e->lost || !geometry_xcc_used(&model->geometry, &e->set, x))
			e->unmasked[e->n_unmasked++] = x;
}

void explain(const struct model *model, const uint32_t *mask, size_t words, struct explanation *ret)
{
	*ret = (struct explanation){ 0 };
	ret->valid = codec_check(&model->codec, &model->geometry, mask, words, ret->problem,
				 sizeof(ret->problem)) >= 0;
	if (ret->valid)
		ret->problem[0] = '\0';

	codec_decode(&model->codec, mask, words, &ret->set);
	ret->cus = cuset_count(&ret->set);
	ret->lost = is_lost(model, mask, words, &ret->set);
	ret->effective = ret->lost ? 0 : geometry_effective(&model->geometry, &ret->set);
	ret->all_cus = cuset_count(&model->all);
	ret->all_effective = geometry_effective(&model->geometry, &model->all);
	count_pairs(model, ret);
	find_unmasked(model, ret);
	find_best(model, ret);
}

double explain_relative_time(const struct explanation *explanation, unsigned constant)
{
	double share = constant / 100.0;

	if (!explanation->valid || explanation->effective == 0)
		return 0;
	return (1 - share) * explanation->all_effective / explanation->effective + share;
}

struct explained_range explain_range(const struct explanation *explanation, unsigned constant)
{
	struct explained_range ret = { explain_relative_time(explanation, constant),
				       explain_relative_time(explanation, 0) };
	const double tolerance = EXPLAIN_TOLERANCE / 100.0;

	/* A part is no faster than the whole GPU. */
	if (ret.least > 0 && explanation->effective < explanation->all_effective) {
		ret.least *= 1 - tolerance;
		ret.most *= 1 + tolerance;
		if (ret.least < 1)
			ret.least = 1;
	}
	return ret;
}
