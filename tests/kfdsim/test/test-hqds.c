/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/text-stage.h"

TEST(hqds_lists_every_slot_of_kfd)
{
	const struct {
		unsigned target, pipes, per_pipe, slots, first;
	} rows[] = { { 90006, 4, 8, 24, 2 }, { 100300, 4, 4, 8, 2 }, { 120001, 2, 4, 4, 2 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct gpu_info info = rig_gpu("0000:03:00.0", rows[i].target, 1, 4, 1, 16, 64);
		struct stage stage;
		char line[64];

		info.pipes = rows[i].pipes;
		info.queues_per_pipe = rows[i].per_pipe;
		info.queue_slots = rows[i].slots;
		stage_start(&stage, &info, 1);
		hqds(&stage);
		CHECK(strncmp(stage.text, "Node 1, gpu_id 1000:\n", 21) == 0);
		CHECK(lines_with(stage.text, " Inst 0,  CP Pipe ") == rows[i].slots);
		for (unsigned pipe = 0; pipe < rows[i].pipes; pipe++)
			for (unsigned queue = rows[i].first; queue < rows[i].per_pipe; queue++) {
				snprintf(line, sizeof(line), " Inst 0,  CP Pipe %u, Queue %u\n",
					 pipe, queue);
				CHECK(lines_with(stage.text, line) == 1);
			}
		snprintf(line, sizeof(line), "   Inst 0, HIQ on MEC %u Pipe 0 Queue 0\n",
			 4 / rows[i].pipes + 1);
		CHECK(lines_with(stage.text, line) == 1);
		CHECK(lines_with(stage.text, "  SDMA Engine 1, RLC 7\n") == 1);
		CHECK(lines_with(stage.text, "  SDMA Engine ") == 16);
		stage_end(&stage);
	}
}

/* Address of register k behind CP_MQD_BASE_ADDR, which is the first on the first line. */
static uint32_t hqd_register(const char *heading, unsigned k)
{
	uint32_t first, words[8];

	CHECK(heading && dump_line(strchr(heading, '\n') + 1, &first, words) == 8);
	return word(heading, 0, first + 4 * k);
}

FIXTURE(struct stage, stage, , stage_end(stage));

TEST_WITH(registers_of_a_slot_are_those_of_the_queue_in_it, struct stage *stage)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_queue *queue;
	const char *heading;
	uint32_t at, words[8];

	stage_start(stage, &info, 1);
	queue = rig_queue(rig_process(stage->sim, 1), 0);
	queue->priority = 11;
	rig_slot(queue, 14); /* pipe 2 of 4, row 3 */
	hqds(stage);
	heading = line_with(stage->text, " Inst 0,  CP Pipe 2, Queue 3\n", 0);
	CHECK(hqd_register(heading, 2) == 1 && hqd_register(heading, 3) == 8);
	CHECK(hqd_register(heading, 5) == 2 && hqd_register(heading, 6) == 11);
	CHECK(hqd_register(heading, 8) == 0xf0000000 && hqd_register(heading, 9) == 0x7f);
	CHECK(hqd_register(heading, 15) == mqd_doorbell(queue) << 2);
	CHECK(hqd_register(heading, 55) == 0);
	CHECK(dump_line(strchr(heading, '\n') + 1, &at, words) == 8 && at == 0xc914);
	CHECK(!dump_word(heading, 0, at + 4 * 56, &words[0])); /* 56 registers, no more */
	heading = line_with(stage->text, " Inst 0,  CP Pipe 2, Queue 2\n", 0);
	CHECK(hqd_register(heading, 2) == 0 && hqd_register(heading, 8) == 0);
}

TEST_WITH(hqds_of_gfx8_has_the_masks, struct stage *stage)
{
	struct gpu_info info = rig_gpu("0000:03:00.0", 80003, 1, 4, 1, 9, 36);
	struct sim_queue *queue;
	const char *heading;

	stage_start(stage, &info, 1);
	queue = rig_queue(rig_process(stage->sim, 1), 0);
	rig_mask(queue, 2, 0x3U, 0U);
	sim_mask_map(queue);
	rig_slot(queue, 8);
	hqds(stage);
	heading = line_with(stage->text, " Inst 0,  CP Pipe 0, Queue 2\n", 0);
	CHECK(strncmp(strchr(heading, '\n'),
		      "\n    0000b858: 00000001 00000001\n"
		      "    0000b864: 00000000 00000000\n    0000c914: ",
		      78) == 0);
}

