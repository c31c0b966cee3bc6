/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The calculations of libgpuarb-hip. */

#include <errno.h>

#include "check.h"
#include "libgpuarb/hip/stream-plan.h"
#include "seed.h"

TEST(kfd_priorities_map_to_hardware_levels)
{
	static const enum level levels[16] = {
		LEVEL_LOW,  LEVEL_LOW,    LEVEL_LOW,    LEVEL_LOW,    LEVEL_LOW,    LEVEL_LOW,
		LEVEL_LOW,  LEVEL_NORMAL, LEVEL_NORMAL, LEVEL_NORMAL, LEVEL_NORMAL, LEVEL_HIGH,
		LEVEL_HIGH, LEVEL_HIGH,   LEVEL_HIGH,   LEVEL_HIGH,
	};

	for (uint32_t priority = 0; priority < 16; priority++)
		CHECK(level_of(priority) == levels[priority]);
}

TEST(mask_and_keeps_common_bits)
{
	const uint32_t lease[] = { 0xffff0000, 0xf }, own[] = { 0x000f000f, 0xff, 0xff };
	const uint32_t other[] = { 0x0000ffff }, many[MASK_WORDS + 1] = { [MASK_WORDS] = 1 };
	struct mask mask;

	CHECK(mask_and(lease, 2, own, 3, &mask) && mask.words == 2);
	CHECK(mask.word[0] == 0xf0000 && mask.word[1] == 0xf);
	CHECK(mask_and(lease, 2, own, 1, &mask) && mask.words == 1 && mask.word[0] == 0xf0000);
	CHECK(!mask_and(lease, 2, other, 1, &mask) && !mask_and(lease, 2, own, 0, &mask));
	CHECK(!mask_and(many, MASK_WORDS + 1, many, MASK_WORDS + 1, &mask));
	CHECK(mask.words == MASK_WORDS);
}

TEST(pairs_of_cus_become_wgps)
{
	const struct mask pairs = { { 0xc000000f, 0x3, 0x30 }, 3 };
	const struct mask half = { { 0x3, 0x40000000 }, 2 }, other = { { 0x3, 0x80000000 }, 2 };
	struct mask wgps = { { 42 }, 1 };

	CHECK(!mask_to_wgps(&half, &wgps) && !mask_to_wgps(&other, &wgps));
	CHECK(wgps.word[0] == 42);
	CHECK(mask_to_wgps(&pairs, &wgps) && wgps.words == 2);
	CHECK(wgps.word[0] == 0x00018003 && wgps.word[1] == 0x4);
}

/* HIP doubles each bit: that results in the pairs again. */
TEST(masks_of_pairs_survive_the_conversion_to_wgps)
{
	unsigned seed = SEED_OF_RUN("SEED");

	seed_rand(seed);
	for (int i = 0; i < 10000; i++) {
		struct mask mask = { .words = 1 + (size_t)rand() % MASK_WORDS }, wgps;

		for (size_t bit = 0; bit < mask.words * 32; bit += 2)
			if (rand() % 2)
				mask.word[bit / 32] |= 3U << bit % 32;
		CHECK(mask_to_wgps(&mask, &wgps) && wgps.words == (mask.words + 1) / 2);
		for (size_t bit = 0; bit < mask.words * 32; bit++)
			CHECK((mask.word[bit / 32] >> bit % 32 & 1) ==
			      (wgps.word[bit / 64] >> bit / 2 % 32 & 1));
	}
}

static unsigned left(uint32_t queues, uint32_t processes, size_t used)
{
	const struct budget budget = { queues, processes, 0, used, 7 };

	return streams_left(&budget);
}

TEST(one_queue_of_the_budget_is_for_the_runtime)
{
	CHECK(left(4, 1, 0) == 3); /* no queue yet: ROCr will make one */
	CHECK(left(4, 1, 1) == 3 && left(4, 1, 3) == 1);
	CHECK(left(4, 1, 4) == 0 && left(4, 1, 9) == 0);
	CHECK(left(1, 1, 0) == 0 && left(0, 1, 0) == 0);
	CHECK(left(10, 4, 0) == 1 && left(10, 4, 2) == 0);
	CHECK(left(5, 0, 0) == 4);
}

TEST(a_number_of_streams_limits_the_streams)
{
	struct budget budget = { .queues = 8, .processes = 2, .streams = 2 };

	CHECK(streams_left(&budget) == 2);
	budget.used = 2;
	budget.masked = 1;
	CHECK(streams_left(&budget) == 1);
	budget.used = 4; /* two of them were made by the program itself */
	CHECK(streams_left(&budget) == 0);
	budget.used = 3;
	budget.masked = 2;
	CHECK(streams_left(&budget) == 0);
	budget.masked = 3;
	CHECK(streams_left(&budget) == 0);
}

