/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/cuset.h"

#include "check.h"
#include "seed.h"

/* A set with one CU: bit `cu` of a pair's word. */
static struct cuset one(unsigned xcc, unsigned engine, unsigned cu)
{
	struct cuset set = { 0 };

	set.pair[cuset_pair(xcc, engine)] = UINT32_C(1) << cu;
	return set;
}

static struct cuset full(void)
{
	struct cuset set;

	memset(&set, 0xff, sizeof(set));
	return set;
}

static struct cuset random_set(void)
{
	struct cuset set;

	for (unsigned i = 0; i < CUSET_PAIRS; i++)
		set.pair[i] = (uint32_t)mrand48() & (uint32_t)mrand48();
	return set;
}

TEST(every_single_cu_counts_as_one)
{
	for (unsigned xcc = 0; xcc < CUSET_XCCS; xcc++)
		for (unsigned engine = 0; engine < CUSET_ENGINES; engine++)
			for (unsigned cu = 0; cu < 32; cu++) {
				struct cuset set = one(xcc, engine, cu);

				CHECK(cuset_count(&set) == 1);
				CHECK(!cuset_empty(&set));
				CHECK(cuset_engines(&set) == UINT32_C(1) << engine);
			}
}

TEST(words_are_counted_as_the_compiler_does)
{
	seed_rand(SEED_OF_RUN("SEED"));
	CHECK(cuset_count_word(0) == 0 && cuset_count_word(UINT32_MAX) == 32);
	for (int i = 0; i < 100000; i++) {
		uint32_t word = (uint32_t)mrand48();

		CHECK(cuset_count_word(word) == (unsigned)__builtin_popcount(word));
	}
}

TEST(sets_are_equal_only_if_every_cu_agrees)
{
	struct cuset a = full(), b = full();

	CHECK(cuset_equal(&a, &b));
	b.pair[CUSET_PAIRS - 1] ^= UINT32_C(1) << 31;
	CHECK(!cuset_equal(&a, &b));
}

TEST(a_set_is_within_another_if_nothing_sticks_out)
{
	struct cuset none = { 0 }, all = full(), a = one(3, 1, 16), b = one(3, 1, 17);

	CHECK(cuset_within(&none, &none) && cuset_within(&none, &a));
	CHECK(cuset_within(&a, &all) && cuset_within(&a, &a));
	CHECK(!cuset_within(&all, &a) && !cuset_within(&a, &b) && !cuset_within(&a, &none));
}

TEST(adding_removing_and_keeping_agree_with_set_algebra)
{
	seed_rand(SEED_OF_RUN("SEED"));
	for (int i = 0; i < 2000; i++) {
		struct cuset a = random_set(), b = random_set(), sum = a, rest = a, both = a;

		cuset_add(&sum, &b);
		cuset_remove(&rest, &b);
		cuset_keep(&both, &b);
		CHECK(cuset_count(&sum) == cuset_count(&rest) + cuset_count(&b));
		CHECK(cuset_count(&a) == cuset_count(&rest) + cuset_count(&both));
		CHECK(!cuset_overlap(&rest, &b) && cuset_within(&both, &b));
		CHECK(cuset_within(&a, &sum) && cuset_within(&b, &sum));
		CHECK(cuset_engines(&sum) == (cuset_engines(&a) | cuset_engines(&b)));

		cuset_add(&rest, &both);
		CHECK(cuset_equal(&rest, &a));
	}
}
