/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>

#include "check.h"
#include "kfdsim/test/sim-rig.h"
#include "seed.h"

#define VRAM KFD_IOC_ALLOC_MEM_FLAGS_VRAM
#define GTT KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define USERPTR KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
#define DOORBELL KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL
#define MMIO KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP
#define PAGE 4096U
#define HERE 0x40000000ULL /* where buffers are, for the GPU */

typedef struct kfd_ioctl_alloc_memory_of_gpu_args alloc_args;

static struct sim_process *start(struct sim_rig *rig)
{
	struct gpu_info infos[] = { rig_vega(), rig_navi() };

	rig_start(rig, infos, 2);
	return rig_open(rig, 1);
}

static alloc_args ask(const struct sim_rig *rig, uint32_t flags, uint64_t address, uint64_t size)
{
	return (alloc_args){
		.va_addr = address,
		.size = size,
		.gpu_id = rig_id(rig, 0),
		.flags = flags,
		.mmap_offset = flags == USERPTR ? RIG_MEMORY : 0,
	};
}

static int allocate(struct sim_rig *rig, struct sim_process *process, uint32_t flags,
		    uint64_t address, uint64_t size, alloc_args *ret)
{
	*ret = ask(rig, flags, address, size);
	return RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, ret);
}

static int free_buffer(struct sim_rig *rig, struct sim_process *process, uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	return RIG_CALL(rig, process, FREE_MEMORY_OF_GPU, &args);
}

static int map_on(struct sim_rig *rig, struct sim_process *process, uint64_t handle,
		  const uint32_t *ids, uint32_t n, uint32_t *done)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = RIG_MEMORY + 0xf000,
		.n_devices = n,
		.n_success = *done,
	};
	int r;

	memcpy(rig_at(rig, args.device_ids_array_ptr), ids, n * sizeof(*ids));
	r = RIG_CALL(rig, process, MAP_MEMORY_TO_GPU, &args);
	*done = args.n_success;
	return r;
}

static int map(struct sim_rig *rig, struct sim_process *process, uint64_t handle)
{
	uint32_t id = rig_id(rig, 0), done = 0;
	int r = map_on(rig, process, handle, &id, 1, &done);

	CHECK(r < 0 || done == 1);
	return r;
}

static int unmap(struct sim_rig *rig, struct sim_process *process, uint64_t handle)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = RIG_MEMORY + 0xf000,
		.n_devices = 1,
	};
	uint32_t id = rig_id(rig, 0);

	memcpy(rig_at(rig, args.device_ids_array_ptr), &id, sizeof(id));
	return RIG_CALL(rig, process, UNMAP_MEMORY_FROM_GPU, &args);
}

FIXTURE(struct sim_rig, rig, , rig_stop(rig));

TEST_WITH(a_buffer_of_no_size_no_kind_or_no_gpu_is_refused, struct sim_rig *rig)
{
	struct sim_process *process = start(rig), *unbound;
	alloc_args args;

	CHECK(allocate(rig, process, VRAM, HERE, 0, &args) == -EINVAL);
	CHECK(allocate(rig, process, 0, HERE, PAGE, &args) == -EINVAL);
	CHECK(allocate(rig, process, DOORBELL, HERE, PAGE, &args) == -EINVAL);
	CHECK(allocate(rig, process, MMIO, HERE, 2 * PAGE, &args) == -EINVAL);
	args = ask(rig, USERPTR, HERE, PAGE);
	args.mmap_offset = 0;
	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &args) == -EINVAL);
	args = ask(rig, VRAM, HERE, PAGE);
	args.gpu_id = 7;
	CHECK(RIG_CALL(rig, process, ALLOC_MEMORY_OF_GPU, &args) == -EINVAL);
	CHECK(sim_open(rig->sim, 2, &unbound) == 0);
	CHECK(allocate(rig, unbound, VRAM, HERE, PAGE, &args) == -ENODEV);
	CHECK(!process->buffers && !unbound->buffers);
}

TEST_WITH(vram_is_limited_and_freed_vram_is_available_again, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	struct kfd_ioctl_get_available_memory_args left = { .gpu_id = rig_id(rig, 0) };
	alloc_args args, more;

	CHECK(allocate(rig, process, VRAM, HERE, 6U << 20, &args) == 0);
	CHECK(args.mmap_offset % (2U << 20) == 0 && args.mmap_offset != 0);
	CHECK(RIG_CALL(rig, process, AVAILABLE_MEMORY, &left) == 0 && left.available == 2U << 20);
	CHECK(allocate(rig, process, VRAM, HERE, 4U << 20, &more) == -ENOMEM);
	CHECK(free_buffer(rig, process, args.handle) == 0);
	CHECK(free_buffer(rig, process, args.handle) == -EINVAL);
	CHECK(RIG_CALL(rig, process, AVAILABLE_MEMORY, &left) == 0 && left.available == 8U << 20);
	CHECK(allocate(rig, process, GTT, HERE, 64U << 20, &more) == -ENOMEM); /* arena */
	CHECK(allocate(rig, process, GTT, HERE, UINT64_MAX, &more) == -ENOMEM);
	left.gpu_id = 7;
	CHECK(RIG_CALL(rig, process, AVAILABLE_MEMORY, &left) == -EINVAL);
}

