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
