/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hw/kfd.h"

#include <string.h>

/* kfd_device.c, kgd2kfd_probe(): the targets of the parts that were out before the driver
 * told them. */
static const struct {
	const char *name;
	unsigned target;
} names[] = {
	{ "carrizo", 80001 },
	{ "fiji", 80003 },
	{ "polaris10", 80003 },
	{ "polaris11", 80003 },
	{ "polaris12", 80003 },
	{ "vegam", 80003 },
	{ "vega10", 90000 },
	{ "raven", 90002 },
	{ "vega12", 90004 },
	{ "vega20", 90006 },
	{ "arcturus", 90008 },
	{ "aldebaran", 90010 },
	{ "renoir", 90012 },
	{ "navi10", 100100 },
	{ "navi12", 100101 },
	{ "navi14", 100102 },
	{ "sienna_cichlid", 100300 },
	{ "navy_flounder", 100301 },
	{ "dimgrey_cavefish", 100302 },
	{ "vangogh", 100303 },
};

unsigned kfd_target_from_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].target;
	return 0;
}

/* Pipes and queues of one MEC: amdgpu's gfx_v*_sw_init(). KFD gets those of the first MEC
 * that the kernel's own rings (two queues of each pipe) leave. */
struct generation {
	unsigned from; /* the first target */
	unsigned pipes, queues_per_pipe;
};

static const struct generation generations[] = {
	{ 0, 4, 8 },
	{ 100300, 4, 4 },
	{ 120000, 2, 4 },
};

static const struct generation *generation(unsigned target)
{
	const struct generation *last = &generations[0];

	for (size_t i = 1; i < ARRAY_SIZE(generations); i++)
		if (target >= generations[i].from)
			last = &generations[i];
	return last;
}

unsigned kfd_target_pipes(unsigned target)
{
	return generation(target)->pipes;
}

unsigned kfd_target_queues_per_pipe(unsigned target)
{
	return generation(target)->queues_per_pipe;
}

unsigned kfd_target_queue_slots(unsigned target)
{
	return generation(target)->pipes * (generation(target)->queues_per_pipe - 2);
}

/* VMIDs of KFD: 8..15 beside graphics, 3..15 on parts without (gmc_v9_0.c,
 * gmc_v9_0_sw_init()), of which the nodes in CPX mode get half each (kfd_device.c,
 * kgd2kfd_device_init()). */
unsigned kfd_target_process_slots(unsigned target, bool cpx)
{
	if (kfd_target_splits(target))
		return cpx ? 6 : 13;
	return target == 90008 || target == 90010 ? 13 : 8;
}

/* gfx 9.4.x as LLVM counts them, and 9.5: the MI300 family. */
bool kfd_target_splits(unsigned target)
{
	return target >= 90400 && target < 100000;
}

bool kfd_target_wgp(unsigned target)
{
	return target >= 100000;
}

bool kfd_target_mes(unsigned target)
{
	return target >= 110000;
}
