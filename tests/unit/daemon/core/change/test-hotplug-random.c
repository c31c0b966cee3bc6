/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * GPUs that come and go at random under random leases.
 *
 *	HOTPLUG_SEED=N …    the same run again
 */

#include "check.h"
#include "ledger-play.h"
#include "seed.h"

#define NAMES 6U

struct world {
	struct {
		bool here;
		unsigned shape, id;
	} gpus[NAMES];
};

static size_t describe(struct play *play, const struct world *world, struct gpu_info *ret)
{
	unsigned first = play_below(play, NAMES);
	char name[16];
	size_t n = 0;

	for (unsigned i = 0; i < NAMES; i++) {
		unsigned k = (first + i) % NAMES;

		if (!world->gpus[k].here)
			continue;
		snprintf(name, sizeof(name), "0000:%02x:00.0", 3 + k);
		ret[n] = play_gpu(name, world->gpus[k].shape);
		ret[n++].kfd_gpu_id = world->gpus[k].id;
	}
	return n;
}

static void disturb(struct play *play, struct world *world, unsigned *next_id)
{
	unsigned k = play_below(play, NAMES), what = play_below(play, 10);

	if (what < 5)
		world->gpus[k].here = !world->gpus[k].here;
	else if (what < 7)
		world->gpus[k].shape = play_below(play, PLAY_SHAPES);
	else if (what < 9)
		world->gpus[k].id = 1 + (*next_id)++ % 9;
}

static bool is_listed(const struct gpu_info *infos, size_t n, const struct gpu_info *info)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(infos[i].name, info->name) == 0 &&
		    infos[i].kfd_gpu_id == info->kfd_gpu_id &&
		    geometry_cus(&infos[i].geometry) == geometry_cus(&info->geometry))
			return true;
	return false;
}

/* Compares two GPUs byte for byte, except the barrier and the time of growth: the end of a lease on
 * another GPU may change these. */
static bool is_same(const struct gpu *before, const struct gpu *after)
{
	struct gpu gpu = *before;

	memcpy(&gpu.barrier, &after->barrier, sizeof(gpu.barrier));
	gpu.lend.grow_usec = after->lend.grow_usec;
	return memcmp(&gpu, after, sizeof(gpu)) == 0;
}

/* Every listed GPU is present exactly once; GPUs that were present and are listed are unchanged. */
static void check_gpus(const struct arbiter *a, const struct gpu *before, size_t n_before,
		       const struct gpu_info *infos, size_t n)
{
	size_t here = 0;

	for (size_t i = 0; i < a->n_gpus; i++) {
		const struct gpu *gpu = &a->gpus[i];

		here += !gpu->absent;
		CHECK(gpu->absent || is_listed(infos, n, &gpu->info));
		if (i >= n_before || before[i].absent)
			continue;
		if (is_listed(infos, n, &before[i].info))
			CHECK(is_same(&before[i], gpu));
		else
			CHECK(gpu->absent || gpu->n_partitions == 0);
	}
	CHECK(here == n);
}

/* Leases on a missing GPU are ending, and all others are unchanged. */
static void check_leases(const struct arbiter *a, const enum lease_state *before)
{
	for (size_t i = 0; i < a->n_leases; i++) {
		const struct lease *lease = a->leases[i];
		bool hit = false;

		for (size_t j = 0; j < lease->n_partitions; j++)
			hit |= a->gpus[lease->partitions[j].gpu].absent;
		CHECK(lease->state == (hit ? STATE_ENDING : before[i]));
	}
}

static void change_gpus(struct play *play, struct world *world, unsigned *next_id)
{
	struct arbiter *a = play->arbiter;
	struct gpu *before = malloc(REQUEST_WANTS * sizeof(*before));
	enum lease_state *states = calloc(a->n_leases + 1, sizeof(*states));
	struct gpu_info infos[NAMES];
	size_t n, n_before = a->n_gpus;

	memcpy(before, a->gpus, a->n_gpus * sizeof(*before));
	for (size_t i = 0; i < a->n_leases; i++)
		states[i] = a->leases[i]->state;
	disturb(play, world, next_id);
	n = describe(play, world, infos);
	CHECK(arbiter_set_gpus(a, infos, n) == 0);
	play_promises(play);
	check_gpus(a, before, n_before, infos, n);
	check_leases(a, states);
	free(states);
	free(before);
}

TEST(invariants_hold_when_gpus_come_and_go_at_random)
{
	_cleanup_(play_end) struct play play = play_new(seed_nth(SEED_OF_RUN("HOTPLUG_SEED"), 0));
	struct world world = { 0 };
	unsigned next_id = 7, rounds = check_rounds(300, 30000);

	for (unsigned i = 0; i < rounds; i++) {
		change_gpus(&play, &world, &next_id);
		for (unsigned j = play_below(&play, 8); j > 0; j--) {
			play_step(&play);
			play_promises(&play);
		}
	}
}
