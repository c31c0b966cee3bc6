/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/gpu-info.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/base.h"

static const char *const scheduler_names[] = {
	[SCHEDULER_UNKNOWN] = "unknown",
	[SCHEDULER_HWS] = "hws",
	[SCHEDULER_HWS_STRICT] = "hws-strict",
	[SCHEDULER_NONE] = "none",
	[SCHEDULER_MES] = "mes",
};

void gpu_info_target_name(unsigned gfx_target, char *buf, unsigned size)
{
	/* Minor version and stepping are one hexadecimal digit each. */
	snprintf(buf, size, "gfx%u%x%x", gfx_target / 10000, gfx_target / 100 % 100,
		 gfx_target % 100);
}

const char *scheduler_name(enum scheduler scheduler)
{
	return scheduler_names[scheduler];
}

int scheduler_from_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(scheduler_names); i++)
		if (strcmp(scheduler_names[i], name) == 0)
			return (int)i;
	return -EINVAL;
}

static bool same_geometry(const struct geometry *a, const struct geometry *b)
{
	return a->xccs == b->xccs && a->engines == b->engines && a->arrays == b->arrays &&
	       a->array_cus == b->array_cus && a->wgp == b->wgp &&
	       memcmp(a->active, b->active, sizeof(a->active)) == 0;
}

bool gpu_info_same(const struct gpu_info *a, const struct gpu_info *b)
{
	return strcmp(a->name, b->name) == 0 && a->kfd_gpu_id == b->kfd_gpu_id &&
	       a->gfx_target == b->gfx_target && a->queue_slots == b->queue_slots &&
	       a->process_slots == b->process_slots && a->sdma_queues == b->sdma_queues &&
	       a->vram_bytes == b->vram_bytes && same_geometry(&a->geometry, &b->geometry);
}
