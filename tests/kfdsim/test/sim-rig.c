/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/test/sim-rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/mask/geometry.h"

static bool mine(uint64_t address, size_t size)
{
	return address >= RIG_MEMORY && size <= RIG_SIZE && address - RIG_MEMORY <= RIG_SIZE - size;
}

static int read_memory(void *userdata, pid_t pid, uint64_t address, void *buf, size_t size)
{
	(void)pid;
	if (!mine(address, size))
		return -EFAULT;
	memcpy(buf, rig_at(userdata, address), size);
	return 0;
}

static int write_memory(void *userdata, pid_t pid, uint64_t address, const void *buf, size_t size)
{
	(void)pid;
	if (!mine(address, size))
		return -EFAULT;
	memcpy(rig_at(userdata, address), buf, size);
	return 0;
}

static void keep_answer(void *userdata, uint64_t request, int result, const void *argument,
			size_t size)
{
	struct sim_rig *rig = userdata;
	struct rig_answer *answer = &rig->answers[rig->n_answers++ % RIG_ANSWERS];

	*answer = (struct rig_answer){ .request = request, .result = result, .size = size };
	CHECK(size <= sizeof(answer->args));
	memcpy(&answer->args, argument, size);
}

void *rig_at(struct sim_rig *rig, uint64_t address)
{
	CHECK(mine(address, 1));
	return rig->memory + (address - RIG_MEMORY);
}

/* ---- GPUs ---- */

struct gpu_info rig_info(unsigned target, enum scheduler scheduler, unsigned queue_slots,
			 unsigned process_slots)
{
	bool wgp = target >= 100000;
	struct gpu_info info = {
		.gfx_target = target,
		.scheduler = scheduler,
		.queue_slots = queue_slots,
		.process_slots = process_slots,
		.pipes = 4,
		.queues_per_pipe = wgp ? 4 : 8,
		.sdma_queues = 16,
		.sdma_xgmi_queues = 8,
		.vram_bytes = 8U << 20,
		.geometry = { .xccs = 1,
			      .engines = 4,
			      .arrays = wgp ? 2 : 1,
			      .array_cus = 16,
			      .wgp = wgp },
	};

	CHECK(geometry_spread(&info.geometry, wgp ? 80 : 60) == 0);
	return info;
}

struct gpu_info rig_vega(void)
{
	return rig_info(90006, SCHEDULER_HWS, 24, 8);
}

struct gpu_info rig_navi(void)
{
	return rig_info(100300, SCHEDULER_HWS, 8, 8);
}

struct gpu_info rig_navi3(void)
{
	return rig_info(110000, SCHEDULER_MES, 8, 8);
}

void rig_start_with(struct sim_rig *rig, const struct gpu_info *infos, size_t n,
		    struct sim_config config, uint64_t arena_size)
{
	struct gpu_info named[SIM_GPUS_MAX];
	unsigned minors[SIM_GPUS_MAX];

	memset(rig, 0, sizeof(*rig));
	rig->now = 1000000000;
	for (size_t i = 0; i < n; i++) {
		named[i] = infos[i];
		named[i].kfd_gpu_id = 0x1000U + 0x101U * (uint32_t)i;
		minors[i] = 128 + (unsigned)i;
		snprintf(named[i].name, sizeof(named[i].name), "0000:%02zx:00.0", 3 + i);
	}
	rig->world = (struct sim_world){
		.userdata = rig,
		.read = read_memory,
		.write = write_memory,
		.answer = keep_answer,
		.arena_size = arena_size,
	};
	rig->world.arena = mmap(NULL, arena_size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(rig->world.arena != MAP_FAILED);
	config.gpus = named;
	config.minors = minors;
	config.n_gpus = n;
	CHECK(sim_new(&config, &rig->world, &rig->sim) == 0);
}

void rig_start(struct sim_rig *rig, const struct gpu_info *infos, size_t n)
{
	rig_start_with(rig, infos, n, (struct sim_config){ 0 }, RIG_ARENA);
}

void rig_stop(struct sim_rig *rig)
{
	rig->sim = sim_free(rig->sim);
	munmap(rig->world.arena, rig->world.arena_size);
}

uint32_t rig_id(const struct sim_rig *rig, size_t gpu)
{
	return rig->sim->gpus[gpu].info.kfd_gpu_id;
}

/* ---- calls ---- */

int rig_call(struct sim_rig *rig, struct sim_process *process, unsigned cmd, void *argument,
	     size_t size)
{
	return sim_ioctl(rig->sim, process, process->pid, ++rig->request, cmd, argument, size,
			 rig->now);
}

struct sim_process *rig_open(struct sim_rig *rig, pid_t pid)
{
	struct sim_process *process;

