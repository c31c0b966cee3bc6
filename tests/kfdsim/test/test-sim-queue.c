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

TEST_WITH(a_ring_is_of_1024_bytes_at_least, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());
	struct kfd_ioctl_create_queue_args args = rig_queue_args(rig, 0, AQL);
	struct kfd_ioctl_update_queue_args update = { .queue_percentage = 1, .ring_size = 2 };

	args.ring_size = 0;
	CHECK(RIG_CALL(rig, process, CREATE_QUEUE, &args) == 0 && args.ring_size == 1024);
	CHECK(process->queues->ring_size == 1024);
	CHECK(RIG_CALL(rig, process, UPDATE_QUEUE, &update) == 0);
	CHECK(process->queues->ring_size == 1024);
}

TEST_WITH(shift_fault_rotates_the_bits_of_working_cus, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());
	unsigned cus = geometry_cus(&rig->sim->gpus[0].info.geometry);
	uint32_t mask[2] = { 1, UINT32_C(1) << (cus - 33) }; /* the first and the last one */

	rig_queue(rig, process, 0);
	CHECK(cus > 33 && cus < 64);
	CHECK(rig_fault(rig, "shift:32") == -EINVAL && rig_fault(rig, "shift:x") == -EINVAL);
	CHECK(rig_fault(rig, "shift:2") == 0);
	CHECK(rig_mask(rig, process, 0, mask, 64) == 0);
	CHECK(process->queues->mask[0] == (4 | 2) && process->queues->mask[1] == 0);
	CHECK(rig_fault(rig, "shift:0") == 0 && rig_mask(rig, process, 0, mask, 64) == 0);
	CHECK(memcmp(process->queues->mask, mask, sizeof(mask)) == 0);
}

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

TEST_WITH(one_queue_per_process_and_gpu_can_have_gws, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());

	CHECK(rig_gws(rig, process, 0, 1) == -EINVAL);
	rig_queue(rig, process, 0);
	rig_queue(rig, process, 0);
	CHECK(rig_gws(rig, process, 0, 0) == -EINVAL);
	CHECK(rig_gws(rig, process, 0, 64) == 0 && rig->sim->gpus[0].gws_queues == 1);
	CHECK(rig_gws(rig, process, 1, 64) == -EBUSY);
	CHECK(rig_gws(rig, process, 0, 64) == -EBUSY);
	CHECK(rig_gws(rig, process, 0, 0) == 0 && rig->sim->gpus[0].gws_queues == 0);
	CHECK(rig_gws(rig, process, 1, 64) == 0);
	CHECK(rig_destroy(rig, process, 1) == 0 && rig->sim->gpus[0].gws_queues == 0);
	CHECK(rig_gws(rig, process, 0, 64) == 0);
	rig_stop(rig);

	process = start(rig, rig_info(90006, SCHEDULER_NONE, 24, 8));
	rig_queue(rig, process, 0);
	CHECK(rig_gws(rig, process, 0, 64) == -ENODEV);
}

TEST_WITH(wave_state_is_readable_of_inactive_queues, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega());
	struct kfd_ioctl_get_queue_wave_state_args args = { .ctl_stack_used_size = 7 };

	CHECK(RIG_CALL(rig, process, GET_QUEUE_WAVE_STATE, &args) == -EFAULT);
	rig_queue(rig, process, 0);
	CHECK(RIG_CALL(rig, process, GET_QUEUE_WAVE_STATE, &args) == -EINVAL);
	CHECK(rig_update(rig, process, 0, 0, 7) == 0);
	CHECK(RIG_CALL(rig, process, GET_QUEUE_WAVE_STATE, &args) == 0);
	CHECK(args.ctl_stack_used_size == 0);
	CHECK(rig_try_queue(rig, process, 0, KFD_IOC_QUEUE_TYPE_SDMA) == 1);
	args.queue_id = 1;
	CHECK(RIG_CALL(rig, process, GET_QUEUE_WAVE_STATE, &args) == -EINVAL);
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

TEST_WITH(a_process_has_1024_queue_ids, struct sim_rig *rig)
{
	struct gpu_info infos[5];
	struct sim_process *process;
	unsigned n = 0;

	for (size_t i = 0; i < 5; i++)
		infos[i] = rig_info(90402, SCHEDULER_HWS, 24, 6);
	rig_start(rig, infos, 5);
	process = rig_open(rig, PID);
	for (size_t i = 0; i < 4; i++)
		n += fill(rig, process, i, -ENOSPC);
	CHECK(n + fill(rig, process, 4, -ENOMEM) == SIM_QUEUES_MAX);
	CHECK(rig_destroy(rig, process, 77) == 0);
	CHECK(rig_queue(rig, process, 4) == 77);
}

TEST_WITH(a_gpu_has_4096_queues, struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();
	unsigned n = 0;

	rig_start(rig, &info, 1);
	for (pid_t pid = 1; pid <= 32; pid++)
		n += fill(rig, rig_open(rig, pid), 0, -ENOSPC);
	CHECK(n + fill(rig, rig_open(rig, 33), 0, -EPERM) == 4096);
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

TEST_WITH(queue_creation_fails_without_free_doorbells, struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();
	pid_t pid = 1;

	rig_start_with(rig, &info, 1, (struct sim_config){ 0 }, 1U << 20);
	while (rig_try_queue(rig, rig_open(rig, pid), 0, AQL) == 0)
		pid++;
	CHECK(pid == 128); /* the first page is nobody's, and a slice has two */
	CHECK(rig_try_queue(rig, rig_open(rig, pid), 0, AQL) == -ENOMEM);
	sim_exit(rig->sim, 1, rig->now);
	CHECK(rig_try_queue(rig, rig_open(rig, pid), 0, AQL) == 0);
}
