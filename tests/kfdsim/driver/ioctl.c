/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/driver/ioctl.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kfdsim/driver/parts.h"

struct entry {
	const char *name; /* as faults have it */
	unsigned cmd;     /* of the headers: which way the argument goes */
	int (*run)(const struct sim_call *call, void *argument);
	unsigned since; /* this minor version of KFD; 0: always */
};

/* The old debugger. */
static int not_any_more(const struct sim_call *call, void *argument)
{
	(void)call;
	(void)argument;
	return -EPERM;
}

/* Nobody here has the capability. */
static int not_allowed(const struct sim_call *call, void *argument)
{
	(void)call;
	(void)argument;
	return -EACCES;
}

/* What file the client names, it is no dma-buf: there are none here. */
static int no_dmabuf(const struct sim_call *call, void *argument)
{
	(void)call;
	(void)argument;
	return -EINVAL;
}

/* Linux 6.1 looks for the file before it looks for the GPU. */
static int import_dmabuf(const struct sim_call *call, void *argument)
{
	const struct kfd_ioctl_import_dmabuf_args *args = argument;
	const struct sim_world *world = &call->sim->world;
	int file = -EINVAL;

	if (call->sim->kfd_minor >= KFD_LINUX_6_12 && !sim_find_gpu(call->sim, args->gpu_id))
		return -EINVAL;
	if (world->file_keep)
		file = world->file_keep(world->userdata, call->process->pid, (int)args->dmabuf_fd);
	if (file >= 0)
		world->put_away(world->userdata, file);
	return file == -EBADF ? -EBADF : -EINVAL;
}

