/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define AQL KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
#define SDMA KFD_IOC_QUEUE_TYPE_SDMA
#define MSEC 1000000ULL

static struct sim_process *start(struct sim_rig *rig)
{
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	rig_start(rig, infos, 2);
	return rig_open(rig, 1);
}

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(invalid_faults_are_refused_with_a_message, struct sim_rig *rig)
{
	static const char *const bad[] = {
		"",
		"gone",
		"nothing:1:EIO",
		"create-queue",
		"create-queue:1",
		"create-queue::EIO",
		"create-queue:0:EIO",
		"create-queue:-1:EIO",
		"create-queue:1x:EIO",
		"create-queue: 1:EIO",
		"create-queue:1:EWHAT",
		"create-queue:1:eio",
		"create-queue:1:5",
		"create-queue:1:EIO:",
		"create-queue:1:EIO:0",
		"create-queue:1:EIO:x",
		"create-queue:1:EIO:1:2",
		"create-queue:1:EIO:4294967296",
		"create-queue:99999999999999999999:EIO",
		"CREATE-QUEUE:1:EIO",
		"gone:",
		"gone:x",
		"teardown:",
		"teardown:x",
		"teardown:-1",
		"teardown:99999999999",
		":",
		"*:1:EIO",
		"cost:64:1000",
	};

	start(rig);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(rig_fault(rig, bad[i]) == -EINVAL);
	CHECK(!rig->sim->faults && rig->sim->topology_generation == 1);
}

TEST_WITH(only_the_nth_ioctl_of_a_kind_fails, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);

	CHECK(rig_fault(rig, "create-queue:3:ENOMEM") == 0);
	CHECK(rig_fault(rig, "destroy-queue:1:ETIME") == 0);
	CHECK(rig_queue(rig, process, 0) == 0 && rig_queue(rig, process, 1) == 1);
	CHECK(rig_try_queue(rig, process, 0, AQL) == -ENOMEM);
	CHECK(rig_queue(rig, process, 0) == 2);
	CHECK(rig_destroy(rig, process, 0) == -ETIME);
	CHECK(rig_destroy(rig, process, 0) == 0 && !rig->sim->faults);
}

TEST_WITH(fault_with_a_star_fails_every_ioctl, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);

	CHECK(rig_fault(rig, "create-queue:*:EBUSY") == 0);
	for (unsigned i = 0; i < 5; i++)
		CHECK(rig_try_queue(rig, process, 0, AQL) == -EBUSY);
}

TEST_WITH(fault_can_be_limited_to_one_process, struct sim_rig *rig)
{
	struct sim_process *process = start(rig), *other = rig_open(rig, 2);

	CHECK(rig_fault(rig, "create-queue:2:EIO:2") == 0);
	rig_queue(rig, process, 0);
	rig_queue(rig, process, 0);
	rig_queue(rig, other, 0);
	CHECK(rig_try_queue(rig, process, 0, AQL) == 2);
	CHECK(rig_try_queue(rig, other, 0, AQL) == -EIO);
	rig_queue(rig, other, 0);
}

TEST_WITH(each_fault_counts_its_own_ioctls, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);

	CHECK(rig_fault(rig, "create-queue:2:EIO") == 0);
	CHECK(rig_fault(rig, "create-queue:1:EPERM") == 0);
	CHECK(rig_fault(rig, "create-queue:2:ENOSPC") == 0);
	CHECK(rig_try_queue(rig, process, 0, AQL) == -EPERM);
	CHECK(rig_try_queue(rig, process, 0, AQL) == -EIO); /* the older one says */
	CHECK(rig_try_queue(rig, process, 0, AQL) == 0 && !rig->sim->faults);
}

TEST_WITH(every_ioctl_can_be_named_in_a_fault, struct sim_rig *rig)
{
	unsigned n = 0;

	start(rig);
	for (unsigned nr = 0; nr < 256; nr++) {
		char text[64];

		if (!sim_ioctl_name(nr))
			continue;
		snprintf(text, sizeof(text), "%s:7:EIO", sim_ioctl_name(nr));
		CHECK(rig_fault(rig, text) == 0);
		n++;
	}
	CHECK(n == 0x27);
}

/* ---- a GPU goes ---- */

TEST_WITH(removed_gpu_loses_its_queues_and_other_gpus_keep_theirs, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
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
	CHECK(rig_gws(rig, process, 0, 1) == -EACCES);
	CHECK(rig_update(rig, process, 1, 100, 7) == 0);
	CHECK(rig_mask(rig, process, 1, &mask, 32) == 0);
	CHECK(rig_destroy(rig, process, 0) == 0 && rig_destroy(rig, process, 2) == 0);
	CHECK(rig->sim->gpus[0].processes == 0);
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == -EINVAL);
}

