/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* GPUs that come and go under leases. */

#include <errno.h>

#include "check.h"
#include "ledger-play.h"
#include "scene.h"
#include "seed.h"

static struct gpu_info numbered(unsigned i)
{
	struct gpu_info info;
	char name[16];

	snprintf(name, sizeof(name), "0000:%02x:00.0", 3 + i);
	info = radeon_vii(name);
	info.kfd_gpu_id = 100 + i;
	return info;
}

static struct arbiter *machine(unsigned n)
{
	struct gpu_info infos[REQUEST_WANTS];

	for (unsigned i = 0; i < n; i++)
		infos[i] = numbered(i);
	return arbiter_of(infos, n);
}

static void promises(const struct arbiter *arbiter)
{
	const struct play play = { .arbiter = (struct arbiter *)(uintptr_t)arbiter };

	check_promises(play.arbiter);
}

static struct lease *on(struct arbiter *arbiter, const char *gpu, unsigned cus)
{
	struct request request = request_for(cus);
	struct result result = { 0 };
	struct lease *lease;

	strcpy(request.wants[0].gpu, gpu);
	request.wants[0].processes = 1;
	request.wants[0].queues = 1;
	lease = reserve(arbiter, ANY, &request, &result);
	result_done(&result);
	return lease;
}

static void observe(struct arbiter *arbiter)
{
	struct lease *lease;
	unsigned touched;

	CHECK(arbiter_observe(arbiter, NULL, 0) == 0);
	while ((lease = ledger_take_touched(arbiter, &touched)))
		if (touched & TOUCH_REMOVED)
			lease_free(lease);
	promises(arbiter);
}

TEST(same_list_of_gpus_changes_nothing)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(2);
	struct gpu_info infos[] = { numbered(1), numbered(0) };
	struct lease *lease = on(a, "0", 20);
	struct gpu before[2];
	unsigned touched;

	while (ledger_take_touched(a, &touched))
		;
	a->gpus[1].draining = true;
	a->gpus[0].changed = false;
	memcpy(before, a->gpus, sizeof(before));
	CHECK(arbiter_set_gpus(a, infos, 2) == 0);
	CHECK(memcmp(before, a->gpus, sizeof(before)) == 0 && a->n_gpus == 2);
	CHECK(lease->state == STATE_GRANTED && !lease->touched);
}

TEST(missing_gpu_ends_its_leases_and_whole_gangs)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(3);
	struct gpu_info infos[] = { numbered(0), numbered(2) };
	struct request gang = request_for(10);
	_cleanup_(result_done) struct result result = { 0 };
	struct gpu *gpu = &a->gpus[1];
	struct lease *there, *elsewhere, *both;
	struct gpu before[3];

	there = on(a, "1", 20);
	elsewhere = on(a, "2", 20);
	gang.n_wants = 2;
	gang.wants[1] = gang.wants[0];
	strcpy(gang.wants[0].gpu, "0");
	strcpy(gang.wants[1].gpu, "1");
	both = reserve(a, ANY, &gang, &result);
	a->gpus[0].changed = a->gpus[1].changed = a->gpus[2].changed = false;
	memcpy(before, a->gpus, sizeof(before));

	CHECK(arbiter_set_gpus(a, infos, 2) == 0);
	promises(a);
	CHECK(gpu->absent && gpu->changed && gpu->n_partitions == 2);
	CHECK(memcmp(&before[0], &a->gpus[0], sizeof(before[0])) == 0);
	CHECK(memcmp(&before[2], &a->gpus[2], sizeof(before[2])) == 0);
	CHECK(there->state == STATE_ENDING && both->state == STATE_ENDING);
	CHECK(strstr(both->reason, "0000:04:00.0"));
	CHECK(both->cause == RESULT_NO_SUCH_GPU && (both->touched & TOUCH_ENDING));
	CHECK(elsewhere->state == STATE_GRANTED && !(elsewhere->touched & TOUCH_ENDING));
	observe(a);
	CHECK(a->n_leases == 1 && gpu->n_partitions == 0 && gpu_cus_free(&a->gpus[0]) == 60);

	/* Nothing is granted there, neither by name nor by index. */
	CHECK(!on(a, "1", 10) && !on(a, "0000:04:00.0", 10) && on(a, "2", 10));
}

