/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The seeds of random tests. tests/run sets and prints the seed of a run, GPUARB_SEED; without it, the
 * time is the seed. Each test derives a seed of its own from that, and prints it as "NAME=NUMBER":
 *
 *	GPUARB_SEED=7 tests/run     the same run again
 *	MODEL_SEED=9 test-…         the same test again
 */

#include <stdint.h>

/* splitmix64: neighbouring seeds give numbers that have nothing in common, which rand_r(3) and
 * srand48(3) alone do not. */
uint64_t seed_mix(uint64_t seed);

/* The seed of this test: what the environment variable has, or one of the run. Prints it. */
#define SEED_OF_RUN(variable) seed_of_run((variable), __func__)
unsigned seed_of_run(const char *variable, const char *test);

/* The nth of the seeds that follow from this one: for rand_r(3). */
unsigned seed_nth(unsigned seed, unsigned n);

/* Seeds rand(3) and lrand48(3) with the mixed seed. */
void seed_rand(unsigned seed);
