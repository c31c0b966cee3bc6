/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "seed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t seed_mix(uint64_t seed)
{
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ seed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ seed >> 27) * UINT64_C(0x94d049bb133111eb);
	return seed ^ seed >> 31;
}

/* FNV-1a */
static uint64_t seed_of_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static unsigned derive(const char *variable, const char *test)
{
	const char *run = getenv("GPUARB_SEED");
	struct timespec now;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = run ? strtoull(run, NULL, 0)
		   : (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	seed = seed_of_text(seed_mix(seed), program_invocation_short_name);
	return (unsigned)seed_mix(seed_of_text(seed_of_text(seed, test), variable));
}

unsigned seed_of_run(const char *variable, const char *test)
{
	const char *given = getenv(variable);
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 0) : derive(variable, test);

	printf("%s=%u\n", variable, seed);
	fflush(stdout);
	return seed;
}

unsigned seed_nth(unsigned seed, unsigned n)
{
	return (unsigned)seed_mix((uint64_t)seed << 32 | n);
}

void seed_rand(unsigned seed)
{
	uint64_t mixed = seed_mix(seed);
	unsigned short state[3] = { (unsigned short)mixed, (unsigned short)(mixed >> 16),
				    (unsigned short)(mixed >> 32) };

	seed48(state);
	srand((unsigned)(mixed >> 32));
}
