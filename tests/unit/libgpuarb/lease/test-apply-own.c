/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Own masks of single queues: they always stay within the mask of the lease. */

#include <errno.h>

#include "apply-rig.h"
#include "check.h"
#include "fake-sysfs.h"
#include "seed.h"

FIXTURE(struct apply_rig, rig, , apply_rig_done(rig));

TEST_WITH(an_own_mask_follows_the_lease_and_stays_within_it, struct apply_rig *rig)
{
	static const uint32_t own[] = { 0xff00ff, 0xffffffff };

	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 0, 0);
	CHECK(apply_rig_own(rig, 0, 1, own, 2) == 0 && rig->calls == 1);
	CHECK(apply_rig_has(rig, 1, 0xff, 0) && rig->has[0].words == 0);
	CHECK(apply_rig_apply(rig) == 2);
	CHECK(apply_rig_has(rig, 0, 0xffff, 0) && apply_rig_has(rig, 1, 0xff, 0));

	apply_rig_mask(rig, 0, 0xfffff0, 0x1);
	CHECK(apply_rig_apply(rig) == 2);
	CHECK(apply_rig_has(rig, 0, 0xfffff0, 1) && apply_rig_has(rig, 1, 0xff00f0, 1));

	CHECK(apply_rig_own(rig, 0, 1, own, 1) == 0); /* missing words are 0 */
	CHECK(apply_rig_has(rig, 1, 0xff00f0, 0));
	CHECK(apply_rig_own(rig, 0, 1, NULL, 0) == 0);
	CHECK(apply_rig_has(rig, 1, 0xfffff0, 1));
	CHECK(apply_rig_apply(rig) == 2 && apply_rig_has(rig, 1, 0xfffff0, 1));
}

TEST_WITH(a_disjoint_own_mask_is_refused, struct apply_rig *rig)
{
	static const uint32_t outside[] = { 0xff0000 }, inside[] = { 0xf };

	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 0, 0);
	CHECK(apply_rig_own(rig, 0, 1, inside, 1) == 0);
	CHECK(apply_rig_own(rig, 0, 1, outside, 1) == -ERANGE && rig->calls == 0);
	CHECK(apply_rig_said(rig, "queue 1 ") && apply_rig_said(rig, "0000:03:00.0"));
	CHECK(apply_rig_apply(rig) == 2 && apply_rig_has(rig, 1, 0xf, 0)); /* the previous mask */

	apply_rig_mask(rig, 0, 0xff0, 0);
	CHECK(apply_rig_apply(rig) == -ERANGE && rig->calls == 0);
	CHECK(apply_rig_has(rig, 0, 0xffff, 0) && apply_rig_has(rig, 1, 0xf, 0));
	CHECK(apply_rig_own(rig, 0, 1, NULL, 0) == 0 && apply_rig_apply(rig) == 2);
}

TEST_WITH(a_mask_without_a_cu_on_an_xcc_is_refused, struct apply_rig *rig)
{
	static const uint32_t last_xcc_idle[] = { 0x7f7f7f }, one_on_each[] = { 0xff000000, 0xf0 },
			      shifted[] = { 0x0f, 0xf0 };

	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 7, 1, 0);
	apply_rig_mask(rig, 1, 0xffffffff, 0xffffffff);
	CHECK(apply_rig_own(rig, 1, 7, last_xcc_idle, 1) == -ERANGE && rig->calls == 0);
	CHECK(apply_rig_said(rig, "XCC 7 ") && apply_rig_said(rig, "0000:04:00.0"));
	CHECK(apply_rig_own(rig, 1, 7, shifted, 2) == 0);
	CHECK(apply_rig_has(rig, 7, 0x0f, 0xf0));
	CHECK(apply_rig_own(rig, 1, 7, one_on_each, 2) == 0);

	apply_rig_mask(rig, 1, 0x0fffffff, 0xffffffff); /* XCCs from 4 on have CUs in word 1 */
	CHECK(apply_rig_apply(rig) == 1 && apply_rig_has(rig, 7, 0x0f000000, 0xf0));
	apply_rig_mask(rig, 1, 0x0fffffff, 0xffffff0f);
	CHECK(apply_rig_apply(rig) == -ERANGE && apply_rig_said(rig, "XCC 4 "));
	CHECK(apply_rig_has(rig, 7, 0x0f000000, 0xf0));
}

TEST_WITH(a_mask_with_half_a_pair_is_refused, struct apply_rig *rig)
{
	static const uint32_t half[] = { 0x1f }, across[] = { 0x6 }, whole[] = { 0x3c },
			      high[] = { 0x3, 0x80000000 };

	apply_rig_new(rig, 3);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 2, 0);
	CHECK(apply_rig_own(rig, 2, 1, half, 1) == -EINVAL && apply_rig_said(rig, "queue 1 "));
	CHECK(apply_rig_own(rig, 2, 1, across, 1) == -EINVAL);
	CHECK(apply_rig_own(rig, 2, 1, high, 2) == -EINVAL && rig->opened == 0);
	CHECK(apply_rig_own(rig, 2, 1, whole, 1) == 0 && apply_rig_has(rig, 1, 0x3c, 0));
	CHECK(apply_rig_own(rig, 0, 0, half, 1) == 0 && apply_rig_has(rig, 0, 0x1f, 0));
}

