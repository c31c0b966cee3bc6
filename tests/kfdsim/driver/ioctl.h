/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What ioctls share: their table, who calls, and their argument, which is zero as far as the
 * client gave less. Handlers return 0, the driver's -errno, or -EINPROGRESS.
 */

#include <linux/kfd_ioctl.h>

#include "kfdsim/driver/internal.h"

struct sim_call {
	struct sim *sim;
	struct sim_process *process;
	struct sim_process **file; /* whose the open file is; NULL: that cannot change */
	uint64_t request;
	uint64_t now_ns;
	size_t size; /* as the client had it */
};

/* Arguments of later kernels than the headers of Debian 12 are of. */
struct sim_runtime_enable_args {
	uint64_t r_debug;
	uint32_t mode_mask, capabilities;
};

struct sim_dbg_trap_args {
	uint32_t pid, op;
	uint64_t of_op[3];
};

/* The name as faults have it, "create-queue"; NULL: no such number. */
const char *sim_ioctl_name(unsigned nr);

/* ---- core.c ---- */
int ioctl_create_process(const struct sim_call *call, void *argument);

/* ---- queue.c ---- */
int ioctl_create_queue(const struct sim_call *call, void *argument);
int ioctl_destroy_queue(const struct sim_call *call, void *argument);
int ioctl_update_queue(const struct sim_call *call, void *argument);

/* ---- queue-buffers.c ---- */

/* -EINVAL: Linux 6.12 would refuse the buffers of that queue. */
int sim_queue_check_buffers(const struct sim_process *process, const struct sim_gpu *gpu,
			    const struct kfd_ioctl_create_queue_args *args);

/* ---- queue-mask.c ---- */
int ioctl_set_cu_mask(const struct sim_call *call, void *argument);
int ioctl_alloc_queue_gws(const struct sim_call *call, void *argument);
int ioctl_get_queue_wave_state(const struct sim_call *call, void *argument);

/* ---- event.c ---- */
int ioctl_create_event(const struct sim_call *call, void *argument);
int ioctl_destroy_event(const struct sim_call *call, void *argument);
int ioctl_set_event(const struct sim_call *call, void *argument);
int ioctl_reset_event(const struct sim_call *call, void *argument);

/* ---- event-wait.c ---- */
int ioctl_wait_events(const struct sim_call *call, void *argument);

/* ---- debug.c ---- */
int ioctl_runtime_enable(const struct sim_call *call, void *argument);
int ioctl_dbg_trap(const struct sim_call *call, void *argument);

/* ---- memory.c ---- */
int ioctl_acquire_vm(const struct sim_call *call, void *argument);
int ioctl_alloc_memory(const struct sim_call *call, void *argument);
int ioctl_free_memory(const struct sim_call *call, void *argument);
int ioctl_available_memory(const struct sim_call *call, void *argument);

/* ---- memory-map.c ---- */
int ioctl_map_memory(const struct sim_call *call, void *argument);
int ioctl_unmap_memory(const struct sim_call *call, void *argument);

/* ---- misc.c ---- */
int ioctl_get_version(const struct sim_call *call, void *argument);
int ioctl_get_clock_counters(const struct sim_call *call, void *argument);
int ioctl_get_apertures(const struct sim_call *call, void *argument);
int ioctl_get_apertures_new(const struct sim_call *call, void *argument);
int ioctl_get_tile_config(const struct sim_call *call, void *argument);
int ioctl_set_memory_policy(const struct sim_call *call, void *argument);
int ioctl_set_scratch(const struct sim_call *call, void *argument);
int ioctl_set_trap_handler(const struct sim_call *call, void *argument);
int ioctl_set_xnack_mode(const struct sim_call *call, void *argument);
int ioctl_svm(const struct sim_call *call, void *argument);

/* ---- smi.c ---- */
int ioctl_smi_events(const struct sim_call *call, void *argument);

/* ---- shared ---- */

/* -EINVAL: no such GPU, or it is gone. -ESRCH: ACQUIRE_VM was not called for it. */
int sim_bound_gpu(const struct sim_call *call, uint32_t gpu_id, struct sim_gpu **ret);

/* The client's own memory, as copy_from_user() and copy_to_user() have it. */
int sim_copy_from(const struct sim_call *call, uint64_t address, void *buf, size_t size);
int sim_copy_to(const struct sim_call *call, uint64_t address, const void *buf, size_t size);