TEST(system_memory_is_limited_as_the_driver_limits_it)
{
	static const struct {
		unsigned kfd_minor, userptr; /* in MiB: what fits beside 4 MiB of GTT */
	} drivers[] = { { 11, 11 }, { 17, 3 } };

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		static struct sim_rig rig;
		struct gpu_info info = rig_vega();
		struct sim_process *process;
		alloc_args gtt, client, more;
		uint64_t fits = (uint64_t)drivers[i].userptr << 20;

		rig_start_with(&rig, &info, 1,
			       (struct sim_config){ .kfd_minor = drivers[i].kfd_minor }, 64U << 20);
		rig.sim->memory = 16U << 20;
		process = rig_open(&rig, 1);
		CHECK(allocate(&rig, process, GTT, HERE, 9U << 20, &more) == -ENOMEM);
		CHECK(allocate(&rig, process, GTT, HERE, 4U << 20, &gtt) == 0);
		CHECK(allocate(&rig, process, GTT, HERE, 5U << 20, &more) == -ENOMEM);
		CHECK(allocate(&rig, process, USERPTR, HERE, fits + (1U << 20), &more) == -ENOMEM);
		CHECK(allocate(&rig, process, USERPTR, HERE, fits, &client) == 0);
		CHECK(rig.sim->system_used == (4U << 20) + fits && rig.sim->ttm_used == 4U << 20);
		CHECK(free_buffer(&rig, process, gtt.handle) == 0);
		CHECK(free_buffer(&rig, process, client.handle) == 0);
		CHECK(rig.sim->system_used == 0 && rig.sim->ttm_used == 0);
		rig_stop(&rig);
	}
}

TEST_WITH(failed_mapping_reports_how_many_gpus_it_mapped, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t ids[] = { rig_id(rig, 0), 7, rig_id(rig, 1) }, done = 0;
	alloc_args args;

	CHECK(allocate(rig, process, VRAM, HERE, PAGE, &args) == 0);
	CHECK(map_on(rig, process, args.handle, ids, 3, &done) == -EINVAL && done == 1);
	ids[1] = ids[0];
	CHECK(map_on(rig, process, args.handle, ids, 3, &done) == 0 && done == 3);
	CHECK(process->buffers->mapped == 3);
	CHECK(map_on(rig, process, args.handle, ids, 0, &done) == -EINVAL);
	done = 2;
	CHECK(map_on(rig, process, args.handle, ids, 1, &done) == -EINVAL);
	done = 0;
	CHECK(map_on(rig, process, args.handle + 1, ids, 1, &done) == -ENOMEM);
	CHECK(map_on(rig, process, 7ULL << 32, ids, 1, &done) == -EINVAL);
	CHECK(free_buffer(rig, process, args.handle) == -EBUSY);
	CHECK(unmap(rig, process, args.handle) == 0 && process->buffers->mapped == 2);
}

TEST_WITH(mapping_refuses_invalid_gpu_lists_and_unbound_gpus, struct sim_rig *rig)
{
	struct sim_process *process = start(rig), *half;
	struct kfd_ioctl_map_memory_to_gpu_args args = { .n_devices = 1 };
	struct kfd_ioctl_acquire_vm_args acquire = { .drm_fd = 5, .gpu_id = rig_id(rig, 0) };
	uint32_t other = rig_id(rig, 1), done = 0;
	alloc_args memory;

	CHECK(RIG_CALL(rig, process, MAP_MEMORY_TO_GPU, &args) == -EFAULT);
	args.n_devices = UINT32_MAX;
	CHECK(RIG_CALL(rig, process, MAP_MEMORY_TO_GPU, &args) == -ENOMEM);
	CHECK(sim_open(rig->sim, 2, &half) == 0);
	CHECK(RIG_CALL(rig, half, ACQUIRE_VM, &acquire) == 0);
	CHECK(allocate(rig, half, VRAM, HERE, PAGE, &memory) == 0);
	CHECK(map_on(rig, half, memory.handle, &other, 1, &done) == -ENODEV);
}

