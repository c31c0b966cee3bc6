/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a lease has beyond its budgets. */

#include <inttypes.h>
#include <stdio.h>

#include "core/change/arbiter.h"

#define COUNTED 4U

struct counted {
	const char *what;
	uint64_t used, charged;
};

/* ROCr makes SDMA queues by itself, and VRAM is anybody's: those of who asked for none are
 * not held against them. */
static void count(const struct partition *p, struct counted ret[static COUNTED])
{
	const struct budget *used = &p->used, *charged = &p->charged;

	ret[0] = (struct counted){ "queues", used->queues, charged->queues };
	ret[1] = (struct counted){ "processes", used->processes, charged->processes };
	ret[2] = (struct counted){ "SDMA queues", charged->sdma_queues > 0 ? used->sdma_queues : 0,
				   charged->sdma_queues };
	ret[3] = (struct counted){ "bytes of VRAM", charged->vram > 0 ? used->vram : 0,
				   charged->vram };
}

bool partition_excessive(const struct partition *partition)
{
	struct counted list[COUNTED];
	bool excessive = false;

	count(partition, list);
	for (size_t i = 0; i < COUNTED; i++)
		excessive |= list[i].used > list[i].charged;
	return excessive;
}

void arbiter_excess(const struct arbiter *arbiter, const struct lease *lease, char *ret,
		    size_t size)
{
	struct counted list[COUNTED];
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < lease->n_partitions; i++) {
		count(&lease->partitions[i], list);
		for (size_t j = 0; j < COUNTED && n < size; j++) {
			if (list[j].used <= list[j].charged)
				continue;
			n += (size_t)snprintf(
				ret + n, size - n, "%s%" PRIu64 " %s on %s (granted: %" PRIu64 ")",
				n > 0 ? ", " : "", list[j].used, list[j].what,
				arbiter->gpus[lease->partitions[i].gpu].info.name, list[j].charged);
		}
	}
}