TEST_WITH(hqds_lists_the_slots_of_every_xcc, struct stage *stage)
{
	struct gpu_info info = rig_mi300x();
	struct sim_queue *queue;

	stage_start(stage, &info, 1);
	queue = rig_queue(rig_process(stage->sim, 1), 0);
	rig_slot(queue, 31);
	hqds(stage);
	CHECK(lines_with(stage->text, " Inst 7,  CP Pipe ") == 24);
	CHECK(hqd_register(line_with(stage->text, " Inst 7,  CP Pipe 3, Queue 7\n", 0), 2) == 1);
}

TEST_WITH(sdma_rings_are_filled_engine_by_engine, struct stage *stage)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_process *process;
	const char *heading;
	uint32_t at, words[8];

	stage_start(stage, &info, 1);
	process = rig_process(stage->sim, 1);
	for (unsigned i = 0; i < 3; i++)
		rig_queue(process, 0)->type = SIM_SDMA;
	hqds(stage);
	heading = line_with(stage->text, "  SDMA Engine 0, RLC 1\n", 0); /* the third */
	CHECK(dump_line(strchr(heading, '\n') + 1, &at, words) == 8 && words[1] == 0xf0002000);
	heading = line_with(stage->text, "  SDMA Engine 1, RLC 1\n", 0);
	CHECK(dump_line(strchr(heading, '\n') + 1, &at, words) == 8 && words[1] == 0);
}

TEST_WITH(run_list_has_processes_and_active_queues, struct stage *stage)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_process *process;
	struct sim_queue *queue;
	const char *heading;

	stage_start(stage, &info, 1);
	CHECK(strcmp(rls(stage), "Node 1, gpu_id 1000:\n  No active runlist\n") == 0);
	process = rig_process(stage->sim, 1);
	queue = rig_queue(process, 0);
	rig_queue(process, 0)->active = false;
	heading = rls(stage);
	CHECK(word(heading, 0, 0) == 0xc00ea100);
	CHECK(word(heading, 0, 4) == (mqd_pasid(process) | 10U << 25));
	CHECK(word(heading, 0, 4 * 13) >> 22 == 1);
	CHECK(word(heading, 0, 4 * 16) == 0xc005a200);
	CHECK(word(heading, 0, 4 * 18) == mqd_doorbell(queue) << 2);
	CHECK(lines_with(stage->text, "  00000040: ") == 1 &&
	      lines_with(stage->text, "  00000060: ") == 0);

	stage->sim->gpus[0].oversubscribed = true;
	stage->sim->gpus[0].processes = 1;
	heading = rls(stage);
	CHECK(word(heading, 0, 4 * 23) == 0xc002a500);
	CHECK(word(heading, 0, 4 * 26) == (27U | 1U << 20 | 1U << 23 | 1U << 24));
}

TEST_WITH(a_run_list_that_is_too_long_ends_where_its_buffer_does, struct stage *stage)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_process *process;

	stage_start(stage, &info, 1);
	process = rig_process(stage->sim, 1);
	for (unsigned i = 0; i < 600; i++)
		rig_queue(process, 0);
	stage->sim->gpus[0].oversubscribed = true;
	CHECK(lines_with(rls(stage), "  0000") == 512);
}

TEST_WITH(mes_has_no_run_list, struct stage *stage)
{
	struct gpu_info info = rig_gpu("0000:03:00.0", 110000, 1, 6, 2, 8, 96);

	stage_start(stage, &info, 1);
	rig_queue(rig_process(stage->sim, 1), 0);
	CHECK(strcmp(rls(stage), "Node 1, gpu_id 1000:\n  No active runlist\n") == 0);
}

TEST_WITH(removed_gpu_is_not_listed_and_the_next_moves_up, struct stage *stage)
{
	struct gpu_info infos[] = { rig_radeon_vii(), rig_rx6900() };

	stage_start(stage, infos, 2);
	CHECK(lines_with(hqds(stage), "Node 2, gpu_id 1101:\n") == 1);
	stage->sim->gpus[0].gone = true;
	CHECK(lines_with(hqds(stage), "Node ") == 1);
	CHECK(lines_with(stage->text, "Node 1, gpu_id 1101:\n") == 1);
	CHECK(lines_with(rls(stage), "Node 1, gpu_id 1101:\n") == 1);
}