TEST_WITH(two_buffers_cannot_have_one_address, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	alloc_args a, b, c;

	CHECK(allocate(rig, process, VRAM, HERE, 2 * PAGE, &a) == 0);
	CHECK(allocate(rig, process, VRAM, HERE + PAGE, PAGE, &b) == 0);
	CHECK(allocate(rig, process, VRAM, HERE + 2 * PAGE, PAGE, &c) == 0);
	CHECK(map(rig, process, a.handle) == 0 && map(rig, process, a.handle) == 0);
	CHECK(map(rig, process, b.handle) == -EINVAL);
	CHECK(map(rig, process, c.handle) == 0);
	CHECK(unmap(rig, process, a.handle) == 0 && map(rig, process, b.handle) == 0);
	CHECK(map(rig, process, a.handle) == -EINVAL);
}

TEST_WITH(gpu_reads_buffers_before_client_memory, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint64_t at = RIG_MEMORY + 0x1000, value = 0;
	alloc_args args;

	CHECK(allocate(rig, process, VRAM, at, PAGE, &args) == 0);
	memset(rig_at(rig, RIG_MEMORY), 0x11, RIG_SIZE - PAGE);
	CHECK(sim_get(process, at - 4, &value, 8) == 0 && value == 0x1111111111111111);
	CHECK(map(rig, process, args.handle) == 0);
	memset(rig->world.arena + args.mmap_offset, 0x22, PAGE);
	CHECK(sim_get(process, at - 4, &value, 8) == 0 && value == 0x2222222211111111);
	CHECK(sim_get(process, at + PAGE - 4, &value, 8) == 0 && value == 0x1111111122222222);
	value = UINT64_MAX;
	CHECK(sim_put(process, at - 4, &value, 8) == 0);
	CHECK(memcmp(rig_at(rig, at - 4), "\xff\xff\xff\xff\x11", 5) == 0);
	CHECK(memcmp(rig->world.arena + args.mmap_offset, "\xff\xff\xff\xff\x22", 5) == 0);
	CHECK(sim_get(process, 8, &value, 8) == -EFAULT);
	CHECK(sim_put(process, UINT64_MAX - 3, &value, 8) == -EFAULT);
}

TEST_WITH(client_memory_can_have_another_gpu_address, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint32_t value = 0x12345678;
	alloc_args args;

	CHECK(allocate(rig, process, USERPTR, HERE, PAGE, &args) == 0);
	CHECK(args.mmap_offset == RIG_MEMORY && map(rig, process, args.handle) == 0);
	CHECK(sim_put(process, HERE + 16, &value, 4) == 0);
	CHECK(memcmp(rig_at(rig, RIG_MEMORY + 16), &value, 4) == 0);
	CHECK(sim_get(process, HERE + 16, &value, 4) == 0 && value == 0x12345678);
	CHECK(sim_put(process, HERE + PAGE, &value, 4) == -EFAULT);
}

TEST_WITH(reused_memory_is_zero, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	alloc_args args, again;

	CHECK(allocate(rig, process, GTT, HERE, PAGE, &args) == 0);
	memset(rig->world.arena + args.mmap_offset, 0x55, PAGE);
	CHECK(free_buffer(rig, process, args.handle) == 0 && rig->cleared == 1);
	CHECK(allocate(rig, process, GTT, HERE, 8, &again) == 0);
	CHECK(again.mmap_offset == args.mmap_offset && again.handle != args.handle);
	CHECK(rig->world.arena[again.mmap_offset] == 0);
}

TEST_WITH(adjacent_free_pieces_are_joined, struct sim_rig *rig)
{
	uint64_t places[3], place;

	start(rig);
	for (unsigned order = 0; order < 2; order++) {
		for (unsigned i = 0; i < 3; i++)
			CHECK(sim_arena_take(rig->sim, PAGE, &places[i]) == 0);
		sim_arena_put(rig->sim, places[order], PAGE);
		sim_arena_put(rig->sim, places[1 - order], PAGE);
		CHECK(sim_arena_take(rig->sim, 2 * PAGE, &place) == 0 && place == places[0]);
		sim_arena_put(rig->sim, place, 2 * PAGE);
		sim_arena_put(rig->sim, places[2], PAGE);
	}
	sim_arena_put(rig->sim, 0, PAGE); /* nobody's */
	CHECK(sim_arena_take(rig->sim, 1, &place) == 0 && place == places[0]);
}

TEST_WITH(memory_is_zeroed_where_the_host_does_not_clear_it, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	alloc_args args;

	rig->sim->world.clear = NULL;
	CHECK(allocate(rig, process, GTT, HERE, PAGE, &args) == 0);
	rig->world.arena[args.mmap_offset] = 0x55;
	CHECK(free_buffer(rig, process, args.handle) == 0);
	CHECK(rig->world.arena[args.mmap_offset] == 0 && rig->cleared == 0);
}

