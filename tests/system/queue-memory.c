/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "queue-memory.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

static void *open_node(unsigned n, const char *name)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), NODES "/%u/%s", n, name);
	file = fopen(path, "re");
	if (file)
		return file;
	perror(path);
	exit(1);
}

/* The save area of debuggers is not in the topology. */
static uint32_t debugger_size(unsigned target, unsigned cus, unsigned engines)
{
	unsigned waves = cus * 32;

	if (target < 100100)
		waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
	return (waves * 32 + 63) / 64 * 64;
}

struct gpu_node gpu_node_read(unsigned n)
{
	unsigned long long value, simds = 0, per_cu = 1, arrays = 0, per_engine = 1, target = 0;
	struct gpu_node node = { .xccs = 1 };
	FILE *file = open_node(n, "gpu_id");
	char name[64];

	if (fscanf(file, "%u", &node.id) != 1 || node.id == 0) {
		fprintf(stderr, "node %u is not a GPU\n", n);
		exit(1);
	}
	fclose(file);
	file = open_node(n, "properties");
	while (fscanf(file, "%63s %llu", name, &value) == 2) {
		if (strcmp(name, "simd_count") == 0)
			simds = value;
		else if (strcmp(name, "simd_per_cu") == 0)
			per_cu = value;
		else if (strcmp(name, "array_count") == 0)
			arrays = value;
		else if (strcmp(name, "simd_arrays_per_engine") == 0)
			per_engine = value;
		else if (strcmp(name, "gfx_target_version") == 0)
			target = value;
		else if (strcmp(name, "num_xcc") == 0)
			node.xccs = (unsigned)value;
		else if (strcmp(name, "drm_render_minor") == 0)
			node.minor = (unsigned)value;
		else if (strcmp(name, "ctl_stack_size") == 0)
			node.control = (uint32_t)value;
		else if (strcmp(name, "cwsr_size") == 0)
			node.save = (uint32_t)value;
	}
	fclose(file);
	node.debugger = debugger_size((unsigned)target, (unsigned)(simds / per_cu / node.xccs),
				      (unsigned)(arrays / per_engine));
	return node;
}

static size_t pages(size_t size)
{
	return (size + QUEUE_PAGE - 1) / QUEUE_PAGE * QUEUE_PAGE;
}

static size_t save_size(const struct gpu_node *node)
{
	return pages(((size_t)node->save + node->debugger) * node->xccs);
}

/* Ring, end of pipe, the two pointers, and where the queue is saved to. Nobody writes to it here. */
struct kfd_ioctl_create_queue_args queue_args_new(const struct gpu_node *node)
{
	char *memory = mmap(NULL, 3 * QUEUE_PAGE + save_size(node), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return (struct kfd_ioctl_create_queue_args){
		.gpu_id = node->id,
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = 100,
		.queue_priority = 7,
		.ring_size = QUEUE_PAGE,
		.ring_base_address = (uintptr_t)memory,
		.eop_buffer_address = (uintptr_t)(memory + QUEUE_PAGE),
		.eop_buffer_size = QUEUE_PAGE,
		.write_pointer_address = (uintptr_t)(memory + 2 * QUEUE_PAGE),
		.read_pointer_address = (uintptr_t)(memory + 2 * QUEUE_PAGE + 64),
		.ctx_save_restore_address = (uintptr_t)(memory + 3 * QUEUE_PAGE),
		.ctx_save_restore_size = node->save,
		.ctl_stack_size = node->control,
	};
}

/* Static, as the header shifts 1 into the sign bit, which the sanitizer reports at run time. */
static const uint32_t access_flags = (uint32_t)(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
						KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE);

static int map(int kfd, uint32_t gpu, uint32_t kind, uint64_t address, uint64_t size)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = address,
		.size = size,
		.mmap_offset = address,
		.gpu_id = gpu,
		.flags = kind | access_flags,
	};
	struct kfd_ioctl_map_memory_to_gpu_args to = {
		.device_ids_array_ptr = (uintptr_t)&gpu,
		.n_devices = 1,
	};

	if (ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc) < 0)
		return -errno;
	to.handle = alloc.handle;
	return ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &to) < 0 ? -errno : 0;
}

int queue_args_map(int kfd, const struct kfd_ioctl_create_queue_args *args,
		   const struct gpu_node *node, uint32_t kind)
{
	int r = map(kfd, args->gpu_id, kind, args->ring_base_address, QUEUE_PAGE);

	r = r < 0 ? r : map(kfd, args->gpu_id, kind, args->eop_buffer_address, QUEUE_PAGE);
	r = r < 0 ? r : map(kfd, args->gpu_id, kind, args->write_pointer_address, QUEUE_PAGE);
	if (r < 0 || node->save == 0)
		return r;
	return map(kfd, args->gpu_id, kind, args->ctx_save_restore_address, save_size(node));
}