#define ENTRY(id, text, function) \
	[_IOC_NR(AMDKFD_IOC_##id)] = { text, AMDKFD_IOC_##id, function, 0 }

static const struct entry entries[] = {
	ENTRY(GET_VERSION, "get-version", ioctl_get_version),
	ENTRY(CREATE_QUEUE, "create-queue", ioctl_create_queue),
	ENTRY(DESTROY_QUEUE, "destroy-queue", ioctl_destroy_queue),
	ENTRY(SET_MEMORY_POLICY, "set-memory-policy", ioctl_set_memory_policy),
	ENTRY(GET_CLOCK_COUNTERS, "get-clock-counters", ioctl_get_clock_counters),
	ENTRY(GET_PROCESS_APERTURES, "get-process-apertures", ioctl_get_apertures),
	ENTRY(UPDATE_QUEUE, "update-queue", ioctl_update_queue),
	ENTRY(CREATE_EVENT, "create-event", ioctl_create_event),
	ENTRY(DESTROY_EVENT, "destroy-event", ioctl_destroy_event),
	ENTRY(SET_EVENT, "set-event", ioctl_set_event),
	ENTRY(RESET_EVENT, "reset-event", ioctl_reset_event),
	ENTRY(WAIT_EVENTS, "wait-events", ioctl_wait_events),
	ENTRY(DBG_REGISTER_DEPRECATED, "dbg-register", not_any_more),
	ENTRY(DBG_UNREGISTER_DEPRECATED, "dbg-unregister", not_any_more),
	ENTRY(DBG_ADDRESS_WATCH_DEPRECATED, "dbg-address-watch", not_any_more),
	ENTRY(DBG_WAVE_CONTROL_DEPRECATED, "dbg-wave-control", not_any_more),
	ENTRY(SET_SCRATCH_BACKING_VA, "set-scratch-backing-va", ioctl_set_scratch),
	ENTRY(GET_TILE_CONFIG, "get-tile-config", ioctl_get_tile_config),
	ENTRY(SET_TRAP_HANDLER, "set-trap-handler", ioctl_set_trap_handler),
	ENTRY(GET_PROCESS_APERTURES_NEW, "get-process-apertures-new", ioctl_get_apertures_new),
	ENTRY(ACQUIRE_VM, "acquire-vm", ioctl_acquire_vm),
	ENTRY(ALLOC_MEMORY_OF_GPU, "alloc-memory-of-gpu", ioctl_alloc_memory),
	ENTRY(FREE_MEMORY_OF_GPU, "free-memory-of-gpu", ioctl_free_memory),
	ENTRY(MAP_MEMORY_TO_GPU, "map-memory-to-gpu", ioctl_map_memory),
	ENTRY(UNMAP_MEMORY_FROM_GPU, "unmap-memory-from-gpu", ioctl_unmap_memory),
	ENTRY(SET_CU_MASK, "set-cu-mask", ioctl_set_cu_mask),
	ENTRY(GET_QUEUE_WAVE_STATE, "get-queue-wave-state", ioctl_get_queue_wave_state),
	ENTRY(GET_DMABUF_INFO, "get-dmabuf-info", no_dmabuf),
	ENTRY(IMPORT_DMABUF, "import-dmabuf", import_dmabuf),
	ENTRY(ALLOC_QUEUE_GWS, "alloc-queue-gws", ioctl_alloc_queue_gws),
	ENTRY(SMI_EVENTS, "smi-events", ioctl_smi_events),
	ENTRY(SVM, "svm", ioctl_svm),
	ENTRY(SET_XNACK_MODE, "set-xnack-mode", ioctl_set_xnack_mode),
	ENTRY(CRIU_OP, "criu-op", not_allowed),
	ENTRY(AVAILABLE_MEMORY, "available-memory", ioctl_available_memory),
	[0x24] = { "export-dmabuf", _IOWR('K', 0x24, uint64_t[2]), no_dmabuf, 12 },
	[0x25] = { "runtime-enable", _IOWR('K', 0x25, struct sim_runtime_enable_args),
		   ioctl_runtime_enable, 13 },
	[0x26] = { "dbg-trap", _IOWR('K', 0x26, struct sim_dbg_trap_args), ioctl_dbg_trap, 13 },
	[0x27] = { "create-process", _IO('K', 0x27), ioctl_create_process, 19 },
};

#define N_ENTRIES (sizeof(entries) / sizeof(entries[0]))

const char *sim_ioctl_name(unsigned nr)
{
	return nr < N_ENTRIES ? entries[nr].name : NULL;
}

int sim_bound_gpu(const struct sim_call *call, uint32_t gpu_id, struct sim_gpu **ret)
{
	struct sim_gpu *gpu = sim_find_gpu(call->sim, gpu_id);

	if (!gpu)
		return -EINVAL;
	if (!call->process->acquired[gpu->index])
		return -ESRCH;
	*ret = gpu;
	return 0;
}

int sim_copy_from(const struct sim_call *call, uint64_t address, void *buf, size_t size)
{
	const struct sim_world *world = &call->sim->world;

	if (size == 0)
		return 0;
	return world->read(world->userdata, call->process->pid, address, buf, size);
}

int sim_copy_to(const struct sim_call *call, uint64_t address, const void *buf, size_t size)
{
	const struct sim_world *world = &call->sim->world;

	if (size == 0)
		return 0;
	return world->write(world->userdata, call->process->pid, address, buf, size);
}

/* As kfd_ioctl() does: the number alone chooses, the type is not looked at; what the client
 * gave less than the driver knows is zero, what it gave more is left alone. */
static int call_driver(struct sim *sim, struct sim_process *opener, struct sim_process **file,
		       pid_t caller, uint64_t request, unsigned cmd, void *argument, size_t size,
		       uint64_t now_ns)
{
	_Alignas(8) uint8_t known[SIM_ARGUMENT_MAX] = { 0 };
	struct sim_call call = {
		.sim = sim,
		.process = opener,
		.file = file,
		.request = request,
		.now_ns = now_ns,
		.size = size,
	};
	const struct entry *entry = &entries[_IOC_NR(cmd) < N_ENTRIES ? _IOC_NR(cmd) : 0];
	int r;

	if (!entry->run || entry->since > sim->kfd_minor)
		return -ENOTTY;
	if (opener->dead || opener->pid != caller)
		return -EBADF;
	if (size > sizeof(known))
		return -EINVAL;
	r = sim_fault_ioctl(sim, _IOC_NR(cmd));
	if (r < 0)
		return r;
	if (entry->cmd & IOC_IN && size > 0)
		memcpy(known, argument, size);
	r = entry->run(&call, known);
	if (entry->cmd & IOC_OUT && size > 0)
		memcpy(argument, known, size);
	return r;
}

int sim_ioctl(struct sim *sim, struct sim_process *opener, pid_t caller, uint64_t request,
	      unsigned cmd, void *argument, size_t size, uint64_t now_ns)
{
	return call_driver(sim, opener, NULL, caller, request, cmd, argument, size, now_ns);
}

int sim_ioctl_file(struct sim *sim, struct sim_process **file, pid_t caller, uint64_t request,
		   unsigned cmd, void *argument, size_t size, uint64_t now_ns)
{
	return call_driver(sim, *file, file, caller, request, cmd, argument, size, now_ns);
}