/* ---- offsets ---- */

TEST(mmap_offsets_decode_to_what_was_encoded)
{
	unsigned seed = seed_nth(SEED_OF_RUN("SEED"), 0);

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t high = (unsigned)rand_r(&seed), offset_back;
		uint64_t offset = (high << 20 ^ (unsigned)rand_r(&seed)) & ((1ULL << 46) - 1);
		enum sim_mmap type = (enum sim_mmap)(rand_r(&seed) & 3), type_back;
		uint32_t gpu_id = (uint32_t)rand_r(&seed) & 0xffff, gpu_back;
		uint64_t encoded = sim_mmap_encode(type, gpu_id, offset);

		sim_mmap_decode(encoded, &type_back, &gpu_back, &offset_back);
		CHECK(type_back == type && gpu_back == gpu_id && offset_back == offset);
	}
	CHECK(sim_mmap_encode(SIM_MMAP_DOORBELL, 0x1234, 8) == 0xc48d000000000008);
}

TEST_WITH(each_process_has_its_own_doorbells_on_each_gpu, struct sim_rig *rig)
{
	struct sim_process *processes[2] = { start(rig), NULL };
	uint64_t places[4], place;

	processes[1] = rig_open(rig, 2);
	for (unsigned i = 0; i < 4; i++)
		CHECK(sim_mmap_place(rig->sim, processes[i / 2],
				     sim_mmap_encode(SIM_MMAP_DOORBELL, rig_id(rig, i % 2), 0),
				     &places[i]) == 0);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < i; j++)
			CHECK(places[i] - places[j] >= SIM_SLICE &&
			      places[j] - places[i] >= SIM_SLICE);
	CHECK(sim_mmap_place(rig->sim, processes[0],
			     sim_mmap_encode(SIM_MMAP_DOORBELL, rig_id(rig, 0), SIM_SLICE - 8),
			     &place) == 0 &&
	      place == places[0] + SIM_SLICE - 8);
	CHECK(sim_mmap_place(rig->sim, processes[0],
			     sim_mmap_encode(SIM_MMAP_DOORBELL, rig_id(rig, 0), SIM_SLICE),
			     &place) == -EINVAL);
	CHECK(sim_mmap_place(rig->sim, processes[0], sim_mmap_encode(SIM_MMAP_DOORBELL, 7, 0),
			     &place) == -EINVAL);
}

TEST_WITH(remapped_registers_are_one_page_per_gpu, struct sim_rig *rig)
{
	struct sim_process *process = start(rig);
	uint64_t encoded = sim_mmap_encode(SIM_MMAP_MMIO, rig_id(rig, 0), 0), place;
	alloc_args args, doorbells;

	CHECK(allocate(rig, process, MMIO, HERE, PAGE, &args) == 0);
	CHECK(args.mmap_offset == encoded);
	CHECK(sim_mmap_place(rig->sim, process, encoded, &place) == 0 &&
	      place == rig->sim->mmio[0]);
	CHECK(sim_mmap_place(rig->sim, process, encoded + PAGE, &place) == -EINVAL);
	sim_set_places(rig->sim, true);
	CHECK(allocate(rig, process, MMIO, HERE, PAGE, &args) == 0 && args.mmap_offset == place);
	CHECK(allocate(rig, process, DOORBELL, HERE, SIM_SLICE, &doorbells) == 0);
	CHECK(doorbells.mmap_offset == process->slices[0]);
	CHECK(free_buffer(rig, process, doorbells.handle) == 0 && rig->cleared == 0);
	CHECK(sim_mmap_place(rig->sim, process,
			     sim_mmap_encode(SIM_MMAP_RESERVED, rig_id(rig, 0), 0),
			     &place) == -EINVAL);
}

TEST_WITH(in_a_large_arena_doorbells_are_4_gib_apart, struct sim_rig *rig)
{
	struct gpu_info info = rig_vega();
	struct kfd_ioctl_create_queue_args args;

	rig_start_with(rig, &info, 1, (struct sim_config){ 0 }, 64ULL << 30);
	sim_set_places(rig->sim, true);
	for (pid_t pid = 1; pid <= 15; pid++) {
		rig_queue(rig, rig_open(rig, pid), 0);
		args = rig_queue_args(rig, 0, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
		CHECK(RIG_CALL(rig, rig_open(rig, pid), CREATE_QUEUE, &args) == 0);
		CHECK(args.doorbell_offset == ((16ULL - (unsigned)pid) << 32 | 8));
	}
}