/* Another GPU comes in the place of the first one. */
static void check_replaced(const struct gpu_info *other)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(2);
	struct gpu_info infos[] = { *other, numbered(1) };
	struct lease *lease = on(a, "0", 20), *stays = on(a, "1", 20);

	CHECK(arbiter_set_gpus(a, infos, 2) == 0);
	promises(a);
	CHECK(lease->state == STATE_ENDING && stays->state == STATE_GRANTED);
	CHECK(strstr(lease->reason, "0000:03:00.0"));
	/* The new GPU has another slot until the leases of the old one are removed. */
	CHECK(a->n_gpus == 3 && a->gpus[0].absent && !a->gpus[2].absent);
	CHECK(ledger_find_gpu(a, "0000:03:00.0") == 2 && on(a, "0000:03:00.0", 20));
}

#define REPLACED(id, change)                        \
	TEST(id)                                    \
	{                                           \
		struct gpu_info info = numbered(0); \
                                                    \
		change;                             \
		check_replaced(&info);              \
	}                                           \
	struct check_test

REPLACED(gpu_of_another_id_ends_leases, info.kfd_gpu_id++);
REPLACED(gpu_of_another_target_ends_leases, info.gfx_target++);
REPLACED(gpu_of_another_shape_ends_leases, CHECK(geometry_spread(&info.geometry, 56) == 0));
REPLACED(gpu_with_more_queue_slots_ends_leases, info.queue_slots++);
REPLACED(gpu_with_fewer_process_slots_ends_leases, info.process_slots--);
REPLACED(gpu_with_fewer_sdma_queues_ends_leases, info.sdma_queues--);
REPLACED(gpu_with_fewer_xgmi_queues_ends_leases, info.sdma_xgmi_queues--);
REPLACED(gpu_with_less_vram_ends_leases, info.vram_bytes /= 2);

TEST(members_that_the_daemon_owns_are_no_change)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(1);
	struct gpu_info info = numbered(0);
	struct lease *lease = on(a, "0", 20);

	strcpy(info.device, "another name of it");
	CHECK(arbiter_set_gpus(a, &info, 1) == 0 && lease->state == STATE_GRANTED);
}

TEST(returning_gpu_takes_its_slot_if_it_is_free)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(2);
	struct gpu_info infos[] = { numbered(0), numbered(1) };

	CHECK(arbiter_set_gpus(a, &infos[1], 1) == 0 && a->gpus[0].absent);
	CHECK(arbiter_set_gpus(a, infos, 2) == 0 && !a->gpus[0].absent && a->n_gpus == 2);

	CHECK(on(a, "0", 20) && arbiter_set_gpus(a, &infos[1], 1) == 0);
	CHECK(arbiter_set_gpus(a, infos, 2) == 0 && a->gpus[0].absent && a->n_gpus == 3);
	observe(a);
	CHECK(arbiter_set_gpus(a, &infos[1], 1) == 0 && a->gpus[2].absent);
	CHECK(arbiter_set_gpus(a, infos, 2) == 0 && !a->gpus[0].absent && a->n_gpus == 3);
}

TEST(replaced_gpu_without_leases_keeps_its_slot)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(1);
	struct gpu_info info = numbered(0);

	info.kfd_gpu_id++;
	a->gpus[0].changed = false;
	CHECK(arbiter_set_gpus(a, &info, 1) == 0 && a->n_gpus == 1);
	CHECK(!a->gpus[0].absent && a->gpus[0].changed && a->gpus[0].info.kfd_gpu_id == 101);
}

TEST(a_drained_gpu_is_still_drained_when_it_comes_back)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(1);
	struct gpu_info info = numbered(0);

	CHECK(on(a, "0", 20) && arbiter_drain(a, "0", true) == 0);
	CHECK(arbiter_set_gpus(a, NULL, 0) == 0);
	CHECK(arbiter_set_gpus(a, &info, 1) == 0 && a->n_gpus == 2 && a->gpus[1].draining);
	CHECK(!on(a, "0000:03:00.0", 10));
}

