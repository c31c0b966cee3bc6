/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/text-stage.h"

/* Byte offsets in an MQD, from v9_structs.h, v10_structs.h and v11_structs.h. */
enum {
	OFFSET_SE0 = 0x05c,
	OFFSET_SE1 = 0x060,
	OFFSET_SE2 = 0x068,
	OFFSET_SE3 = 0x06c,
	OFFSET_SE4_V9 = 0x09c,
	OFFSET_SE4_V11 = 0x0b0,
	OFFSET_ACTIVE = 0x208,
	OFFSET_VMID = 0x20c,
	OFFSET_PIPE_PRIORITY = 0x214,
	OFFSET_QUEUE_PRIORITY = 0x218,
	OFFSET_PQ_BASE = 0x220,
	OFFSET_DOORBELL = 0x23c,
	OFFSET_PQ_CONTROL = 0x244,
	OFFSET_AQL = 0x2d4,
};

#define QUEUE_LINE "  Compute queue on device "

TEST(mqds_tell_process_queue_and_device_newest_queue_first)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_process *process;
	_cleanup_(stage_end) struct stage stage;
	const char *text;

	stage_start(&stage, &info, 1);
	process = rig_process(stage.sim, 4711);
	rig_queue(process, 0);
	rig_queue(process, 0);
	text = mqds(&stage);
	CHECK(strncmp(text, "Process 4711 PASID 0x80", 23) == 0);
	stage.sim->kfd_minor = KFD_LINUX_7_2;
	text = mqds(&stage);
	CHECK(strncmp(text, "Process 4711 PASID 4711:\n", 25) == 0);
	CHECK(lines_with(text, QUEUE_LINE "1000\n") == 2);
	CHECK(lines_with(text, "    000007e0: ") == 2 && lines_with(text, "    00000800: ") == 0);
	CHECK(word(line_with(text, QUEUE_LINE, 0), 0, OFFSET_PQ_BASE) == 0xf0001000);
	CHECK(word(line_with(text, QUEUE_LINE, 1), 0, OFFSET_PQ_BASE) == 0xf0000000);
	CHECK(word(line_with(text, QUEUE_LINE, 1), 0, OFFSET_PQ_BASE + 4) == 0x7f);
}

TEST(an_mqd_has_the_masks_of_the_first_four_engines_around_the_ring_of_scratch)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_queue *queue;
	_cleanup_(stage_end) struct stage stage;
	const char *heading;

	stage_start(&stage, &info, 1);
	queue = rig_queue(rig_process(stage.sim, 1), 0);
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	CHECK(word(heading, 0, OFFSET_SE0) == UINT32_MAX &&
	      word(heading, 0, OFFSET_SE3) == UINT32_MAX);

	rig_mask(queue, 2, 0x55555555U, 0x0d555555U);
	sim_mask_map(queue);
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	CHECK(word(heading, 0, OFFSET_SE0) == 0x7fff && word(heading, 0, OFFSET_SE1) == 0);
	CHECK(word(heading, 0, OFFSET_SE2) == 0x7fff && word(heading, 0, OFFSET_SE3) == 0x4000);
	CHECK(word(heading, 0, 0x64) == 0 && word(heading, 0, OFFSET_SE4_V9) == 0);
}

TEST(engines_from_the_fifth_on_are_where_their_generation_has_them)
{
	const struct {
		struct gpu_info info;
		uint32_t offset;
	} rows[] = {
		{ rig_gpu("0000:03:00.0", 90010, 1, 8, 1, 14, 104), OFFSET_SE4_V9 },
		{ rig_gpu("0000:03:00.0", 110000, 1, 6, 2, 8, 96), OFFSET_SE4_V11 },
	};
	struct stage stage;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sim_queue *queue;
		const char *heading;

		stage_start(&stage, &rows[i].info, 1);
		queue = rig_queue(rig_process(stage.sim, 1), 0);
		for (unsigned engine = 0; engine < SIM_ENGINES; engine++)
			queue->engines[0][engine] = 0x100 + engine;
		heading = line_with(mqds(&stage), QUEUE_LINE, 0);
		CHECK(word(heading, 0, OFFSET_SE3) == 0x103);
		for (uint32_t engine = 4; engine < 8; engine++)
			CHECK(word(heading, 0, rows[i].offset + 4 * engine - 16) == 0x100 + engine);
		stage_end(&stage);
	}
}

TEST(a_queue_of_several_xccs_has_an_mqd_for_each)
{
	struct gpu_info info = rig_mi300x();
	struct sim_queue *queue;
	_cleanup_(stage_end) struct stage stage;
	const char *heading;

	stage_start(&stage, &info, 1);
	queue = rig_queue(rig_process(stage.sim, 1), 0);
	rig_mask(queue, 1, 0x0fU);
	sim_mask_map(queue);
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	for (unsigned xcc = 0; xcc < 8; xcc++) {
		CHECK(word(heading, xcc, OFFSET_SE0) == (xcc < 4));
		CHECK(word(heading, xcc, OFFSET_SE4_V9) == xcc); /* its number is there */
	}
	CHECK(lines_with(stage.text, "    00000000: ") == 8);
}

