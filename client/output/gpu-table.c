/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/gpu-table.h"

#include <inttypes.h>

#include "client/output/list.h"
#include "client/output/print.h"
#include "client/output/table.h"

static const char *state_of(const struct command *command, const struct gpuarb_gpu *gpu,
			    char kept[static 32])
{
	size_t i = (size_t)(gpu - command->gpus);
	uint64_t barred_for = gpuarb_view_barred_for(command->view, i);

	if (gpu->oversubscribed)
		return gpu->draining ? "OVERSUBSCRIBED, draining" : "OVERSUBSCRIBED";
	if (gpuarb_view_vram_pressure(command->view, i))
		return gpu->draining ? "low on memory, draining" : "low on memory";
	snprintf(kept, 32, "kept for %" PRIu64, barred_for);
	return gpu->draining                              ? "draining"
	       : barred_for                               ? kept
	       : gpuarb_view_named_only(command->view, i) ? "only by name"
							  : "ok";
}

void gpu_table(const struct command *command, FILE *out)
{
	static const char *const heads[] = { "GPU",       "DEVICE", "TARGET", "FREE: CUS", "QUEUES",
					     "PROCESSES", "VRAM",   "STATE",  NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "05823490" };

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_gpu *gpu = &command->gpus[i];
		char left[PRINT_BYTES], all[PRINT_BYTES], kept[32];

		if (!gpu_is_listed(command, gpu))
			continue;
		print_bytes(gpu->vram_free, left);
		print_bytes(gpu->vram_bytes, all);
		TABLE_CELLS(&table, gpu->name, gpu->device, gpu->gfx_target);
		table_add(&table, "%u of %u", gpu->cus_free, gpu->cus);
		table_add(&table, "%u of %u", gpu->queue_slots_free, gpu->queue_slots);
		table_add(&table, "%u of %u", gpu->process_slots_free, gpu->process_slots);
		table_add(&table, "%s of %s%s", left, all,
			  gpuarb_view_system_memory(command->view, i) ? " RAM" : "");
		TABLE_CELLS(&table, state_of(command, gpu, kept));
	}
	table_print(&table, command, out);
}

/* ---- clients of the graphics driver ------------------------------------------------------------- */

static void add_client(struct table *table, const char *gpu, const struct gpuarb_client *client)
{
	char user[PRINT_USER], vram[PRINT_BYTES], gtt[PRINT_BYTES];

	print_user(client->uid, user);
	print_bytes(client->vram, vram);
	print_bytes(client->gtt, gtt);
	TABLE_CELLS(table, gpu, client->draws ? "yes" : "no");
	table_add(table, "%.0f%%", client->gfx_share * 100);
	table_add(table, "%.0f%%", client->compute_share * 100);
	table_add(table, "%.0f%%", client->dma_share * 100);
	TABLE_CELLS(table, vram, gtt);
	table_number(table, client->lease);
	TABLE_CELLS(table, client->pid, user, client->command);
}

void client_table(const struct command *command, FILE *out)
{
	static const char *const heads[] = { "GPU", "DRAWS", "GFX", "COMPUTE", "DMA",     "VRAM",
					     "GTT", "LEASE", "PID", "USER",    "COMMAND", NULL };
	_cleanup_(table_done) struct table table = { .heads = heads, .keep = "00678593420" };

	for (size_t i = 0; i < command->n_gpus; i++) {
		const struct gpuarb_client *client;

		for (size_t n = 0; (client = gpuarb_view_client(command->view, i, n)); n++)
			add_client(&table, command->gpus[i].name, client);
	}
	if (table.n > 0)
		fputc('\n', out);
	table_print(&table, command, out);
}
