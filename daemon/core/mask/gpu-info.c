/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/mask/gpu-info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

const char *const scheduler_names[] = {
	[SCHEDULER_UNKNOWN] = "unknown",
	[SCHEDULER_HWS] = "hws",
	[SCHEDULER_HWS_STRICT] = "hws-strict",
	[SCHEDULER_NONE] = "none",
	[SCHEDULER_MES] = "mes",
	NULL,
};

void gpu_info_target_name(unsigned gfx_target, char *buf, unsigned size)
{
	/* Minor version and stepping are one hexadecimal digit each. */
	snprintf(buf, size, "gfx%u%x%x", gfx_target / 10000, gfx_target / 100 % 100,
		 gfx_target % 100);
}

unsigned gpu_info_target_from_name(const char *name)
{
	size_t digits = strspn(name, "gfx") == 3 ? strspn(name + 3, "0123456789abcdef") : 0;
	char major[8] = "", *end;
	unsigned long minor, stepping, number;

	if (digits < 3 || digits > 4 || name[3 + digits])
		return 0;
	memcpy(major, name + 3, digits - 2);
	number = strtoul(major, &end, 10);
	minor = strtoul((const char[]){ name[digits + 1], 0 }, NULL, 16);
	stepping = strtoul((const char[]){ name[digits + 2], 0 }, NULL, 16);
	return *end ? 0 : (unsigned)(number * 10000 + minor * 100 + stepping);
}

int scheduler_from_name(const char *name)
{
	return text_index(scheduler_names, name);
}

static bool same_geometry(const struct geometry *a, const struct geometry *b)
{
	return a->xccs == b->xccs && a->engines == b->engines && a->arrays == b->arrays &&
	       a->array_cus == b->array_cus && a->wgp == b->wgp &&
	       memcmp(a->active, b->active, sizeof(a->active)) == 0;
}

#define FIRST_BUS 3U /* 0000:03:00.0 */

void gpu_info_name_simulated(struct gpu_info *info, unsigned card, unsigned partition,
			     unsigned partitions)
{
	char which[16] = "";

	if (partitions > 1)
		snprintf(which, sizeof(which), "/%u", partition);
	snprintf(info->name, sizeof(info->name), "0000:%02x:00.0%s", FIRST_BUS + card, which);
}

bool gpu_info_share_memory(const struct gpu_info *a, const struct gpu_info *b)
{
	size_t length = strcspn(a->name, "/");

	return a->memory == b->memory && strcspn(b->name, "/") == length &&
	       strncmp(a->name, b->name, length) == 0;
}

bool gpu_info_same(const struct gpu_info *a, const struct gpu_info *b)
{
	return strcmp(a->name, b->name) == 0 && a->kfd_gpu_id == b->kfd_gpu_id &&
	       a->gfx_target == b->gfx_target && a->queue_slots == b->queue_slots &&
	       a->process_slots == b->process_slots && a->sdma_queues == b->sdma_queues &&
	       a->sdma_xgmi_queues == b->sdma_xgmi_queues && a->vram_bytes == b->vram_bytes &&
	       a->system_memory == b->system_memory && a->whole_only == b->whole_only &&
	       a->guessed == b->guessed && a->memory == b->memory &&
	       same_geometry(&a->geometry, &b->geometry);
}

/* At worst the CUs lie in as few engines as can have them, and one unit in one more. */
unsigned gpu_info_promised(const struct gpu_info *info, unsigned cus, unsigned effective)
{
	const struct geometry *geometry = &info->geometry;
	unsigned step = geometry_step(geometry), engine = geometry->arrays * geometry->array_cus;
	unsigned others = (geometry->engines - 1) * engine, least = step, used;

	if (!info->guessed || cus == geometry_cus(geometry))
		return effective;
	if (geometry->xccs > 1)
		return min_u(effective, geometry->xccs * step);
	if (cus > others + step)
		least = cus - others;
	used = 1 + (max_u(cus, least) - least + engine - 1) / engine;
	return min_u(effective, used * least);
}

/* Parts without a graphics pipe: gfx908, gfx90a, gfx94x, gfx950 (gfx_v9_0.c,
 * gfx_v9_4_3.c set no gfx ring up for them). */
static bool has_graphics(unsigned gfx_target)
{
	return gfx_target != 90008 && gfx_target != 90010 &&
	       (gfx_target < 90400 || gfx_target >= 100000);
}

size_t gpu_info_gaps(const struct gpu_info *info, const char *ret[static GPU_GAPS])
{
	size_t n = 0;

	/* 15 to 19 % between disjoint engines of a Radeon VII (RTNS 2021 data). */
	ret[n++] = "memory-bandwidth";
	ret[n++] = "power";
	if (info->guessed)
		ret[n++] = "shader-engines"; /* which CUs each has is assumed */
	if (has_graphics(info->gfx_target))
		ret[n++] = "graphics"; /* its rings know no CU mask of KFD's */
	if (info->drm_queues)
		ret[n++] = "drm-queues"; /* AMDGPU_USERQ goes round KFD */
	ret[n++] = "unmanaged";
	ret[n++] = "reset"; /* a queue that does not preempt resets the GPU for all */
	return n;
}