TEST(versions_of_hip_that_keep_queues_are_known)
{
	CHECK(!hip_keeps_queue(50221153, LEVEL_NORMAL) && !hip_keeps_queue(50221153, LEVEL_HIGH));
	CHECK(hip_keeps_queue(50731921, LEVEL_NORMAL) && hip_keeps_queue(50731921, LEVEL_LOW));
	CHECK(!hip_keeps_queue(60443484, LEVEL_NORMAL) && hip_keeps_queue(60443484, LEVEL_HIGH));
}

TEST(masks_of_the_same_words_are_equal)
{
	const struct mask mask = { { 1, 2 }, 2 }, other = { { 1, 3 }, 2 },
			  shorter = { { 1, 2 }, 1 };

	CHECK(mask_equal(&mask, &(struct mask){ { 1, 2, 3 }, 2 }));
	CHECK(!mask_equal(&mask, &other) && !mask_equal(&mask, &shorter));
}

TEST(new_queues_are_in_after_and_not_in_before)
{
	static const struct queue_ids none, before = { { 0, 2, 5 }, 3 };
	static const struct queue_ids after = { { 0, 1, 5, 7 }, 4 };
	static struct queue_ids new_queues;

	queues_new(&before, &after, &new_queues);
	CHECK(new_queues.n == 2 && new_queues.ids[0] == 1 && new_queues.ids[1] == 7);
	queues_new(&after, &after, &new_queues);
	CHECK(new_queues.n == 0);
	queues_new(&none, &after, &new_queues);
	CHECK(new_queues.n == 4 && new_queues.ids[3] == 7);
	queues_new(&after, &none, &new_queues);
	CHECK(new_queues.n == 0);
}

TEST(the_queue_of_a_stream_is_the_only_new_one_or_the_second_of_two)
{
	static const struct queue_ids none, some = { { 3 }, 1 };
	static const struct queue_ids one = { { 8 }, 1 }, two = { { 4, 9 }, 2 };
	static const struct queue_ids three = { { 1, 2, 3 }, 3 };
	uint32_t queue = 42;

	CHECK(!queue_of_stream(&some, &none, &queue) && !queue_of_stream(&none, &none, &queue));
	CHECK(!queue_of_stream(&some, &two, &queue) && !queue_of_stream(&none, &three, &queue));
	CHECK(queue == 42);
	CHECK(queue_of_stream(&some, &one, &queue) && queue == 8);
	CHECK(queue_of_stream(&none, &one, &queue) && queue == 8);
	CHECK(queue_of_stream(&none, &two, &queue) && queue == 9);
}

TEST(a_malformed_pci_address_is_rejected)
{
	static const char *const wrong[] = {
		"",
		"0000:03:00",
		"0000:03:00.8",
		"0000:03:00.0x",
		"0000:03:00.0/",
		"0000:03:00.0/x",
		"0000:03:00.0/1x",
		"03:00.0",
		"sim0",
		"0000:03:00.0 ",
		"0000:03:00.0/2/2",
	};
	struct pci_address pci = { 0 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!pci_parse(wrong[i], &pci));
	CHECK(pci_parse("0001:c3:1f.7", &pci));
	CHECK(pci.domain == 1 && pci.bus == 0xc3 && pci.device == 0x1f && pci.partition == 0);
	CHECK(pci_parse("10000:03:00.0/12", &pci) && pci.domain == 0x10000 && pci.partition == 12);
}

TEST(a_device_is_found_by_its_address)
{
	const struct pci_address devices[] = { { 0, 3, 0, 0 }, { 0, 0x43, 0, 0 }, { 1, 3, 0, 0 } };
	const struct pci_address third = { 1, 3, 0, 0 }, none = { 0, 4, 0, 0 };

	CHECK(device_choose(&third, devices, 3, false) == 2);
	CHECK(device_choose(&third, devices, 3, true) == 2);
	CHECK(device_choose(&none, devices, 3, false) == -ENODEV);
	CHECK(device_choose(&third, devices, 0, false) == -ENODEV);
}

TEST(partitions_of_a_card_are_identified_by_their_order)
{
	const struct pci_address devices[] = {
		{ 0, 9, 0, 0 }, { 0, 3, 0, 0 }, { 0, 3, 0, 0 }, { 0, 3, 0, 0 }
	};
	struct pci_address wanted = { 0, 3, 0, 2 };

	CHECK(device_choose(&wanted, devices, 4, false) == 3);
	CHECK(device_choose(&wanted, devices, 4, true) == -EOPNOTSUPP);
	wanted.partition = 3;
	CHECK(device_choose(&wanted, devices, 4, false) == -EOPNOTSUPP);
	CHECK(device_choose(&wanted, devices, 2, true) == 1); /* the only visible device */
}