	CHECK(sim_open(rig->sim, pid, &process) == 0);
	for (size_t i = 0; i < rig->sim->n_gpus; i++) {
		struct kfd_ioctl_acquire_vm_args args = { .drm_fd = RIG_FD,
							  .gpu_id = rig_id(rig, i) };

		if (!rig->sim->gpus[i].gone)
			CHECK(RIG_CALL(rig, process, ACQUIRE_VM, &args) == 0);
	}
	return process;
}

struct kfd_ioctl_create_queue_args rig_queue_args(const struct sim_rig *rig, size_t gpu,
						  uint32_t type)
{
	return (struct kfd_ioctl_create_queue_args){
		.ring_base_address = RIG_MEMORY,
		.ring_size = 4096,
		.write_pointer_address = RIG_MEMORY + 0x8000,
		.read_pointer_address = RIG_MEMORY + 0x8008,
		.gpu_id = rig_id(rig, gpu),
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
}

/* The id, or a negative errno. */
int rig_try_queue(struct sim_rig *rig, struct sim_process *process, size_t gpu, uint32_t type)
{
	struct kfd_ioctl_create_queue_args args = rig_queue_args(rig, gpu, type);
	int r = RIG_CALL(rig, process, CREATE_QUEUE, &args);

	return r < 0 ? r : (int)args.queue_id;
}

unsigned rig_queue(struct sim_rig *rig, struct sim_process *process, size_t gpu)
{
	int r = rig_try_queue(rig, process, gpu, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);

	CHECK(r >= 0);
	return (unsigned)r;
}

int rig_update(struct sim_rig *rig, struct sim_process *process, unsigned id, uint32_t percentage,
	       uint32_t priority)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = RIG_MEMORY,
		.queue_id = id,
		.ring_size = 4096,
		.queue_percentage = percentage,
		.queue_priority = priority,
	};

	return RIG_CALL(rig, process, UPDATE_QUEUE, &args);
}

int rig_destroy(struct sim_rig *rig, struct sim_process *process, unsigned id)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = id };

	return RIG_CALL(rig, process, DESTROY_QUEUE, &args);
}

int rig_mask(struct sim_rig *rig, struct sim_process *process, unsigned id, const uint32_t *mask,
	     uint32_t bits)
{
	struct kfd_ioctl_set_cu_mask_args args = {
		.queue_id = id,
		.num_cu_mask = bits,
		.cu_mask_ptr = RIG_MEMORY + 0x9000,
	};

	memcpy(rig_at(rig, args.cu_mask_ptr), mask, bits / 8);
	return RIG_CALL(rig, process, SET_CU_MASK, &args);
}

int rig_gws(struct sim_rig *rig, struct sim_process *process, unsigned id, uint32_t n)
{
	struct kfd_ioctl_alloc_queue_gws_args args = { .queue_id = id, .num_gws = n };

	return RIG_CALL(rig, process, ALLOC_QUEUE_GWS, &args);
}

int rig_fault(struct sim_rig *rig, const char *text)
{
	char why[256] = "";
	int r = sim_fault(rig->sim, text, rig->now, why, sizeof(why));

	CHECK((r == 0) == (why[0] == '\0'));
	return r;
}
