/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/hw-private.h"

#include <errno.h>
#include <stdlib.h>

#include "util/base.h"

#define PARTITIONS 8U /* more would not sort by name */
#define CARDS 240U

static int count_gpus(const struct gpu_info *cards, const unsigned *partitions, size_t n,
		      size_t *ret)
{
	size_t gpus = 0;

	if (n > CARDS)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (partitions[i] < 1 || partitions[i] > PARTITIONS ||
		    geometry_check(&cards[i].geometry, NULL, 0) < 0)
			return -EINVAL;
		gpus += partitions[i];
	}
	*ret = gpus;
	return 0;
}

static void add_card(struct hw *hw, const struct gpu_info *card, unsigned partitions,
		     unsigned number)
{
	for (unsigned i = 0; i < partitions; i++) {
		struct gpu_info *gpu = &hw->gpus[hw->n++];

		*gpu = *card;
		gpu->kfd_gpu_id = 0;
		gpu_info_name_simulated(gpu, number, i, partitions);
	}
}

int hw_simulated_new(const struct gpu_info *cards, const unsigned *partitions, size_t n,
		     struct hw **ret)
{
	struct hw *hw;
	size_t gpus;
	int r;

	r = count_gpus(cards, partitions, n, &gpus);
	if (r < 0)
		return r;

	hw = calloc(1, sizeof(*hw) + gpus * sizeof(hw->gpus[0]));
	if (!hw)
		return -ENOMEM;
	hw->sys.fd = -1;
	for (size_t i = 0; i < n; i++)
		add_card(hw, &cards[i], partitions[i], (unsigned)i);
	*ret = hw;
	return 0;
}