TEST_WITH(removed_gpu_is_not_listed_and_its_memory_can_be_freed, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	struct kfd_ioctl_get_process_apertures_new_args apertures = { 0 };
	struct kfd_ioctl_alloc_memory_of_gpu_args memory = {
		.va_addr = 1U << 30,
		.size = 4096,
		.gpu_id = rig_id(rig, 0),
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = RIG_MEMORY,
		.n_devices = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args gone;

	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &memory) == 0);
	map.handle = gone.handle = memory.handle;
	memcpy(rig_at(rig, RIG_MEMORY), &memory.gpu_id, sizeof(memory.gpu_id));
	CHECK(RIG_CALL(rig, process, MAP_MEMORY_TO_GPU, &map) == 0);
	CHECK(rig_fault(rig, "gone:0000:03:00.0") == 0);
	map.n_success = 0;
	CHECK(RIG_CALL(rig, process, MAP_MEMORY_TO_GPU, &map) == -EINVAL);
	CHECK(RIG_CALL(rig, process, UNMAP_MEMORY_FROM_GPU, &map) == 0);
	CHECK(RIG_CALL(rig, process, FREE_MEMORY_OF_GPU, &gone) == 0);
	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &memory) == -EINVAL);
	CHECK(RIG_CALL(rig, process, GET_PROCESS_APERTURES_NEW, &apertures) == 0);
	CHECK(apertures.num_of_nodes == 1);
}

TEST_WITH(cost_fault_applies_to_work_groups_of_that_size, struct sim_rig *rig)
{
	static const char *const bad[] = {
		"cost",     "cost:64",   "cost:0:1000", "cost:1025:1000",     "cost:x:1000",
		"cost:64:", "cost:64:x", "cost:64:-1",  "cost:64:4294967296", "cost:64:1:1",
	};
	struct gpu_info info = rig_vega();

	rig_start_with(rig, &info, 1, (struct sim_config){ .timing = true }, RIG_ARENA);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(rig_fault(rig, bad[i]) == -EINVAL);
	CHECK(rig_fault(rig, "cost:64:1000") == 0 && rig_fault(rig, "cost:1024:7") == 0);
	CHECK(rig->sim->block_ns[64] == 1000 && rig->sim->block_ns[1024] == 7);
	CHECK(rig_fault(rig, "cost:64:0") == 0 && rig->sim->block_ns[64] == 0);
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
	memset(data, 0, sizeof(*data));
	data->event_id = event.event_id;
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
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	rig_start(rig, infos, 2);
	for (unsigned i = 0; i < 100; i++) { /* the arena would not have room for all at once */
		have_everything(rig, rig_open(rig, 1));
		sim_exit(rig->sim, 1, rig->now);
		check_nothing(rig);
	}
	sim_exit(rig->sim, 1, rig->now);
	sim_exit(rig->sim, 99, rig->now);
}

TEST_WITH(queues_of_an_ended_process_stay_until_teardown, struct sim_rig *rig)
{
	struct gpu_info infos[] = { rig_vega(), rig_navi() };
	struct sim_process *dead, *next;
	struct kfd_ioctl_get_version_args version;

	rig_start(rig, infos, 2);
	CHECK(rig_fault(rig, "teardown:5") == 0);
	dead = rig_open(rig, 1);
	have_everything(rig, dead);
	sim_exit(rig->sim, 1, rig->now);
	CHECK(dead->dead && !sim_find_process(rig->sim, 1) && rig->sim->processes == dead);
	CHECK(rig->sim->gpus[0].compute_queues == 1 && rig->sim->gpus[0].processes == 1);
	CHECK(dead->queues->active && !rig->sim->waits);
	CHECK(RIG_CALL(rig, dead, GET_VERSION, &version) == -EBADF);
	next = rig_open(rig, 1); /* the pid again */
	CHECK(next != dead && rig_queue(rig, next, 0) == 0);
	CHECK(rig->sim->gpus[0].processes == 2);
	CHECK(rig_fault(rig, "teardown:0") == 0); /* for those that die from now on */
	sim_exit(rig->sim, 1, rig->now);
	CHECK(rig->sim->gpus[0].processes == 1);
	CHECK(sim_work(rig->sim, rig->now + 2 * MSEC) == 3 * MSEC);
	CHECK(rig->sim->gpus[0].processes == 1);
	CHECK(sim_work(rig->sim, rig->now + 5 * MSEC) == UINT64_MAX);
	check_nothing(rig);
	CHECK(rig_fault(rig, "teardown:7") == 0 && rig->sim->teardown_ns == 7 * MSEC);
}
