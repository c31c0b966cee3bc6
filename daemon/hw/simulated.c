/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/hw.h"

#include <errno.h>
#include <stdlib.h>

#include "util/base.h"

#define PARTITIONS 8U /* more would not sort by name */
#define CARDS 240U

struct hw {
	size_t n;
	struct gpu_info gpus[];
};

static void simulated_close(struct hw *hw)
{
	free(hw);
}

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
	for (size_t i = 0; i < n; i++)
		add_card(hw, &cards[i], partitions[i], (unsigned)i);
	*ret = hw;
	return 0;
}

static int simulated_list(struct hw *hw, struct gpu_info *gpus, size_t max,
			  struct diagnostics *diagnostics)
{
	(void)diagnostics;
	for (size_t i = 0; i < hw->n && i < max; i++)
		gpus[i] = hw->gpus[i];
	return (int)hw->n;
}

static uint64_t simulated_generation(struct hw *hw)
{
	(void)hw;
	return 1; /* profiles are read once */
}

static int simulated_processes(struct hw *hw, struct hw_listing **listing, unsigned *steps,
			       struct hw_pid **ret)
{
	(void)hw;
	(void)listing;
	*steps = 0;
	*ret = NULL;
	return 0;
}

static void simulated_end_listing(struct hw_listing *listing)
{
	(void)listing;
}

static int simulated_use(struct hw *hw, struct hw_use *uses, size_t max)
{
	(void)hw;
	(void)uses;
	(void)max;
	return 0;
}

static int simulated_read(struct hw *, pid_t, struct hw_process **, unsigned *steps,
			  const struct hw_use **)
{
	*steps = 0;
	return 0;
}

static void simulated_forget(struct hw_process *)
{
}

const struct hw_ops hw_simulated = {
	.name = "simulated",
	.close = simulated_close,
	.list = simulated_list,
	.generation = simulated_generation,
	.processes = simulated_processes,
	.end_listing = simulated_end_listing,
	.use = simulated_use,
	.read = simulated_read,
	.leave = simulated_forget,
	.forget = simulated_forget,
};
