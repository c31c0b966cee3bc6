/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "util/base.h"
#include "kfdsim/driver/internal.h"

/*
 * What mqd_symmetrically_map_cu_mask() in kfd_mqd_manager.c (Linux 6.12; the same from 5.15 on
 * where there is one XCC) makes of the bits that SET_CU_MASK brought. It runs once for each XCC
 * of the node. Array 0 of an engine is the low half of its word, array 1 the high half, and CUs
 * are counted without those that were fused off.
 */

#define ARRAYS 2U         /* KFD_MAX_NUM_SH_PER_SE */
#define PLACES 16U        /* CUs that an array can have */
#define FIRST_WGP 100000U /* GC 10.0.0: from here on CUs are switched by pairs */

struct walk {
	const uint32_t *mask;
	unsigned bit, stride, count; /* where in the mask, what each place takes, where to stop */
	uint32_t pair;               /* 3 where two CUs go together, else 1 */
};

static unsigned working_cus(const struct geometry *geometry)
{
	unsigned n = 0;

	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++)
		for (unsigned engine = 0; engine < geometry->engines; engine++)
			for (unsigned array = 0; array < geometry->arrays; array++)
				n += geometry->active[xcc][engine][array];
	return n;
}

/* Looks at the bits for one place and goes on; false past the last that counts. The driver tests
 * a pair inside one word, so what would lie in the next word is not seen. */
static bool take(struct walk *walk, uint32_t *word, unsigned place)
{
	if (walk->mask[walk->bit / 32] & walk->pair << walk->bit % 32)
		*word |= walk->pair << place;
	walk->bit += walk->stride;
	return walk->bit < walk->count;
}

static void map_xcc(const struct geometry *geometry, unsigned xcc, struct walk *walk,
		    uint32_t words[SIM_ENGINES])
{
	unsigned step = walk->pair == 3 ? 2 : 1;

	for (unsigned cu = 0; cu < PLACES; cu += step)
		for (unsigned array = 0; array < min_u(geometry->arrays, ARRAYS); array++)
			for (unsigned engine = 0; engine < geometry->engines; engine++) {
				if (geometry->active[xcc][engine][array] <= cu)
					continue; /* fused off: no bit is spent on it */
				if (!take(walk, &words[engine], cu + PLACES * array))
					return;
			}
}

void sim_mask_map(struct sim_queue *queue)
{
	const struct geometry *geometry = &queue->gpu->info.geometry;
	bool wgp = queue->gpu->info.gfx_target >= FIRST_WGP;

	if (queue->mask_bits == 0) {
		memset(queue->engines, 0xff, sizeof(queue->engines));
		return;
	}
	memset(queue->engines, 0, sizeof(queue->engines));
	for (unsigned xcc = 0; xcc < geometry->xccs; xcc++) {
		struct walk walk = {
			.mask = queue->mask,
			.bit = xcc,
			.stride = (wgp ? 2 : 1) * geometry->xccs,
			.count = min_u(queue->mask_bits, working_cus(geometry)),
			.pair = wgp ? 3 : 1,
		};

		map_xcc(geometry, xcc, &walk, queue->engines[xcc]);
	}
}
