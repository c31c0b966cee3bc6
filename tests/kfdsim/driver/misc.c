/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stddef.h>

#include "kfdsim/driver/ioctl.h"

#define VERSION_MAJOR 1

/* Linux, kfd_flat_memory.c, gfx9 and later; with 47 bits of addresses, libhsakmt keeps one
 * aperture for all. */
#define LDS_BASE 0x1000000000000ULL
#define SCRATCH_BASE 0x2000000000000ULL
#define WINDOW_LIMIT 0xffffffffULL
#define GPUVM_BASE 0x1000000ULL
#define GPUVM_LIMIT 0x7fffffffffffULL

#define TILE_CONFIGS 32U
#define MACRO_TILE_CONFIGS 16U
#define GB_ADDR_CONFIG 0x2a114042U /* of a Vega 20 */

int ioctl_get_version(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_version_args *args = argument;

	args->major_version = VERSION_MAJOR;
	args->minor_version = call->sim->kfd_minor;
	return 0;
}

/* One clock for all, in nanoseconds: it is the one that time is told by here. */
int ioctl_get_clock_counters(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_clock_counters_args *args = argument;

	args->gpu_clock_counter = sim_find_gpu(call->sim, args->gpu_id) ? call->now_ns : 0;
	args->cpu_clock_counter = call->now_ns;
	args->system_clock_counter = call->now_ns;
	args->system_clock_freq = 1000000000;
	return 0;
}

/* ---- apertures ---- */

static size_t fill_apertures(struct sim *sim, struct kfd_process_device_apertures *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < sim->n_gpus && n < max; i++) {
		if (sim->gpus[i].gone)
			continue;
		ret[n++] = (struct kfd_process_device_apertures){
			.lds_base = LDS_BASE,
			.lds_limit = LDS_BASE | WINDOW_LIMIT,
			.scratch_base = SCRATCH_BASE,
			.scratch_limit = SCRATCH_BASE | WINDOW_LIMIT,
			.gpuvm_base = GPUVM_BASE,
			.gpuvm_limit = GPUVM_LIMIT,
			.gpu_id = sim->gpus[i].info.kfd_gpu_id,
		};
	}
	return n;
}

int ioctl_get_apertures(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_process_apertures_args *args = argument;

	args->num_of_nodes = (uint32_t)fill_apertures(call->sim, args->process_apertures,
						      NUM_OF_SUPPORTED_GPUS);
	return 0;
}

/* Asked with 0, it says how many there are; asked with more than the topology has nodes, CPUs
 * too, it refuses (6.1 stable). */
int ioctl_get_apertures_new(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_process_apertures_new_args *args = argument;
	struct kfd_process_device_apertures all[SIM_GPUS_MAX];
	size_t n = fill_apertures(call->sim, all, SIM_GPUS_MAX);

	if (args->num_of_nodes == 0) {
		args->num_of_nodes = (uint32_t)n;
		return 0;
	}
	if (args->num_of_nodes > call->sim->nodes)
		return -EINVAL;
	if (args->num_of_nodes > n)
		args->num_of_nodes = (uint32_t)n;
	return sim_copy_to(call, args->kfd_process_device_apertures_ptr, all,
			   args->num_of_nodes * sizeof(all[0]));
}

/* ---- set, and of no effect here ---- */

static int bound(const struct sim_call *call, uint32_t gpu_id)
{
	struct sim_gpu *gpu;

	return sim_bound_gpu(call, gpu_id, &gpu);
}

int ioctl_set_memory_policy(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_set_memory_policy_args *args = argument;

	if (args->default_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT ||
	    args->alternate_policy > KFD_IOC_CACHE_POLICY_NONCOHERENT)
		return -EINVAL;
	return bound(call, args->gpu_id);
}

int ioctl_set_scratch(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_set_scratch_backing_va_args *args = argument;
	int r = bound(call, args->gpu_id);

	return r == -ESRCH ? -ENODEV : r;
}

int ioctl_set_trap_handler(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_set_trap_handler_args *args = argument;

	return bound(call, args->gpu_id);
}

static int put_zeros(const struct sim_call *call, uint64_t address, uint32_t *n, uint32_t max)
{
	static const uint32_t zeros[TILE_CONFIGS];

	if (*n > max)
		*n = max;
	if (sim_copy_to(call, address, zeros, *n * sizeof(zeros[0])) == 0)
		return 0;
	*n = 0;
	return -EFAULT;
}

int ioctl_get_tile_config(const struct sim_call *call, void *argument)
{
	struct kfd_ioctl_get_tile_config_args *args = argument;
	int r;

	if (!sim_find_gpu(call->sim, args->gpu_id))
		return -EINVAL;
	args->gb_addr_config = GB_ADDR_CONFIG;
	args->num_banks = 0;
	args->num_ranks = 0;
	r = put_zeros(call, args->tile_config_ptr, &args->num_tile_configs, TILE_CONFIGS);
	if (r < 0)
		return r;
	return put_zeros(call, args->macro_tile_config_ptr, &args->num_macro_tile_configs,
			 MACRO_TILE_CONFIGS);
}

/* ---- retries of page faults, shared memory ---- */

/* As a kernel built without CONFIG_HSA_AMD_SVM, in which both fail, but the size is checked. */
int ioctl_set_xnack_mode(const struct sim_call *call, void *argument)
{
	(void)call;
	(void)argument;
	return -EPERM;
}

int ioctl_svm(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_svm_args *args = argument;
	uint64_t size = offsetof(struct kfd_ioctl_svm_args, attrs) +
			(uint64_t)args->nattr * sizeof(struct kfd_ioctl_svm_attribute);

	if (call->process->context != SIM_CONTEXT_PRIMARY)
		return -EOPNOTSUPP;
	return call->size < size ? -EINVAL : -EPERM;
}
