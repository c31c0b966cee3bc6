/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define SDMA KFD_IOC_QUEUE_TYPE_SDMA

static struct sim_gpu *start(struct sim_rig *rig, struct gpu_info info)
{
	rig_start(rig, &info, 1);
	return &rig->sim->gpus[0];
}

static void check_reasons(const struct sim_gpu *gpu, bool queues, bool processes, bool gws)
{
	CHECK(gpu->too_many_queues == queues && gpu->too_many_processes == processes);
	CHECK(gpu->too_many_gws == gws && gpu->oversubscribed == (queues || processes || gws));
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

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(oversubscription_starts_one_queue_above_the_slots, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_navi());
	struct sim_process *process = rig_open(rig, 1);

	for (unsigned i = 0; i < 8; i++)
		rig_queue(rig, process, 0);
	check_reasons(gpu, false, false, false);
	CHECK(check_slots(gpu) == 8 && gpu->hqds[8] && gpu->hqds[15] && !gpu->hqds[7]);
	rig_queue(rig, process, 0);
	check_reasons(gpu, true, false, false);
	CHECK(gpu->oversubscriptions == 1 && gpu->peak_queues == 9);
	CHECK(check_slots(gpu) == 8 && process->queues->hqd == -1);
	CHECK(rig_destroy(rig, process, 3) == 0);
	check_reasons(gpu, false, false, false);
	CHECK(check_slots(gpu) == 8 && process->queues->hqd == 11); /* the one that was left */
	rig_queue(rig, process, 0);
	rig_queue(rig, process, 0); /* still so */
	CHECK(gpu->oversubscriptions == 2);
}

TEST_WITH(a_queue_of_no_percentage_or_no_ring_takes_no_slot, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_navi());
	struct sim_process *process = rig_open(rig, 1);
	struct kfd_ioctl_update_queue_args no_ring = { .queue_id = 1, .queue_percentage = 100 };
	struct kfd_ioctl_create_queue_args resting = rig_queue_args(rig, 0, AQL);

	for (unsigned i = 0; i < 9; i++)
		rig_queue(rig, process, 0);
	CHECK(rig_update(rig, process, 0, 0, 7) == 0);
	check_reasons(gpu, false, false, false);
	CHECK(gpu->compute_queues == 8 && check_slots(gpu) == 8);
	CHECK(RIG_CALL(rig, process, UPDATE_QUEUE, &no_ring) == 0);
	CHECK(gpu->compute_queues == 7 && check_slots(gpu) == 7);
	CHECK(rig_update(rig, process, 0, 1, 7) == 0 && rig_update(rig, process, 1, 1, 7) == 0);
	check_reasons(gpu, true, false, false);

	resting.queue_percentage = 0;
	CHECK(RIG_CALL(rig, process, CREATE_QUEUE, &resting) == 0);
	CHECK(gpu->compute_queues == 9 && !process->queues->active);
}

TEST_WITH(only_as_many_processes_as_there_are_ids_sit_in_slots, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_vega());

	for (pid_t pid = 1; pid <= 9; pid++)
		rig_queue(rig, rig_open(rig, pid), 0);
	CHECK(check_slots(gpu) == 8);
	CHECK(sim_find_process(rig->sim, 9)->queues->hqd == -1);
	rig_queue(rig, rig_open(rig, 1), 0); /* one that sits there has room for more */
	CHECK(check_slots(gpu) == 9);
	sim_exit(rig->sim, 5, rig->now);
	CHECK(sim_find_process(rig->sim, 9)->queues->hqd >= 0);
}

TEST_WITH(all_three_reasons_come_together, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_info(100300, SCHEDULER_HWS, 2, 2));

	for (pid_t pid = 1; pid <= 3; pid++) {
		rig_queue(rig, rig_open(rig, pid), 0);
		CHECK(rig_gws(rig, rig_open(rig, pid), 0, 1) == 0);
	}
	check_reasons(gpu, true, true, true);
	sim_exit(rig->sim, 2, rig->now);
	check_reasons(gpu, false, false, true);
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
	struct sim_gpu *gpu = start(rig, rig_vega());

	CHECK(count_run_lists(rig) == 1 && gpu->run_lists == 7);
}