TEST(an_mqd_of_gfx10_has_both_bits_of_a_wgp)
{
	struct gpu_info info = rig_rx6900();
	struct sim_queue *queue;
	_cleanup_(stage_end) struct stage stage;
	const char *heading;

	stage_start(&stage, &info, 1);
	queue = rig_queue(rig_process(stage.sim, 1), 0);
	rig_mask(queue, 3, 0x00ff00ffU, 0x0000f0ffU, 0xc003U);
	sim_mask_map(queue);
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	for (uint32_t offset = OFFSET_SE0; offset <= OFFSET_SE3; offset += 4) {
		uint32_t mask = word(heading, 0, offset);

		CHECK((mask & 0x55555555) == (mask >> 1 & 0x55555555));
	}
	CHECK(word(heading, 0, OFFSET_SE0) == 0x0000033f);
	CHECK(word(heading, 0, OFFSET_SE3) == 0x0330003f);
}

TEST(mqd_has_priority_ring_and_kind)
{
	static const unsigned pipe_of[] = { 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2 };
	struct gpu_info info = rig_radeon_vii();
	struct sim_queue *queue;
	_cleanup_(stage_end) struct stage stage;
	const char *heading;

	stage_start(&stage, &info, 1);
	queue = rig_queue(rig_process(stage.sim, 1), 0);
	for (unsigned priority = 0; priority < 16; priority++) {
		queue->priority = priority;
		heading = line_with(mqds(&stage), QUEUE_LINE, 0);
		CHECK(word(heading, 0, OFFSET_PIPE_PRIORITY) == pipe_of[priority]);
		CHECK(word(heading, 0, OFFSET_QUEUE_PRIORITY) == priority);
	}
	CHECK((word(heading, 0, OFFSET_PQ_CONTROL) & 0x3f) == 13); /* 64 KiB: 2^14 words */
	CHECK(word(heading, 0, OFFSET_AQL) == 1);
	queue->ring_size = 1024;
	queue->aql = false;
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	CHECK((word(heading, 0, OFFSET_PQ_CONTROL) & 0x3f) == 7);
	CHECK(word(heading, 0, OFFSET_AQL) == 0);
}

TEST(an_mqd_in_no_slot_is_not_active)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_queue *queue;
	_cleanup_(stage_end) struct stage stage;
	const char *heading;

	stage_start(&stage, &info, 1);
	queue = rig_queue(rig_process(stage.sim, 1), 0);
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	CHECK(word(heading, 0, OFFSET_ACTIVE) == 0 && word(heading, 0, OFFSET_VMID) == 0);
	rig_slot(queue, 8);
	heading = line_with(mqds(&stage), QUEUE_LINE, 0);
	CHECK(word(heading, 0, OFFSET_ACTIVE) == 1 && word(heading, 0, OFFSET_VMID) == 8);
}

TEST(doorbells_of_processes_lie_in_slices_of_their_own)
{
	struct gpu_info info = rig_radeon_vii();
	struct sim_process *one, *other;
	_cleanup_(stage_end) struct stage stage;
	uint32_t bell[3];

	stage_start(&stage, &info, 1);
	one = rig_process(stage.sim, 1);
	other = rig_process(stage.sim, 2);
	rig_queue(one, 0);
	rig_queue(one, 0)->doorbell = 1023;
	rig_queue(other, 0);
	mqds(&stage); /* the other process first, then the newer queue of the first */
	for (unsigned i = 0; i < 3; i++)
		bell[i] = word(line_with(stage.text, QUEUE_LINE, i), 0, OFFSET_DOORBELL) >> 2;
	CHECK(bell[0] % 2048 == 0 && bell[2] % 2048 == 0 && bell[1] == bell[2] + 2046);
	CHECK(bell[0] / 2048 != bell[2] / 2048);
}

TEST(an_sdma_queue_is_printed_as_often_as_the_compute_queue_before_it)
{
	struct gpu_info info = rig_mi300x();
	struct sim_process *process;
	_cleanup_(stage_end) struct stage stage;
	const char *heading;

	stage_start(&stage, &info, 1);
	process = rig_process(stage.sim, 1);
	rig_queue(process, 0)->type = SIM_SDMA;
	heading = line_with(mqds(&stage), "  SDMA queue on device 1000\n", 0);
	CHECK(word(heading, 0, 4) == 0xf0000000 && word(heading, 0, 0x1e0) == 0);
	CHECK(lines_with(stage.text, "    00000000: ") == 1);
	CHECK(lines_with(stage.text, "    000001e0: ") == 1); /* 512 bytes */
	CHECK(lines_with(stage.text, "    00000200: ") == 0);

	rig_queue(process, 0);
	mqds(&stage);
	CHECK(lines_with(stage.text, "    00000000: ") == 16);
}