TEST_WITH(unknown_partitions_and_queues_are_refused, struct apply_rig *rig)
{
	static const uint32_t wide[MASK_WORDS + 1] = { 0xff };

	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 0, 1); /* SDMA */
	apply_rig_queue(rig, 2, 1, 0);
	CHECK(apply_rig_own(rig, 2, 0, wide, 1) == -EINVAL);
	CHECK(apply_rig_said(rig, "2 partitions"));
	CHECK(apply_rig_own(rig, 0, 0, wide, 0) == -EINVAL && apply_rig_said(rig, "32"));
	CHECK(apply_rig_own(rig, 0, 0, wide, MASK_WORDS + 1) == -EINVAL);
	CHECK(apply_rig_own(rig, 0, 1, wide, 1) == -ENOENT && apply_rig_said(rig, "queue 1 "));
	CHECK(apply_rig_own(rig, 0, 2, wide, 1) == -ENOENT);
	CHECK(apply_rig_own(rig, 1, 9, wide, 1) == -ENOENT && rig->opened == 0);
	CHECK(apply_rig_own(rig, 0, 0, wide, MASK_WORDS) == 0 && apply_rig_has(rig, 0, 0xff, 0));
	rig->info.state = "waiting";
	CHECK(apply_rig_own(rig, 0, 0, wide, 1) == -EBADFD);
}

TEST_WITH(own_masks_need_the_gpu_once_in_the_topology, struct apply_rig *rig)
{
	static const uint32_t own[] = { 0xff };

	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	CHECK(fake_sysfs_print(rig->sys, FAKE_NODES "/2/gpu_id", "%u\n", rig->gpu_ids[0]) == 0);
	CHECK(apply_rig_own(rig, 0, 0, own, 1) == -ENODEV && apply_rig_said(rig, "0000:03:00.0"));
	CHECK(fake_sysfs_remove(rig->sys, FAKE_NODES) == 0);
	CHECK(apply_rig_own(rig, 0, 0, own, 1) == -ENODEV && rig->opened == 0);
	CHECK(apply_rig_apply(rig) == 1 && apply_rig_has(rig, 0, 0xffff, 0));
}

TEST_WITH(an_own_mask_is_forgotten_with_its_queue, struct apply_rig *rig)
{
	static const uint32_t own[] = { 0xf };

	apply_rig_new(rig, 2);
	apply_rig_queue(rig, 0, 0, 0);
	CHECK(apply_rig_own(rig, 0, 0, own, 1) == 0);
	apply_rig_queue_gone(rig, 0);
	CHECK(apply_rig_apply(rig) == 0);
	apply_rig_queue(rig, 0, 0, 0);
	CHECK(apply_rig_apply(rig) == 1 && apply_rig_has(rig, 0, 0xffff, 0));

	CHECK(apply_rig_own(rig, 0, 0, own, 1) == 0);
	apply_rig_queue(rig, 0, 1, 0); /* the same id on another GPU */
	CHECK(apply_rig_apply(rig) == 1 && apply_rig_has(rig, 0, 0xffff, 0));

	rig->vanish_at = 1;
	CHECK(apply_rig_own(rig, 1, 0, NULL, 0) == -ENOENT && apply_rig_said(rig, "queue 0 "));
}

TEST(a_reused_queue_id_is_a_new_queue)
{
	static const struct gpuarb_partition partition = { .kfd_gpu_id = 5 };
	struct queue queue = { .id = 3, .kfd_gpu_id = 5, .inode = 100 };
	struct queue_list list = { &queue, 1 };
	_cleanup_(mask_cache_clear) struct mask_cache mask_cache = { NULL, 0 };

	CHECK(mask_cache_refresh(&mask_cache, &list, &partition, 1) == 0);
	mask_cache.entries[0].own.words = mask_cache.entries[0].now.mask.words = 1;
	CHECK(mask_cache_refresh(&mask_cache, &list, &partition, 1) == 0);
	CHECK(mask_cache.n == 1 && mask_cache.entries[0].own.words == 1 &&
	      mask_cache.entries[0].now.mask.words == 1);
	queue.inode = 101;
	CHECK(mask_cache_refresh(&mask_cache, &list, &partition, 1) == 0);
	CHECK(mask_cache.n == 1 && mask_cache.entries[0].own.words == 0 &&
	      mask_cache.entries[0].now.mask.words == 0);
}

TEST_WITH(a_refused_own_mask_keeps_the_previous_one, struct apply_rig *rig)
{
	static const uint32_t first[] = { 0xff }, second[] = { 0xf };

	apply_rig_new(rig, 1);
	apply_rig_queue(rig, 0, 0, 0);
	apply_rig_queue(rig, 1, 0, 0);
	CHECK(apply_rig_apply(rig) == 2 && apply_rig_own(rig, 0, 0, first, 1) == 0);
	rig->fail_at = 1;
	rig->fail_with = -ETIME;
	rig->writes_anyway = true;
	CHECK(apply_rig_own(rig, 0, 0, second, 1) == -ETIME && apply_rig_has(rig, 0, 0xff, 0));
	rig->fail_at = 0;
	CHECK(apply_rig_apply(rig) == 2 && apply_rig_has(rig, 0, 0xff, 0));
	CHECK(apply_rig_has(rig, 1, 0xffff, 0));
}