TEST_WITH(with_mes_pausing_a_queue_affects_no_other_queue, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_navi3());

	CHECK(count_run_lists(rig) == 0 && gpu->run_lists == 6);
	for (unsigned i = 0; i < 9; i++)
		rig_queue(rig, rig_open(rig, 1), 0);
	check_reasons(gpu, true, false, false);
}

TEST_WITH(ending_a_process_sends_one_run_list, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_vega());

	for (unsigned i = 0; i < 5; i++)
		rig_queue(rig, rig_open(rig, 1), 0);
	sim_exit(rig->sim, 1, rig->now);
	CHECK(gpu->run_lists == 6 && gpu->compute_queues == 0 && check_slots(gpu) == 0);
	CHECK(rig_try_queue(rig, rig_open(rig, 2), 0, AQL) == 0);
	CHECK(rig_update(rig, rig_open(rig, 2), 0, 0, 7) == 0);
	sim_exit(rig->sim, 2, rig->now);
	CHECK(gpu->run_lists == 8 && gpu->processes == 0); /* it rested: nothing to send */
}

/* ---- other schedulers ---- */

TEST_WITH(strict_hws_refuses_queues_beyond_the_slots, struct sim_rig *rig)
{
	struct sim_process *process;

	start(rig, rig_info(90006, SCHEDULER_HWS_STRICT, 4, 8));
	process = rig_open(rig, 1);
	CHECK(rig_try_queue(rig, process, 0, SDMA) == 0);
	for (unsigned i = 0; i < 3; i++)
		rig_queue(rig, process, 0);
	CHECK(rig_try_queue(rig, process, 0, AQL) == -EPERM); /* the copy queue counts */
	CHECK(rig_try_queue(rig, process, 0, SDMA) == 4);
	CHECK(rig_update(rig, process, 0, 0, 7) == 0);
	CHECK(rig_try_queue(rig, process, 0, AQL) == -EPERM);
	CHECK(rig_update(rig, process, 4, 0, 7) == 0);
	rig_queue(rig, process, 0);
}

TEST_WITH(strict_hws_counts_the_requesting_process, struct sim_rig *rig)
{
	struct sim_gpu *gpu = start(rig, rig_info(90006, SCHEDULER_HWS_STRICT, 24, 8));

	for (pid_t pid = 1; pid <= 7; pid++)
		rig_queue(rig, rig_open(rig, pid), 0);
	CHECK(rig_try_queue(rig, rig_open(rig, 8), 0, AQL) == -EPERM);
	CHECK(gpu->processes == 7);
	CHECK(rig_try_queue(rig, rig_open(rig, 8), 0, SDMA) == 0);
	CHECK(rig_try_queue(rig, rig_open(rig, 1), 0, AQL) == -EPERM);
}

TEST_WITH(without_a_scheduler_queues_keep_their_slots, struct sim_rig *rig)
{
	struct sim_process *process;

	start(rig, rig_info(90010, SCHEDULER_NONE, 4, 2));
	process = rig_open(rig, 1);
	for (unsigned i = 0; i < 4; i++)
		rig_queue(rig, process, 0);
	CHECK(rig_update(rig, process, 0, 0, 7) == 0);
	CHECK(rig_try_queue(rig, process, 0, AQL) == -EBUSY);
	CHECK(rig_destroy(rig, process, 0) == 0);
	rig_queue(rig, process, 0);
	CHECK(rig_try_queue(rig, rig_open(rig, 2), 0, SDMA) == 0);
	CHECK(rig_try_queue(rig, rig_open(rig, 3), 0, SDMA) == -ENOSPC);
}
