/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The drivers of Linux 6.12 and 7.2, KFD 1.17 and 1.23, where they are others than that of 6.1. */

#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"

#define PID 100
#define PAGE 4096U
#define BY_ENGINE 4U

/* CREATE_QUEUE as its callers have it from 6.12 on. The header of Debian 13 has these members, too. */
struct create_queue {
	union {
		struct kfd_ioctl_create_queue_args args;
		struct {
			uint8_t before[88];
			uint32_t engine, pad;
		};
	};
};
_Static_assert(offsetof(struct create_queue, engine) == 88, "sdma_engine_id");

/* Buffers of a queue, each of its own page. */
enum { RING = 1, WRITE, READ, END_OF_PIPE, SAVE };

static uint64_t at(unsigned buffer)
{
	return (uint64_t)buffer << 30;
}

static struct sim_process *start(struct sim_rig *rig, struct gpu_info info, unsigned kfd_minor)
{
	static const struct sim_node each[] = {
		{ .sdma_engines = 2, .sdma_xgmi_engines = 1 },
	};
	struct sim_config config = { .each = each, .kfd_minor = kfd_minor };

	info.sdma_queues = 4;
	info.sdma_xgmi_queues = 2;
	rig_start_with(rig, &info, 1, config, RIG_ARENA);
	return rig_open(rig, PID);
}

static void make_buffer(struct sim_rig *rig, struct sim_process *process, unsigned buffer,
			uint64_t size)
{
	uint32_t id = rig_id(rig, 0);
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = at(buffer),
		.size = size,
		.gpu_id = id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
		.mmap_offset = at(buffer),
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = RIG_MEMORY + 0xa000,
		.n_devices = 1,
	};

	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &alloc) == 0);
	memcpy(rig_at(rig, RIG_MEMORY + 0xa000), &id, sizeof(id));
	map.handle = alloc.handle;
	CHECK(RIG_CALL(rig, process, MAP_MEMORY_TO_GPU, &map) == 0);
}

static uint64_t save_size(const struct sim_rig *rig)
{
	struct sim_save_area area = sim_save_area(&rig->sim->gpus[0].info);
	uint64_t all = ((uint64_t)area.all + area.debugger) * rig->sim->gpus[0].info.geometry.xccs;

	return (all + PAGE - 1) / PAGE * PAGE;
}

static void make_buffers(struct sim_rig *rig, struct sim_process *process)
{
	for (unsigned buffer = RING; buffer <= END_OF_PIPE; buffer++)
		make_buffer(rig, process, buffer, PAGE);
	make_buffer(rig, process, SAVE, save_size(rig));
}

/* As libhsakmt asks. */
static struct create_queue queue_args(const struct sim_rig *rig, uint32_t type)
{
	struct sim_save_area area = sim_save_area(&rig->sim->gpus[0].info);

	return (struct create_queue){ .args = {
					      .ring_base_address = at(RING),
					      .ring_size = PAGE,
					      .write_pointer_address = at(WRITE) + 8,
					      .read_pointer_address = at(READ) + 16,
					      .eop_buffer_address = at(END_OF_PIPE),
					      .eop_buffer_size = PAGE,
					      .ctx_save_restore_address = at(SAVE),
					      .ctx_save_restore_size = area.all,
					      .ctl_stack_size = area.control,
					      .gpu_id = rig_id(rig, 0),
					      .queue_type = type,
					      .queue_percentage = 100,
					      .queue_priority = 7,
				      } };
}

static int create(struct sim_rig *rig, struct sim_process *process, struct create_queue args)
{
	int r = rig_call(rig, process, _IOWR('K', 0x02, struct create_queue), &args, sizeof(args));

	return r < 0 ? r : (int)args.args.queue_id;
}

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

static int trap(struct sim_rig *rig, struct sim_process *process, uint32_t pid, uint32_t op)
{
	struct sim_dbg_trap_args args = { .pid = pid, .op = op };

	return rig_call(rig, process, _IOWR('K', 0x26, struct sim_dbg_trap_args), &args,
			sizeof(args));
}