TEST_WITH(queue_ids_are_those_of_compute_queues_on_the_gpu_in_order, struct apply_rig *rig)
{
	uint32_t ids[8] = { 99, 99, 99, 99, 99, 99, 99, 99 };

	apply_rig_new(rig, 2);
	CHECK(apply_queue_ids(&rig->apply, 0, ids, 8) == 0 && ids[0] == 99);
	for (unsigned id = 31; id > 9; id--)
		apply_rig_queue(rig, id, id % 3, id % 2 ? 0 : 1);
	CHECK(apply_queue_ids(&rig->apply, 1, ids, 8) == 4); /* 13 19 25 31 */
	CHECK(ids[0] == 13 && ids[1] == 19 && ids[2] == 25 && ids[3] == 31 && ids[4] == 99);
	ids[1] = 99;
	CHECK(apply_queue_ids(&rig->apply, 1, ids, 1) == 4 && ids[1] == 99);
	CHECK(apply_queue_ids(&rig->apply, 1, NULL, 0) == 4);
	CHECK(apply_queue_ids(&rig->apply, 2, ids, 8) == -EINVAL);
	rig->hsa_mask = "0:0-15"; /* listing is allowed with any mask */
	CHECK(apply_queue_ids(&rig->apply, 0, ids, 8) == 3 && ids[0] == 15 && rig->opened == 0);
	rig->info.state = "ending";
	CHECK(apply_queue_ids(&rig->apply, 0, ids, 8) == -EBADFD);
}

/* ---- at random ------------------------------------------------------------------------------ */

#define STEPS 1500

struct wanted {
	bool alive, own_set;
	uint32_t own;
	unsigned gpu;
};

static uint32_t some_bits(uint32_t *seed)
{
	return (uint32_t)rand_r(seed) ^ (uint32_t)rand_r(seed) << 16;
}

/* All words but the first are 0, so whole pairs are valid on GPUs 0 and 2. */
static uint32_t some_pairs(uint32_t *seed)
{
	uint32_t low = some_bits(seed) & 0x55555555;

	return low | low << 1;
}

static void step(struct apply_rig *rig, struct wanted *wanted, uint32_t *seed)
{
	static const unsigned gpus[] = { 0, 2 };
	unsigned id = (unsigned)rand_r(seed) % 12, gpu = gpus[rand_r(seed) % 2];
	struct wanted *queue = &wanted[id];
	uint32_t own = some_pairs(seed);

	switch (rand_r(seed) % 4) {
	case 0:
		if (queue->alive)
			apply_rig_queue_gone(rig, id);
		else
			apply_rig_queue(rig, id, gpu, 0);
		*queue = (struct wanted){ .alive = !queue->alive, .gpu = gpu };
		apply_queue_ids(&rig->apply, 0, NULL, 0); /* tmpfs may reuse an inode */
		break;
	case 1: apply_rig_mask(rig, gpu, some_pairs(seed) | 0xc, 0); break;
	default:
		if (apply_rig_own(rig, queue->alive ? queue->gpu : gpu, id, &own, 1) == 0) {
			CHECK(queue->alive);
			queue->own_set = true;
			queue->own = own;
		}
	}
}

static void check_applied(const struct apply_rig *rig, const struct wanted *wanted)
{
	for (unsigned id = 0; id < 12; id++)
		if (wanted[id].alive && wanted[id].gpu != 1)
			CHECK(apply_rig_has(
				rig, id,
				rig->masks[wanted[id].gpu][0] &
					(wanted[id].own_set ? wanted[id].own : UINT32_MAX),
				0));
}

TEST_WITH(random_calls_set_the_expected_masks_or_change_nothing, struct apply_rig *rig)
{
	uint32_t seed = seed_nth(SEED_OF_RUN("SEED"), 0);
	struct wanted wanted[12] = { 0 };
	unsigned good = 0, refused = 0;

	apply_rig_new(rig, 3);
	for (int i = 0; i < STEPS; i++) {
		struct mask before[APPLY_QUEUES];
		int r;

		rig->fail_at = 0;
		step(rig, wanted, &seed);
		memcpy(before, rig->has, sizeof(before));
		rig->fail_at = (unsigned)rand_r(&seed) % 16;
		rig->fail_with = rand_r(&seed) % 2 ? -EBUSY : -EIO;
		rig->writes_anyway = rig->fail_with == -EIO;
		r = apply_rig_apply(rig);
		good += r >= 0;
		refused += r < 0;
		if (r >= 0)
			check_applied(rig, wanted);
		for (unsigned id = 0; id < 12 && r < 0; id++)
			CHECK(before[id].words == 0 ? apply_rig_free(rig, id)
						    : memcmp(before[id].word, rig->has[id].word,
							     before[id].words * 4) == 0);
	}
	CHECK(good > 100 && refused > 100);
}
