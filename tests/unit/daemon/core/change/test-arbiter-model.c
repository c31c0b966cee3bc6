/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random operations on random arbiters, one for every shipped profile and a machine that
 * mixes them; after each one ledger_check() recomputes every sum, and each grant is compared
 * with its request.
 *
 *	test-core-change arbiter-model      about 20,000 operations in all
 *	GPUARB_ROUNDS=N …                   N for each profile, and for the mix
 *	MODEL_SEED=N …                      the same run again
 */

#include "arbiter-model.h"

#include "check.h"
#include "seed.h"
#include "shipped-gpus.h"

static void run(struct model *model, size_t n_gpus, unsigned operations, unsigned seed)
{
	static const char *const names[] = { "0000:03:00.0", "0000:04:00.0", "0000:05:00.0/0",
					     "0000:05:00.0/1" };

	model->first_seed = model->seed = seed;
	model->now = 0;
	model->last_id = 0;
	model->n_queues = 0;
	memset(model->had, 0, sizeof(model->had)); /* ids begin anew */
	for (size_t i = 0; i < n_gpus; i++) {
		strcpy(model->infos[i].name, names[i]);
		model->infos[i].kfd_gpu_id = (uint32_t)i + 1;
	}
	model->arbiter = arbiter_of(model->infos, n_gpus);
	model->oversubscribe = model_chance(model, 20);
	model->arbiter->verifies = model_chance(model, 50);
	model_set_policy(model);
	for (unsigned i = 0; i < operations; i++)
		model_step(model);
	model_end(model);
	arbiter_free(model->arbiter);
}

/* Rare outcomes: tests/run need not reach all of them, tests/run --long does. */
static bool rare(unsigned times)
{
	return times > 0 || !getenv("GPUARB_LONG");
}

/* A run without these outcomes would prove nothing. */
static void check_reached(const struct model *model)
{
	printf("granted: %u besteffort, %u guaranteed, %u realtime, %u gangs; %u resized\n",
	       model->granted[0], model->granted[1], model->granted[2], model->gangs,
	       model->resized);
	printf("waited: %u, %u of them gangs: %u granted, %u timed out, %u cancelled, %u in vain; "
	       "a GPU was closed for one at %u steps\nrefused:",
	       model->waited, model->waited_gangs, model->granted_later, model->timed_out,
	       model->cancelled, model->never, model->barred);
	for (size_t i = 0; i < REASONS; i++)
		printf(" %s %u", reason_names[i], model->refused[i]);
	printf("\n%u borrowed, %u activated, %u grown, %u revoked, %u acknowledged what was not so; "
	       "reported %u, frozen %u, killed %u; all settled %u times\n",
	       model->borrowed, model->activated, model->grown, model->revoked, model->untrue,
	       model->forced[ENFORCE_STEP_REPORT], model->forced[ENFORCE_STEP_FREEZE],
	       model->forced[ENFORCE_STEP_KILL], model->settled);
	printf("%u were promised CUs of others\n", model->promised);
	CHECK_REACHED(model->borrowed > 0 && model->activated > 0 && model->grown > 0);
	CHECK(rare(model->promised));
	printf("%u revoked for a higher class, %u of them kept after all, %u waited again\n",
	       model->preempted, model->kept, model->requeued);
	CHECK(rare(model->preempted) && rare(model->kept) && rare(model->requeued));
	CHECK_REACHED(model->revoked > 0 && rare(model->untrue) && model->settled > 0);
	printf("%u moves, %u times in two steps\n", model->moved, model->steps);
	CHECK(rare(model->moved));
	printf("%u restarts\n", model->restarts);
	CHECK_REACHED(model->restarts > 0);
	printf("%u times a lease drifted; a grant was compared with %u queues\n", model->drifted,
	       model->observed);
	CHECK(rare(model->drifted) && rare(model->observed));
	for (size_t i = ENFORCE_STEP_REPORT; i <= ENFORCE_STEP_KILL; i++)
		CHECK(rare(model->forced[i]));
	for (size_t i = 0; i < 3; i++)
		CHECK_REACHED(model->granted[i] > 0);
	CHECK(rare(model->gangs) && rare(model->resized));
	CHECK_REACHED(rare(model->waited_gangs) && model->granted_later > 0 &&
		      rare(model->timed_out));
	CHECK_REACHED(model->cancelled > 0 && rare(model->never) && rare(model->barred));
	for (size_t i = 0; i < REASONS; i++)
		CHECK(rare(model->refused[i]));
}

TEST(invariants_hold_after_every_operation_on_every_profile)
{
	unsigned seed = SEED_OF_RUN("MODEL_SEED");
	struct gpu_info infos[SHIPPED_GPUS_MAX];
	char names[SHIPPED_GPUS_MAX][64];
	size_t n = load_shipped_gpus(infos, names);
	unsigned operations = check_rounds(20000U / ((unsigned)n + 1) + 1, 500000);
	struct model model = { 0 };

	printf("MODEL_SEED=%u, %u operations for each of %zu profiles and a mix\n", seed,
	       operations, n);
	for (size_t i = 0; i < n; i++) {
		printf("%s\n", names[i]);
		fflush(stdout);
		for (size_t j = 0; j < 2; j++)
			model.infos[j] = infos[i];
		run(&model, 1 + i % 2, operations, seed_nth(seed, (unsigned)i));
	}
	printf("a mix\n");
	fflush(stdout);
	for (size_t i = 0; i < 4; i++)
		model.infos[i] = infos[(seed + i) % n];
	model.infos[3].gfx_target = 130000; /* masks of an unknown order */
	run(&model, 4, operations, seed_nth(seed, (unsigned)n));
	check_reached(&model);
}
