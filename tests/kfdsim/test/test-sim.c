/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What neither tests/system/requests.expected, which has the answers of real drivers, nor AMD's user space
 * asks of the driver: contexts of Linux 7.2, a GPU that goes or is reset, a process that ends. */

#include <errno.h>
#include <sys/ioctl.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define PID 100
#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define SDMA KFD_IOC_QUEUE_TYPE_SDMA
#define MSEC 1000000ULL

static struct sim_process *start(struct sim_rig *rig, unsigned kfd_minor)
{
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	rig_start_with(rig, infos, 2, (struct sim_config){ .kfd_minor = kfd_minor }, RIG_ARENA);
	return rig_open(rig, PID);
}

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(short_arguments_are_padded_with_zeros_and_not_overrun, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, KFD_LINUX_6_1);
	uint8_t argument[sizeof(struct kfd_ioctl_get_version_args)];

	memset(argument, 0xaa, sizeof(argument));
	CHECK(rig_call(rig, process, _IOC(_IOC_READ, 'K', 1, 4), argument, 4) == 0);
	CHECK(argument[0] == 1 && argument[4] == 0xaa);
	CHECK(rig_call(rig, process, _IOC(_IOC_READ, 'K', 1, 0), NULL, 0) == 0);
	CHECK(rig_call(rig, process, AMDKFD_IOC_GET_VERSION, argument, sizeof(argument)) == 0);
	CHECK(argument[4] == 11);
}

/* ---- Linux 7.2: kfd_ioctl_create_process() ---- */

/* A second open file of the process, of a context of its own. */
static struct sim_process *make_context(struct sim_rig *rig, struct sim_process *primary)
{
	struct sim_process *file = primary;

	CHECK(sim_ioctl_file(rig->sim, &file, PID, ++rig->request, _IO('K', 0x27), NULL, 0, 0) ==
	      0);
	CHECK(file != primary && file->pid == PID);
	return file;
}

TEST_WITH(a_file_becomes_that_of_a_secondary_context, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, KFD_LINUX_7_2);
	struct sim_process *first = make_context(rig, process), *second, *again = first;

	second = make_context(rig, process);
	CHECK(first->context == 0 && second->context == 1);
	CHECK(sim_ioctl_file(rig->sim, &again, PID, 1, _IO('K', 0x27), NULL, 0, 0) == -EINVAL);
	CHECK(again == first && rig_open(rig, PID) == process);
	CHECK(rig_call(rig, process, _IO('K', 0x27), NULL, 0) == -EOPNOTSUPP); /* no file */

	/* All contexts of a process are evicted together. */
	CHECK(rig_fault(rig, "evict:100") == 0 && first->evicted && process->evicted);
	CHECK(rig_fault(rig, "restore:100") == 0 && !first->evicted && !process->evicted);

	/* Its number is free when the file is closed; the primary one lives on. */
	sim_close(first, 0);
	sim_close(process, 0);
	CHECK(make_context(rig, process)->context == 0);
	sim_exit(rig->sim, PID, 0);
	CHECK(!rig->sim->processes);
}

/* ---- a GPU goes, or is reset ---- */

TEST_WITH(removed_gpu_loses_its_queues_and_other_gpus_keep_theirs, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, KFD_LINUX_6_1);
	const uint32_t mask = 0xf;
	static struct sim_gpu other;

	rig_queue(rig, process, 0);
	rig_queue(rig, process, 1);
	CHECK(rig_try_queue(rig, process, 0, SDMA) == 2);
	memcpy(&other, &rig->sim->gpus[1], sizeof(other));
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == 0);
	CHECK(memcmp(&other, &rig->sim->gpus[1], sizeof(other)) == 0);
	CHECK(rig->sim->gpus[0].gone && rig->sim->topology_generation == 2);
	CHECK(rig->sim->gpus[0].compute_queues == 0 && rig->sim->gpus[0].sdma_queues == 0);
	CHECK(!rig->sim->gpus[0].hqds[8] && !sim_find_queue(process, 0)->active);

	CHECK(rig_try_queue(rig, process, 0, AQL) == -EINVAL);
	CHECK(rig_update(rig, process, 0, 100, 7) == -EACCES);
	CHECK(rig_mask(rig, process, 0, &mask, 32) == -EACCES);
	CHECK(rig_update(rig, process, 1, 100, 7) == 0);
	CHECK(rig_mask(rig, process, 1, &mask, 32) == 0);
	CHECK(rig_destroy(rig, process, 0) == 0 && rig_destroy(rig, process, 2) == 0);
	CHECK(rig->sim->gpus[0].processes == 0);
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == -EINVAL);
}

