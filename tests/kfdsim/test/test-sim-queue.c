/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "core/mask/geometry.h"
#include "kfdsim/test/sim-rig.h"

#define PID 100
#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL

static struct sim_process *start(struct sim_rig *rig, struct gpu_info info)
{
	rig_start(rig, &info, 1);
	return rig_open(rig, PID);
}

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(half_a_wgp_is_refused, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_navi());
	const uint32_t half = 0x7, whole = 0xf, last = 0x80000000;

	rig_queue(rig, process, 0);
	CHECK(rig_mask(rig, process, 1, &half, 32) == -EFAULT);
	CHECK(rig_mask(rig, process, 0, &half, 32) == -EINVAL);
	CHECK(rig_mask(rig, process, 0, &last, 32) == -EINVAL);
	CHECK(process->queues->mask_bits == 0);
	CHECK(rig_mask(rig, process, 0, &whole, 32) == 0);
}

TEST_WITH(a_copy_queue_has_no_cus_but_is_preempted_by_a_mask, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());
	const uint32_t mask = 1;

	CHECK(rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_SDMA_XGMI) == 0);
	CHECK(process->queues->type == SIM_SDMA_XGMI);
	CHECK(rig_mask(rig, process, 0, &mask, 32) == 0);
	CHECK(process->queues->mask_bits == 0 && rig->sim->gpus[0].run_lists == 2);
}

/* ---- how many ---- */

static unsigned fill(struct sim_rig *rig, struct sim_process *process, size_t gpu, int error)
{
	unsigned n = 0;
	int r;

	while ((r = rig_try_queue(rig, process, gpu, AQL)) >= 0)
		n++;
	CHECK(r == error);
	return n;
}

TEST_WITH(a_process_has_127_queues_on_a_gpu_or_255, struct sim_rig *rig)
{
	struct gpu_info infos[] = { rig_vega(), rig_info(90402, SCHEDULER_HWS, 24, 6),
				    rig_info(90500, SCHEDULER_HWS, 24, 6) };
	struct sim_process *process;

	rig_start(rig, infos, 3);
	process = rig_open(rig, PID);
	CHECK(fill(rig, process, 0, -ENOSPC) == 127);
	CHECK(fill(rig, process, 1, -ENOSPC) == 255);
	CHECK(fill(rig, process, 2, -ENOSPC) == 255);
	CHECK(fill(rig, rig_open(rig, PID + 1), 0, -ENOSPC) == 127);
}

TEST_WITH(number_of_sdma_queues_is_limited_by_the_engines, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());

	for (int i = 0; i < 16; i++)
		CHECK(rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_SDMA) == i);
	CHECK(rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_SDMA) == -ENOMEM);
	for (int i = 0; i < 8; i++) /* a pool of its own */
		CHECK(rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_SDMA_XGMI) == 16 + i);
	CHECK(rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_SDMA_XGMI) == -ENOMEM);
	CHECK(rig->sim->gpus[0].sdma_queues == 24 && rig->sim->gpus[0].compute_queues == 0);
	rig_queue(rig, process, 0);
}

/* ---- the run list ---- */

static struct sim_gpu *start_gpu(struct sim_rig *rig, struct gpu_info info)
{
	rig_start(rig, &info, 1);
	return &rig->sim->gpus[0];
}

/* Each slot's queue knows it, and no other does. */
static unsigned check_slots(const struct sim_gpu *gpu)
{
	unsigned n = 0;

	for (int i = 0; i < (int)SIM_HQDS_MAX; i++) {
		if (!gpu->hqds[i])
			continue;
		CHECK(gpu->hqds[i]->hqd == i && gpu->hqds[i]->active);
		CHECK(gpu->hqds[i]->type == SIM_COMPUTE && gpu->hqds[i]->gpu == gpu);
		n++;
	}
	CHECK(n <= gpu->info.queue_slots);
	return n;
}

TEST_WITH(oversubscription_starts_one_queue_above_the_slots, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start_gpu(rig, rig_navi());
	struct sim_process *process = rig_open(rig, 1);

	for (unsigned i = 0; i < 8; i++)
		rig_queue(rig, process, 0);
	CHECK(!gpu->oversubscribed);
	CHECK(check_slots(gpu) == 8 && gpu->hqds[8] && gpu->hqds[15] && !gpu->hqds[7]);
	rig_queue(rig, process, 0);
	CHECK(gpu->oversubscribed);
	CHECK(gpu->oversubscriptions == 1 && gpu->peak_queues == 9);
	CHECK(check_slots(gpu) == 8 && process->queues->hqd == -1);
	CHECK(rig_destroy(rig, process, 3) == 0);
	CHECK(!gpu->oversubscribed);
	CHECK(check_slots(gpu) == 8 && process->queues->hqd == 11); /* the one that was left */
	rig_queue(rig, process, 0);
	rig_queue(rig, process, 0); /* still so */
	CHECK(gpu->oversubscriptions == 2);
}

