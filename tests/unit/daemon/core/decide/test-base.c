/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where the base of an adaptable lease is placed: realtime leases ask for whole shader engines. */

#include "core/change/arbiter.h"

#include "check.h"
#include "lend-rig.h"
#include "seed.h"

#define ENGINES 4U
#define ENGINE_CUS 15U

/* Engines of the GPU without a claim, as bits. */
static uint32_t unclaimed(const struct gpu *gpu)
{
	return ((UINT32_C(1) << ENGINES) - 1) & ~cuset_engines(&gpu->taken);
}

/* The fewest engines without a claim that a rectangle of so many CUs has to use. */
static unsigned fewest(const struct gpu *gpu, unsigned cus)
{
	unsigned least = UINT_MAX;

	for (unsigned width = 1; width <= ENGINES; width++) {
		unsigned height = cus / width, used = 0;

		if (cus % width != 0 || height > ENGINE_CUS)
			continue;
		for (unsigned e = 0; e < ENGINES; e++)
			used += !(unclaimed(gpu) >> e & 1) &&
				ENGINE_CUS - cuset_count_word(gpu->taken.pair[cuset_pair(0, e)]) >=
					height;
		if ((unsigned)__builtin_popcount(unclaimed(gpu)) + used >= width)
			least = min_u(least, width > used ? width - used : 0);
	}
	return least;
}

/* How many whole engines a realtime request gets now. */
static unsigned whole_engines(struct lending *l)
{
	struct caller caller = caller_of(VR);
	struct request request = request_for(0);
	struct lease *proposal;
	unsigned n = ENGINES;

	for (; n > 0; n--) {
		request.wants[0].shader_engines = n;
		result_done(&l->s.result);
		if (arbiter_plan(l->s.arbiter, &caller, &request, &proposal, &l->s.result) < 0)
			continue;
		lease_free(proposal);
		break;
	}
	return n;
}

TEST(base_uses_as_few_unclaimed_engines_as_possible)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), n = 0, whole = 0, granted = 0;

	for (unsigned run = 0; run < check_rounds(80, 2000); run++) {
		struct lending l = lending_of(1);
		const struct gpu *gpu = &l.s.arbiter->gpus[0];

		for (unsigned step = 0; step < 20; step++) {
			unsigned cus = 1 + (unsigned)rand_r(&seed) % 12;
			unsigned untouched = (unsigned)__builtin_popcount(unclaimed(gpu));
			unsigned allowed = fewest(gpu, cus);
			struct lease *lease = NULL;

			if (l.s.arbiter->n_leases > 0 && rand_r(&seed) % 3 == 0)
				release(l.s.arbiter, l.s.arbiter->leases[0]->id);
			else
				lease = borrow(&l, cus, 60);
			if (lease && cuset_count(&lease->partitions[0].adaptation->base) == cus) {
				granted++;
				CHECK(untouched - (unsigned)__builtin_popcount(unclaimed(gpu)) <=
				      allowed);
			}
			for (size_t i = 0; i < l.s.arbiter->n_leases; i++)
				follow(&l, l.s.arbiter->leases[i]);
			whole += whole_engines(&l);
			n++;
		}
		lending_done(&l);
	}
	printf("%u bases; %u whole engines were free in %u situations\n", granted, whole, n);
}

/* A base with one CU on each of 8 XCCs closes one engine of every XCC, and the next base the same. */
TEST(bases_on_several_xccs_share_their_engines)
{
	_cleanup_(lending_done) struct lending l = lending_of(0);
	struct gpu_info info = radeon_vii("0000:03:00.0");
	struct arbiter *arbiter;
	const struct gpu *gpu;

	info.geometry = (struct geometry){ .xccs = 8, .engines = 4, .arrays = 1, .array_cus = 10 };
	CHECK(geometry_spread(&info.geometry, 8 * 38) == 0);
	arbiter = arbiter_of(&info, 1);
	gpu = &arbiter->gpus[0];
	arbiter_free(l.s.arbiter);
	l.s.arbiter = arbiter;
	for (unsigned i = 0; i < 5; i++) {
		struct lease *lease = borrow(&l, 1, 304);

		CHECK(lease && cuset_count(&lease->partitions[0].adaptation->base) == 8);
		CHECK(geometry_on_every_xcc(&info.geometry,
					    &lease->partitions[0].adaptation->base));
		CHECK(__builtin_popcount(unclaimed(gpu)) == 3);
		for (size_t k = 0; k < arbiter->n_leases; k++)
			follow(&l, arbiter->leases[k]);
	}
}