/* kfd_signal_reset_event() tells of a reset; kgd2kfd_device_exit() tells of nothing. */
TEST_WITH(gpu_reset_wakes_waiting_processes_and_gpu_removal_does_not, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, KFD_LINUX_6_1);
	struct kfd_ioctl_create_event_args event = { .event_type = KFD_IOC_EVENT_HW_EXCEPTION,
						     .auto_reset = true };
	struct kfd_ioctl_wait_events_args wait = { .events_ptr = RIG_MEMORY,
						   .num_events = 1,
						   .timeout = UINT32_MAX };
	struct kfd_event_data *data = rig_at(rig, RIG_MEMORY);

	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &event) == 0);
	data->event_id = event.event_id;
	CHECK(RIG_CALL(rig, process, WAIT_EVENTS, &wait) == -EINPROGRESS);
	CHECK(rig_fault(rig, "reset:0000:03:00.0") == 0);
	CHECK(rig->n_answers == 1 && rig->answers[0].result == 0);
	CHECK(data->hw_exception_data.gpu_id == rig_id(rig, 0));
	CHECK(data->hw_exception_data.memory_lost == 1);
	*data = (struct kfd_event_data){ .event_id = event.event_id };
	CHECK(RIG_CALL(rig, process, WAIT_EVENTS, &wait) == -EINPROGRESS);
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == 0 && rig->n_answers == 1);
}

/* ---- a process ends ---- */

static void have_everything(struct sim_rig *rig, struct sim_process *process)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args memory = {
		.va_addr = 1U << 30,
		.size = 3U << 20,
		.gpu_id = rig_id(rig, 0),
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
	};
	struct kfd_ioctl_create_event_args event = { 0 };
	struct kfd_ioctl_wait_events_args wait = { .events_ptr = RIG_MEMORY,
						   .num_events = 1,
						   .timeout = UINT32_MAX };
	struct kfd_event_data *data = rig_at(rig, RIG_MEMORY);

	rig_queue(rig, process, 0);
	rig_queue(rig, process, 1);
	CHECK(rig_try_queue(rig, process, 1, SDMA) == 2);
	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &memory) == 0);
	CHECK(RIG_CALL(rig, process, CREATE_EVENT, &event) == 0);
	*data = (struct kfd_event_data){ .event_id = event.event_id };
	CHECK(RIG_CALL(rig, process, WAIT_EVENTS, &wait) == -EINPROGRESS);
}

static void check_nothing(const struct sim_rig *rig)
{
	CHECK(!rig->sim->processes && !rig->sim->waits && rig->n_answers == 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct sim_gpu *gpu = &rig->sim->gpus[i];

		CHECK(gpu->compute_queues + gpu->sdma_queues + gpu->processes == 0);
		CHECK(gpu->vram_used == 0);
		for (unsigned j = 0; j < SIM_HQDS_MAX; j++)
			CHECK(!gpu->hqds[j]);
	}
}

TEST_WITH(ended_process_leaves_no_queues_or_memory, struct sim_rig *rig)
{
	start(rig, KFD_LINUX_6_1);
	sim_exit(rig->sim, PID, rig->now);
	for (unsigned i = 0; i < 100; i++) { /* the arena would not have room for all at once */
		have_everything(rig, rig_open(rig, 1));
		sim_exit(rig->sim, 1, rig->now);
		check_nothing(rig);
	}
}

TEST_WITH(queues_of_an_ended_process_stay_until_teardown, struct sim_rig *rig)
{
	struct sim_process *dead = start(rig, KFD_LINUX_6_1), *next;
	struct kfd_ioctl_get_version_args version;

	CHECK(rig_fault(rig, "teardown:5") == 0);
	have_everything(rig, dead);
	sim_exit(rig->sim, PID, rig->now);
	CHECK(dead->dead && !sim_find_process(rig->sim, PID) && rig->sim->processes == dead);
	CHECK(rig->sim->gpus[0].compute_queues == 1 && rig->sim->gpus[0].processes == 1);
	CHECK(dead->queues->active && !rig->sim->waits);
	CHECK(RIG_CALL(rig, dead, GET_VERSION, &version) == -EBADF);
	next = rig_open(rig, PID); /* the pid again */
	CHECK(next != dead && rig_queue(rig, next, 0) == 0);
	CHECK(rig->sim->gpus[0].processes == 2);
	CHECK(rig_fault(rig, "teardown:0") == 0); /* for those that die from now on */
	sim_exit(rig->sim, PID, rig->now);
	CHECK(rig->sim->gpus[0].processes == 1);
	CHECK(sim_work(rig->sim, rig->now + 2 * MSEC) == 3 * MSEC);
	CHECK(rig->sim->gpus[0].processes == 1);
	CHECK(sim_work(rig->sim, rig->now + 5 * MSEC) == UINT64_MAX);
	check_nothing(rig);
}
