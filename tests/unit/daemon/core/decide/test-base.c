/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where the base of an adaptable lease is placed: realtime leases ask for whole shader engines. */

#include "check.h"
#include "lend-rig.h"
#include "seed.h"

#define ENGINES 4U

/* Engines of the GPU without a claim, as bits. */
static uint32_t unclaimed(const struct gpu *gpu)
{
	return ((UINT32_C(1) << ENGINES) - 1) & ~cuset_engines(&gpu->taken);
}

/* How many whole engines a realtime request gets, at once or when leases have moved. */
static unsigned whole_engines(struct lending *l)
{
	struct caller caller = caller_of(VR);
	struct request request = request_for(0);
	struct lease *proposal;
	struct move_set moves;
	unsigned n = ENGINES;

	for (; n > 0; n--) {
		request.wants[0].shader_engines = n;
		result_done(&l->s.result);
		if (arbiter_plan(l->s.arbiter, &caller, &request, &proposal, &l->s.result) == 0)
			lease_free(proposal);
		else if (arbiter_plan_moves(l->s.arbiter, &caller, &request, l->now, MOVE_STEPS,
					    &moves) > 0)
			move_set_done(&moves);
		else
			continue;
		break;
	}
	return n;
}

/* Masks are divided beside each other. Bases are kept out of one engine, or move out of it. */
TEST(realtime_request_nearly_always_gets_a_whole_engine_beside_bases)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0), n = 0, whole = 0, none = 0;

	for (unsigned run = 0; run < check_rounds(40, 2000); run++) {
		_cleanup_(lending_done) struct lending l = lending_of(1);

		for (unsigned step = 0; step < 20; step++) {
			if (l.s.arbiter->n_leases > 3)
				release(l.s.arbiter, l.s.arbiter->leases[rand_r(&seed) % 4]->id);
			else
				borrow(&l, 1 + (unsigned)rand_r(&seed) % 6, 60);
			for (size_t i = 0; i < l.s.arbiter->n_leases; i++)
				follow(&l, l.s.arbiter->leases[i]);
			pass(&l, 2 * SECOND_USEC);
			none += whole_engines(&l) == 0;
			whole += whole_engines(&l);
			n++;
		}
	}
	printf("%u whole engines in %u situations, none in %u\n", whole, n, none);
	/* Leases that have not acknowledged do not move. A run without an engine often stays so: few runs vary much. */
	CHECK(none <= n / 100 + 24);
}

/* A base has one CU on each of 8 XCCs: the same engine of every XCC has no base. */
TEST(bases_on_several_xccs_leave_the_same_engine)
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
	for (unsigned i = 0; i < ENGINES; i++) {
		struct lease *lease = borrow(&l, 1, 304);

		CHECK(lease && cuset_count(&lease->partitions[0].adaptation->base) == 8);
		CHECK(geometry_on_every_xcc(&info.geometry,
					    &lease->partitions[0].adaptation->base));
		CHECK(unclaimed(gpu));
		for (size_t k = 0; k < arbiter->n_leases; k++)
			follow(&l, arbiter->leases[k]);
	}
}