TEST_WITH(a_debugger_is_refused, struct sim_rig *rig)
{
	struct gpu_info without = rig_vega();
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_6_12);

	rig_open(rig, PID + 1);
	CHECK(trap(rig, process, PID + 2, 0) == -ESRCH);
	CHECK(trap(rig, process, PID + 1, 6) == -EPERM);
	CHECK(trap(rig, process, PID, 6) == -EINVAL);
	CHECK(trap(rig, process, PID, 0) == -EOPNOTSUPP);
	rig_stop(rig);

	without.scheduler = SCHEDULER_NONE;
	process = start(rig, without, KFD_LINUX_6_12);
	CHECK(trap(rig, process, PID, 0) == -EINVAL);
}

TEST_WITH(a_queue_is_refused_without_buffers_of_the_right_size, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_6_12);
	struct create_queue good = queue_args(rig, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), bad = good;

	CHECK(create(rig, process, good) == -EINVAL);
	make_buffers(rig, process);
	CHECK(create(rig, process, good) == 0);
	bad.args.write_pointer_address = at(WRITE) + PAGE;
	CHECK(create(rig, process, bad) == -EINVAL);
	bad = good;
	bad.args.read_pointer_address = at(SAVE); /* of another size */
	CHECK(create(rig, process, bad) == -EINVAL);
	bad = good;
	bad.args.ring_size = 2 * PAGE;
	CHECK(create(rig, process, bad) == -EINVAL);
	bad = good;
	bad.args.eop_buffer_size = PAGE / 2;
	CHECK(create(rig, process, bad) == -EINVAL);
	bad = good;
	bad.args.ctl_stack_size += PAGE;
	CHECK(create(rig, process, bad) == -EINVAL);
	bad = good;
	bad.args.ctx_save_restore_size -= PAGE;
	CHECK(create(rig, process, bad) == -EINVAL);
	bad = good;
	bad.args.ctx_save_restore_address = at(RING);
	CHECK(create(rig, process, bad) == -EINVAL);
	rig_stop(rig);

	process = start(rig, rig_vega(), KFD_LINUX_6_1);
	CHECK(create(rig, process, good) == 0); /* nobody asks there */
}

/* A dump of an MI210 with Linux 6.12 would say so: the sizes come from the kernel's own formula. */
TEST(the_area_for_a_preempted_queue_has_the_size_that_topology_tells)
{
	struct gpu_info info = rig_info(90010, SCHEDULER_HWS, 24, 13);
	struct sim_save_area area;

	info.geometry.engines = 8;
	info.geometry.array_cus = 14;
	CHECK(geometry_spread(&info.geometry, 104) == 0);
	area = sim_save_area(&info);
	CHECK(area.control == 0x9000); /* 104 * 40 waves, but 8 * 512 at most, of 8 bytes */
	CHECK(area.all == 0x9000 + 104 * 0x95000);
	CHECK(area.debugger == 4096 * 32);
	area = sim_save_area(&(struct gpu_info){ .gfx_target = 80001, .geometry = info.geometry });
	CHECK(area.control == 0x9000 && area.all == 0x9000 + 104 * 0x55000);
	info.gfx_target = 80000;
	CHECK(sim_save_area(&info).all == 0);
	info = rig_navi(); /* 80 CUs */
	area = sim_save_area(&info);
	CHECK(area.control == 0x7000); /* the hardware's limit */
	info = rig_navi3();
	area = sim_save_area(&info);
	CHECK(area.control == 0x8000 && area.all == 0x8000 + 80 * 0x75000);
}

TEST_WITH(an_sdma_queue_by_its_engine_is_one_of_that_engine, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_6_12);
	struct create_queue args = queue_args(rig, BY_ENGINE);

	make_buffers(rig, process);
	args.engine = 1;
	CHECK(create(rig, process, args) == 0);
	CHECK(create(rig, process, args) == 1);
	CHECK(sim_find_queue(process, 0)->sdma == 1 && sim_find_queue(process, 1)->sdma == 3);
	CHECK(sim_find_queue(process, 0)->type == SIM_SDMA);
	CHECK(create(rig, process, args) == -ENOMEM); /* engine 0 has two */
	CHECK(create(rig, process, queue_args(rig, KFD_IOC_QUEUE_TYPE_SDMA)) == 2);
	CHECK(sim_find_queue(process, 2)->sdma == 0);
	args.engine = 2; /* the one for XGMI */
	CHECK(create(rig, process, args) == 3);
	CHECK(sim_find_queue(process, 3)->type == SIM_SDMA_XGMI);
	args.engine = 3;
	CHECK(create(rig, process, args) == -EINVAL);
	rig_stop(rig);

	process = start(rig, rig_vega(), KFD_LINUX_6_1);
	CHECK(create(rig, process, args) == -524); /* ENOTSUPP of the kernel */
}

