/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* arbiter_gaps(): what a CU mask does not keep apart. */

#include "core/change/arbiter.h"

/* Parts without a graphics pipe: gfx908, gfx90a, gfx94x, gfx950 (gfx_v9_0.c,
 * gfx_v9_4_3.c set no gfx ring up for them). */
static bool has_graphics(unsigned gfx_target)
{
	return gfx_target != 90008 && gfx_target != 90010 &&
	       (gfx_target < 90400 || gfx_target >= 100000);
}

size_t arbiter_gaps(const struct arbiter *arbiter, const struct partition *partition,
		    const char *ret[static 6])
{
	unsigned target = arbiter->gpus[partition->gpu].info.gfx_target;
	size_t n = 0;

	/* 15 to 19 % between disjoint engines of a Radeon VII (RTNS 2021 data). */
	ret[n++] = "memory-bandwidth";
	ret[n++] = "power";
	if (has_graphics(target))
		ret[n++] = "graphics"; /* its rings know no CU mask of KFD's */
	if (target >= 110000)
		ret[n++] = "drm-queues"; /* AMDGPU_USERQ goes round KFD */
	ret[n++] = "unmanaged";
	ret[n++] = "reset"; /* a queue that does not preempt resets the GPU for all */
	return n;
}