TEST(undrain_includes_absent_gpus_of_the_same_name)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(1);
	struct gpu_info info = numbered(0);

	CHECK(on(a, "0", 20) && arbiter_drain(a, "0", true) == 0);
	info.kfd_gpu_id++;
	CHECK(arbiter_set_gpus(a, &info, 1) == 0 && a->n_gpus == 2 && a->gpus[0].absent);
	CHECK(arbiter_drain(a, "0000:03:00.0", false) == 0);
	CHECK(!a->gpus[0].draining && !a->gpus[1].draining);
}

TEST(a_new_gpu_has_the_reserve_that_is_configured_or_advised)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(1);
	struct gpu_info infos[] = { numbered(0), numbered(1), numbered(2) };

	a->settings->gpus = calloc(1, sizeof(*a->settings->gpus));
	a->settings->n_gpus = 1;
	strcpy(a->settings->gpus[0].name, infos[2].name);
	a->settings->gpus[0].reserve_queues = 5;
	infos[1].reserve_queues = infos[2].reserve_queues = 2;
	CHECK(arbiter_set_gpus(a, infos, 3) == 0 && a->n_gpus == 3);
	CHECK(a->gpus[1].reserve_queues == 2 && a->gpus[2].reserve_queues == 5);
}

TEST(slots_of_absent_gpus_are_reused_when_all_are_taken)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(REQUEST_WANTS);
	struct gpu_info infos[REQUEST_WANTS + 1];
	struct arbiter *other = NULL;

	for (unsigned i = 0; i < REQUEST_WANTS + 1; i++)
		infos[i] = numbered(i + 1);
	CHECK(arbiter_set_gpus(a, infos, REQUEST_WANTS) == 0 && a->n_gpus == REQUEST_WANTS);
	CHECK(ledger_find_gpu(a, infos[REQUEST_WANTS - 1].name) == 0);
	CHECK(arbiter_set_gpus(a, infos, REQUEST_WANTS + 1) == -E2BIG);
	CHECK(arbiter_new(a->settings, infos, REQUEST_WANTS + 1, 1, &other) == -E2BIG && !other);
}

TEST(new_gpu_without_a_slot_is_added_when_leases_have_ended)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(REQUEST_WANTS);
	struct gpu_info infos[REQUEST_WANTS];
	struct lease *leases[REQUEST_WANTS];
	struct gpu before;
	char index[4];

	for (unsigned i = 0; i < REQUEST_WANTS; i++) {
		snprintf(index, sizeof(index), "%u", i);
		leases[i] = on(a, index, 20);
		infos[i] = numbered(i);
	}
	infos[5].kfd_gpu_id++;
	before = a->gpus[6];
	CHECK(arbiter_set_gpus(a, infos, REQUEST_WANTS) == -E2BIG);
	promises(a);
	CHECK(a->gpus[5].absent && leases[5]->state == STATE_ENDING);
	CHECK(memcmp(&before, &a->gpus[6], sizeof(before)) == 0);
	CHECK(leases[6]->state == STATE_GRANTED);

	observe(a);
	CHECK(arbiter_set_gpus(a, infos, REQUEST_WANTS) == 0 && on(a, infos[5].name, 60));
	CHECK(a->n_leases == REQUEST_WANTS);
}

TEST(process_is_counted_on_the_present_slot_of_its_gpu)
{
	_cleanup_(arbiter_freep) struct arbiter *a = machine(1);
	struct gpu_info info = numbered(0);
	struct observed row = {
		.pid = 1000 + ANY, .start_time = 1, .uid = ANY, .kfd_gpu_id = 100, .queues = 3
	};
	struct lease *lease = on(a, "0", 20);

	CHECK(arbiter_observe(a, &row, 1) == 0 && lease->observed.processes == 1);
	info.queue_slots--;
	CHECK(arbiter_set_gpus(a, &info, 1) == 0 && a->n_gpus == 2);
	CHECK(arbiter_observe(a, &row, 1) == 0);
	promises(a);
	/* Its lease was on the old GPU, and its process still has queues. */
	CHECK(lease->state == STATE_ENDING && lease->observed.processes == 1 && a->n_leases == 1);
	CHECK(a->gpus[0].observed.used.queues == 0 && a->gpus[1].observed.unmanaged.queues == 3);
	observe(a);
	CHECK(a->n_leases == 0);
}

/* ---- at random ----------------------------------------------------------- */

/* HOTPLUG_SEED=N …    the same run again */

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
	check_promises(play->arbiter);
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
			check_promises(play.arbiter);
		}
	}
}