TEST_WITH(a_percentage_has_eight_bits, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_6_12);
	struct create_queue args = queue_args(rig, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);

	make_buffers(rig, process);
	args.args.queue_percentage = 0x100 | 50;
	CHECK(create(rig, process, args) == 0);
	CHECK(sim_find_queue(process, 0)->percentage == 50);
	CHECK(rig_update(rig, process, 0, 0x200 | 60, 7) == 0);
	CHECK(sim_find_queue(process, 0)->percentage == 60);
	CHECK(rig_update(rig, process, 0, 101, 7) == -EINVAL);
	rig_stop(rig);

	process = start(rig, rig_vega(), KFD_LINUX_6_1);
	CHECK(create(rig, process, args) == -EINVAL);
}

/* ---- Linux 7.2 ---- */

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
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_7_2);
	struct sim_process *first = make_context(rig, process), *second, *again = first;

	second = make_context(rig, process);
	CHECK(first->context == 0 && second->context == 1);
	CHECK(sim_ioctl_file(rig->sim, &again, PID, 1, _IO('K', 0x27), NULL, 0, 0) == -EINVAL);
	CHECK(again == first && rig_open(rig, PID) == process);
	CHECK(rig_call(rig, process, _IO('K', 0x27), NULL, 0) == -EOPNOTSUPP); /* no file */

	/* Its number is free when the file is closed; the primary one lives on. */
	sim_close(first, 0);
	sim_close(process, 0);
	CHECK(make_context(rig, process)->context == 0);
	sim_exit(rig->sim, PID, 0);
	CHECK(!rig->sim->processes);
}

TEST_WITH(a_context_has_queues_of_its_own, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_7_2), *context;
	struct kfd_ioctl_alloc_memory_of_gpu_args user = {
		.va_addr = at(RING),
		.size = PAGE,
		.gpu_id = rig_id(rig, 0),
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
		.mmap_offset = at(RING),
	};
	struct kfd_ioctl_acquire_vm_args vm = { .drm_fd = 77, .gpu_id = rig_id(rig, 0) };
	struct create_queue args = queue_args(rig, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);

	make_buffers(rig, process);
	context = make_context(rig, process);
	CHECK(create(rig, context, args) == -ESRCH);
	CHECK(RIG_CALL(rig, context, ACQUIRE_VM, &vm) == 0);
	CHECK(create(rig, context, args) == -EINVAL); /* the buffers are the primary one's */
	CHECK(RIG_CALL(rig, context, ALLOC_MEMORY_OF_GPU, &user) == -EOPNOTSUPP);
	CHECK(trap(rig, context, PID, 0) == -EOPNOTSUPP);
	CHECK(create(rig, process, args) == 0);
	CHECK(!sim_find_queue(context, 0));

	/* All contexts of a process are evicted together. */
	CHECK(rig_fault(rig, "evict:100") == 0 && context->evicted && process->evicted);
	make_context(rig, process);
	CHECK(rig_fault(rig, "restore:100") == 0 && !context->evicted && !process->evicted);
}

TEST_WITH(a_ring_of_metadata_has_a_power_of_two, struct sim_rig *rig)
{
	struct sim_process *process = start(rig, rig_vega(), KFD_LINUX_7_2);
	struct create_queue args = queue_args(rig, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);

	make_buffers(rig, process);
	args.pad = 3;
	CHECK(create(rig, process, args) == -EINVAL);
	args.pad = 4;
	CHECK(create(rig, process, args) == 0);
}
