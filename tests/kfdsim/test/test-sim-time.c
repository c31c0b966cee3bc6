/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

/* The driver, its packet processors and the timing model together, through sim_work() alone. */

#define RING (RIG_MEMORY + 0x1000U)
#define READ (RIG_MEMORY + 0x3000U)
#define SIGNAL (RIG_MEMORY + 0x4000U)
#define SLOTS 64U
#define SECOND 1000000000ULL
#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

struct packet {
	uint16_t header, setup;
	uint16_t group[3], reserved;
	uint32_t grid[3], private_size, group_size;
	uint64_t kernel, arguments, more, completion;
};

static struct sim_queue *start(struct sim_rig *rig, const struct gpu_info *info, bool timing)
{
	struct kfd_ioctl_create_queue_args args;
	struct sim_process *process;

	rig_start_with(rig, info, 1, (struct sim_config){ .timing = timing }, RIG_ARENA);
	process = rig_open(rig, 1);
	args = rig_queue_args(rig, 0, AQL);
	args.ring_base_address = RING;
	args.ring_size = SLOTS * sizeof(struct packet);
	args.read_pointer_address = READ;
	CHECK(RIG_CALL(rig, process, CREATE_QUEUE, &args) == 0);
	for (unsigned i = 0; i < SLOTS; i++) /* of type «invalid», as ROCr leaves them */
		*(uint16_t *)rig_at(rig, RING + i * sizeof(struct packet)) = 1;
	return process->queues;
}

static void resume(struct sim_rig *rig, const struct sim_queue *queue)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = RING,
		.ring_size = SLOTS * sizeof(struct packet),
		.queue_id = queue->id,
		.queue_percentage = 100,
	};

	CHECK(RIG_CALL(rig, queue->process, UPDATE_QUEUE, &args) == 0);
}

/* A kernel of so many blocks of 1024 threads, with a signal at the end. */
static void dispatch(struct sim_rig *rig, struct sim_queue *queue, uint64_t index, uint32_t blocks)
{
	struct packet packet = {
		.header = 2,
		.setup = 1,
		.group = { 1024, 1, 1 },
		.grid = { blocks * 1024, 1, 1 },
		.kernel = 0x1234,
		.completion = SIGNAL,
	};
	uint64_t place = queue->process->slices[0] + 8ULL * queue->doorbell;

	memcpy(rig_at(rig, RING + index % SLOTS * sizeof(packet)), &packet, sizeof(packet));
	memcpy(rig->world.arena + place, &index, sizeof(index));
}

/* Works as a front end does, until the queue has retired so many packets. */
static uint64_t work_until(struct sim_rig *rig, const struct sim_queue *queue, uint64_t packets)
{
	uint64_t began = rig->now;

	while (queue->packets < packets) {
		uint64_t next = sim_work(rig->sim, rig->now);

		CHECK(next < SECOND && rig->now - began < 100 * SECOND);
		rig->now += next;
	}
	return rig->now - began;
}

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(with_timing_a_dispatch_takes_its_time_and_half_the_cus_take_twice, struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();
	struct sim_queue *queue = start(rig, &info, true);
	const uint32_t half[2] = { 0xffffffff >> 4, 0 }; /* 7 CUs of 15 on each engine */
	uint64_t whole, masked;

	dispatch(rig, queue, 0, 6000);
	CHECK(sim_work(rig->sim, rig->now) > 0 && queue->dispatched && queue->packets == 0);
	whole = work_until(rig, queue, 1);
	CHECK(!queue->dispatched && queue->dispatches == 1);
	CHECK(rig_mask(rig, queue->process, 0, half, 64) == 0);
	dispatch(rig, queue, 1, 6000);
	masked = work_until(rig, queue, 2);
	CHECK(masked > 2 * whole && masked < 5 * whole / 2);
}

/* Whoever works so seldom that the model falls behind gets its ends late, and no other time. */
TEST_WITH(with_timing_durations_do_not_depend_on_lateness, struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();
	struct sim_queue *queue = start(rig, &info, true);
	uint64_t in_time;

	dispatch(rig, queue, 0, 50000);
	work_until(rig, queue, 1);
	in_time = queue->model_ns.last;
	CHECK(in_time == queue->model_ns.all && queue->gpu->late_ns < SECOND / 100);
	rig_stop(rig);

	queue = start(rig, &info, true);
	dispatch(rig, queue, 0, 50000);
	sim_work(rig->sim, rig->now);
	rig->now += 10 * SECOND;
	while (queue->packets < 1)
		CHECK(sim_work(rig->sim, rig->now) < SECOND);
	CHECK(queue->model_ns.last == in_time);
	CHECK(queue->gpu->late_ns > 9 * SECOND);
}

TEST_WITH(with_timing_a_paused_queue_resumes_its_dispatch, struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();
	struct sim_queue *queue = start(rig, &info, true);

	dispatch(rig, queue, 0, 6000);
	CHECK(sim_work(rig->sim, rig->now) > 0 && queue->dispatched);
	CHECK(rig_update(rig, queue->process, 0, 0, 7) == 0 && !queue->dispatched);
	CHECK(sim_work(rig->sim, rig->now + SECOND) == UINT64_MAX && queue->packets == 0);
	rig->now += SECOND;
	resume(rig, queue);
	work_until(rig, queue, 1);
	CHECK(queue->dispatches == 1);
}