TEST_WITH(a_queue_of_no_percentage_or_no_ring_takes_no_slot, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start_gpu(rig, rig_navi());
	struct sim_process *process = rig_open(rig, 1);
	struct kfd_ioctl_update_queue_args no_ring = { .queue_id = 1, .queue_percentage = 100 };
	struct kfd_ioctl_create_queue_args resting = rig_queue_args(rig, 0, AQL);

	for (unsigned i = 0; i < 9; i++)
		rig_queue(rig, process, 0);
	CHECK(rig_update(rig, process, 0, 0, 7) == 0);
	CHECK(!gpu->oversubscribed);
	CHECK(gpu->compute_queues == 8 && check_slots(gpu) == 8);
	CHECK(RIG_CALL(rig, process, UPDATE_QUEUE, &no_ring) == 0);
	CHECK(gpu->compute_queues == 7 && check_slots(gpu) == 7);
	CHECK(rig_update(rig, process, 0, 1, 7) == 0 && rig_update(rig, process, 1, 1, 7) == 0);
	CHECK(gpu->oversubscribed);

	resting.queue_percentage = 0;
	CHECK(RIG_CALL(rig, process, CREATE_QUEUE, &resting) == 0);
	CHECK(gpu->compute_queues == 9 && !process->queues->active);
}

TEST_WITH(only_as_many_processes_as_there_are_ids_sit_in_slots, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start_gpu(rig, rig_vega());

	for (pid_t pid = 1; pid <= 9; pid++)
		rig_queue(rig, rig_open(rig, pid), 0);
	CHECK(check_slots(gpu) == 8);
	CHECK(sim_find_process(rig->sim, 9)->queues->hqd == -1);
	rig_queue(rig, rig_open(rig, 1), 0); /* one that sits there has room for more */
	CHECK(check_slots(gpu) == 9);
	sim_exit(rig->sim, 5, rig->now);
	CHECK(sim_find_process(rig->sim, 9)->queues->hqd >= 0);
}

/* Changes: made, masked, changed, paused, changed while paused, resumed, destroyed. */
static uint64_t count_run_lists(struct sim_rig *rig)
{
	struct sim_process *process = rig_open(rig, 1);
	const uint32_t mask = 0xf;
	uint64_t before;

	rig_queue(rig, process, 0);
	CHECK(rig->sim->gpus[0].run_lists == 1);
	CHECK(rig_mask(rig, process, 0, &mask, 32) == 0);
	CHECK(rig_update(rig, process, 0, 100, 15) == 0);
	CHECK(rig_update(rig, process, 0, 0, 15) == 0);
	before = rig->sim->gpus[0].run_lists;
	CHECK(before == 4);
	CHECK(rig_update(rig, process, 0, 0, 3) == 0);
	before = rig->sim->gpus[0].run_lists - before;
	CHECK(rig_update(rig, process, 0, 100, 3) == 0);
	CHECK(rig_destroy(rig, process, 0) == 0);
	return before;
}

TEST_WITH(before_mes_pausing_a_queue_sends_a_run_list, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start_gpu(rig, rig_vega());

	CHECK(count_run_lists(rig) == 1 && gpu->run_lists == 7);
}

TEST_WITH(with_mes_pausing_a_queue_affects_no_other_queue, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start_gpu(rig, rig_navi3());

	CHECK(count_run_lists(rig) == 0 && gpu->run_lists == 6);
	for (unsigned i = 0; i < 9; i++)
		rig_queue(rig, rig_open(rig, 1), 0);
	CHECK(gpu->oversubscribed);
}

TEST_WITH(ending_a_process_sends_one_run_list, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start_gpu(rig, rig_vega());

	for (unsigned i = 0; i < 5; i++)
		rig_queue(rig, rig_open(rig, 1), 0);
	sim_exit(rig->sim, 1, rig->now);
	CHECK(gpu->run_lists == 6 && gpu->compute_queues == 0 && check_slots(gpu) == 0);
	CHECK(rig_try_queue(rig, rig_open(rig, 2), 0, AQL) == 0);
	CHECK(rig_update(rig, rig_open(rig, 2), 0, 0, 7) == 0);
	sim_exit(rig->sim, 2, rig->now);
	CHECK(gpu->run_lists == 8 && gpu->processes == 0); /* it rested: nothing to send */
}
