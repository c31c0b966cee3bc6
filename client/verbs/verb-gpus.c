/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/fail.h"
#include "client/output/json-view.h"
#include "client/output/print.h"
#include "client/launch/session.h"
#include "client/output/table.h"
#include "client/verbs/verb.h"

static void print_json(const struct gpuarb_gpu *gpus, size_t n)
{
	_cleanup_(json_freep) struct json_object *list = json_list(NULL, NULL);

	for (size_t i = 0; i < n; i++)
		json_gpu(list, NULL, &gpus[i]);
	json_print(stdout, list);
}

/* "15", or "13-14" where engines differ, over all XCCs. */
static void per_engine(const struct gpuarb_gpu *gpu, char *buf, size_t size)
{
	const uint32_t *cus = gpu->cus_per_shader_engine;
	uint32_t least = UINT32_MAX, most = 0;

	for (size_t i = 0; i < (size_t)gpu->xccs * gpu->shader_engines; i++) {
		if (cus[i] < least)
			least = cus[i];
		if (cus[i] > most)
			most = cus[i];
	}
	snprintf(buf, size, least < most ? "%s%u-%u" : "%s%u", gpu->harvest_known ? "" : "~",
		 least < most ? least : most, most);
}

static void add_gpu(struct table *table, const struct gpuarb_gpu *gpu)
{
	char engine[32], vram[PRINT_BYTES];

	per_engine(gpu, engine, sizeof(engine));
	print_bytes(gpu->vram_bytes, vram);
	table_add(table, "%s", gpu->name);
	table_add(table, "%s", gpu->device);
	table_add(table, "%s", gpu->gfx_target);
	table_add(table, "%u", gpu->xccs);
	table_add(table, "%u", gpu->shader_engines);
	table_add(table, "%u", gpu->cus);
	table_add(table, "%s", engine);
	table_add(table, "%s", gpu->wgp_mode ? "yes" : "no");
	table_add(table, "%u", gpu->queue_slots);
	table_add(table, "%ux%u", gpu->pipes, gpu->queues_per_pipe);
	table_add(table, "%u", gpu->process_slots);
	table_add(table, "%u", gpu->sdma_queues);
	table_add(table, "%s", vram);
	table_add(table, "%s", gpu->scheduler);
	table_add(table, "%s", gpu->law);
}

int run_gpus(struct command *command)
{
	static const char *const heads[] = { "GPU",    "DEVICE",    "TARGET",    "XCCS",
					     "SE",     "CUS",       "CUS/SE",    "WGP",
					     "QUEUES", "PIPES",     "PROCESSES", "SDMA",
					     "VRAM",   "SCHEDULER", "LAW",       NULL };
	_cleanup_(session_done) struct session session = { 0 };
	_cleanup_(table_done) struct table table = { .heads = heads };
	const struct gpuarb_gpu *gpus;
	size_t n;
	int r;

	r = session_look(command, &session);
	if (r != EXIT_OK)
		return r;

	n = gpuarb_view_gpus(session.view, &gpus);
	if (command->json) {
		print_json(gpus, n);
		return EXIT_OK;
	}
	for (size_t i = 0; i < n; i++)
		add_gpu(&table, &gpus[i]);
	table_print(&table, command, stdout);
	if (n == 0)
		print_line(stdout, "No GPU: the daemon found none on this machine.");
	return EXIT_OK;
}
