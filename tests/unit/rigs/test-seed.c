/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "seed.h"

#include "check.h"

#define SEEDS 4096U

#define PARTS 16U

/* The first numbers that two neighbouring seeds draw have some distance, here in parts of the range. Returns
 * how many pairs have the distance that is most frequent. */
static unsigned alike(unsigned (*draw)(unsigned seed))
{
	unsigned pairs[PARTS] = { 0 }, most = 0;

	for (unsigned seed = 0; seed < SEEDS; seed++)
		pairs[(draw(seed + 1) - draw(seed)) / (UINT32_MAX / PARTS + 1)]++;
	for (unsigned i = 0; i < PARTS; i++)
		most = pairs[i] > most ? pairs[i] : most;
	return most;
}

static unsigned first_of_rand48(unsigned seed)
{
	seed_rand(seed);
	return (unsigned)lrand48() << 1;
}

static unsigned first_of_rand(unsigned seed)
{
	seed_rand(seed);
	return (unsigned)rand() << 1;
}

static unsigned first_of_rand_r(unsigned seed)
{
	unsigned state = seed_nth(seed, 0);

	return (unsigned)rand_r(&state) << 1;
}

static unsigned first_of_row(unsigned n)
{
	unsigned state = seed_nth(7, n);

	return (unsigned)rand_r(&state) << 1;
}

/* Without mixing. */
static unsigned first_of_srand48(unsigned seed)
{
	srand48((long)seed);
	return (unsigned)lrand48() << 1;
}

/* By chance each distance has 256 pairs, with a standard deviation of 15.5. */
TEST(neighbouring_seeds_draw_unlike_numbers)
{
	unsigned (*const draws[])(unsigned) = { first_of_rand48, first_of_rand, first_of_rand_r,
						first_of_row };

	for (unsigned i = 0; i < sizeof(draws) / sizeof(*draws); i++) {
		unsigned n = alike(draws[i]);

		printf("%u of %u alike\n", n, SEEDS);
		CHECK(n < 256 + 6 * 16);
	}
	CHECK(alike(first_of_srand48) > SEEDS / 2); /* this test finds that */
}

TEST(seed_follows_from_run_and_test_and_a_variable_replaces_it)
{
	unsigned of_test, of_other;

	CHECK(setenv("GPUARB_SEED", "7", 1) == 0);
	of_test = seed_of_run("SOME_SEED", "a_test");
	CHECK(seed_of_run("SOME_SEED", "a_test") == of_test);
	of_other = seed_of_run("SOME_SEED", "another_test");
	CHECK(of_other != of_test);
	CHECK(setenv("GPUARB_SEED", "8", 1) == 0);
	CHECK(seed_of_run("SOME_SEED", "a_test") != of_test);
	CHECK(setenv("SOME_SEED", "4711", 1) == 0);
	CHECK(seed_of_run("SOME_SEED", "a_test") == 4711);
	CHECK(unsetenv("SOME_SEED") == 0 && unsetenv("GPUARB_SEED") == 0);
	of_test = seed_of_run("SOME_SEED", "a_test");
	CHECK(seed_of_run("SOME_SEED", "a_test") != of_test); /* of the time */
}
