/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/explain.h"

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

/* Number of pairs with at least `each` CUs; 0 if an XCC has no such pair. */
static unsigned pairs_with(const struct model *model, const struct explanation *e, unsigned each)
{
	unsigned pairs = 0;

	for (unsigned x = 0; x < model->geometry.xccs; x++) {
		unsigned here = 0;

		for (unsigned s = 0; s < model->geometry.engines; s++)
			here += e->pair[x][s] >= each;
		if (here == 0)
			return 0;
		pairs += here;
	}
	return pairs;
}

static void find_best(const struct model *model, struct explanation *e)
{
	unsigned step = geometry_step(&model->geometry);

	for (unsigned each = step; each <= CUSET_ARRAYS * CUSET_ARRAY_CUS; each += step) {
		unsigned cus = each * pairs_with(model, e, each);

		if (cus > e->best) {
			e->best = cus;
			e->each = each;
		}
	}
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
	ret->effective = geometry_effective(&model->geometry, &ret->set);
	ret->all_cus = cuset_count(&model->all);
	ret->all_effective = geometry_effective(&model->geometry, &model->all);
	count_pairs(model, ret);
	find_best(model, ret);
}

double explain_relative_time(const struct explanation *explanation)
{
	if (!explanation->valid || explanation->effective == 0)
		return 0;
	return (double)explanation->all_effective / explanation->effective;
}
