/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/gpu-table.h"

#include "client/output/print.h"
#include "client/output/table.h"

static const char *state_of(const struct gpuarb_gpu *gpu)
{
	if (gpu->oversubscribed)
		return gpu->draining ? "OVERSUBSCRIBED, draining" : "OVERSUBSCRIBED";
	return gpu->draining ? "draining" : "ok";
}

void gpu_table(const struct command *command, const struct gpuarb_gpu *gpus, size_t n, FILE *out)
{
	static const char *const heads[] = { "GPU",       "DEVICE", "TARGET", "FREE: CUS", "QUEUES",
					     "PROCESSES", "VRAM",   "STATE",  NULL };
	_cleanup_(table_done) struct table table = { .heads = heads };

	for (size_t i = 0; i < n; i++) {
		const struct gpuarb_gpu *gpu = &gpus[i];
		char left[PRINT_BYTES], all[PRINT_BYTES];

		print_bytes(gpu->vram_free, left);
		print_bytes(gpu->vram_bytes, all);
		table_add(&table, "%s", gpu->name);
		table_add(&table, "%s", gpu->device);
		table_add(&table, "%s", gpu->gfx_target);
		table_add(&table, "%u of %u", gpu->cus_free, gpu->cus);
		table_add(&table, "%u of %u", gpu->queue_slots_free, gpu->queue_slots);
		table_add(&table, "%u of %u", gpu->process_slots_free, gpu->process_slots);
		table_add(&table, "%s of %s", left, all);
		table_add(&table, "%s", state_of(gpu));
	}
	table_print(&table, command, out);
}
