/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/hw.h"

#include <errno.h>

#include "check.h"
#include "core/mask/geometry.h"

static struct gpu_info card(unsigned target, unsigned cus)
{
	struct gpu_info info = {
		.name = "left over",
		.device = "card",
		.gfx_target = target,
		.kfd_gpu_id = 77,
		.geometry = { .xccs = 1, .engines = 4, .arrays = 1, .array_cus = 16 },
		.queue_slots = 24,
	};

	CHECK(geometry_spread(&info.geometry, cus) == 0);
	return info;
}

TEST(simulated_cards_have_consecutive_addresses_and_no_use)
{
	struct gpu_info cards[2] = { card(90006, 60), card(90010, 52) }, gpus[4];
	unsigned partitions[2] = { 1, 1 };
	struct diagnostics diagnostics = { 0 };
	struct hw *hw;

	CHECK(hw_simulated_new(cards, partitions, 2, &hw) == 0);
	CHECK(hw_list(hw, gpus, 4, &diagnostics) == 2 && diagnostics.n == 0);
	CHECK(strcmp(gpus[0].name, "0000:03:00.0") == 0 && gpus[0].kfd_gpu_id == 0);
	CHECK(strcmp(gpus[1].name, "0000:04:00.0") == 0 && gpus[1].gfx_target == 90010);
	CHECK(memcmp(&gpus[1].geometry, &cards[1].geometry, sizeof(gpus[1].geometry)) == 0);
	CHECK(strcmp(gpus[1].device, "card") == 0 && gpus[1].queue_slots == 24);
	CHECK(hw_uses(hw, NULL, 0) == 0);
	CHECK(hw_generation(hw) != UINT64_MAX); /* and it never changes */
	CHECK(hw_generation(hw) == hw_generation(hw));
	hw_close(hw);
}

TEST(partitioned_card_is_several_gpus)
{
	struct gpu_info cards[3] = { card(90006, 60), card(90402, 38), card(90006, 60) }, gpus[10];
	unsigned partitions[3] = { 1, 8, 1 };
	struct diagnostics diagnostics = { 0 };
	struct hw *hw;

	CHECK(hw_simulated_new(cards, partitions, 3, &hw) == 0);
	CHECK(hw_list(hw, gpus, 10, &diagnostics) == 10);
	CHECK(strcmp(gpus[1].name, "0000:04:00.0/0") == 0);
	CHECK(strcmp(gpus[8].name, "0000:04:00.0/7") == 0);
	CHECK(strcmp(gpus[9].name, "0000:05:00.0") == 0);
	for (int i = 1; i < 10; i++)
		CHECK(strcmp(gpus[i - 1].name, gpus[i].name) < 0);
	CHECK(hw_list(hw, gpus, 1, &diagnostics) == 10);
	hw_close(hw);
}

TEST(invalid_card_is_refused)
{
	struct gpu_info cards[1] = { card(90006, 60) }, none[241] = { 0 };
	unsigned partitions[241] = { 0 };
	struct hw *hw = NULL;

	CHECK(hw_simulated_new(cards, partitions, 1, &hw) == -EINVAL);
	partitions[0] = 9;
	CHECK(hw_simulated_new(cards, partitions, 1, &hw) == -EINVAL);
	partitions[0] = 1;
	CHECK(hw_simulated_new(none, partitions, 1, &hw) == -EINVAL);
	CHECK(hw_simulated_new(none, partitions, 241, &hw) == -EINVAL && !hw);
}

TEST(machine_without_cards_has_no_gpu)
{
	struct diagnostics diagnostics = { 0 };
	struct hw *hw;

	CHECK(hw_simulated_new(NULL, NULL, 0, &hw) == 0);
	CHECK(hw_list(hw, NULL, 0, &diagnostics) == 0 && diagnostics.n == 0);
	hw_close(hw);
	hw_close(NULL);
}
