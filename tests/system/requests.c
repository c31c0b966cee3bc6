/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * requests: sends requests to /dev/kfd, right ones and wrong ones, and prints a line for each: its
 * name, then "ok" with what the driver answered, or the name of the error. With the same GPU and the
 * same KFD version, every driver prints the same. Run it as a user without privilege.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "queue-memory.h"

#define NOBODY 0xfffe /* no GPU's id */
#define NO_QUEUE 77
#define BAD_ADDRESS 0x10

/* Requests that the header of Debian 12 does not know. */
struct export_dmabuf_args {
	uint64_t handle;
	uint32_t flags, fd;
};
struct runtime_enable_args {
	uint64_t debugger;
	uint32_t mode, capabilities;
};
struct dbg_trap_args {
	uint32_t pid, op;
	uint64_t arguments[3];
};
#define EXPORT_DMABUF _IOWR('K', 0x24, struct export_dmabuf_args)
#define RUNTIME_ENABLE _IOWR('K', 0x25, struct runtime_enable_args)
#define DBG_TRAP _IOWR('K', 0x26, struct dbg_trap_args)

static int kfd, render;
static unsigned gpu;
static struct kfd_ioctl_create_queue_args right; /* of a queue */

/* Prints the line of a request, and returns whether it succeeded. */
static int send(const char *name, unsigned long cmd, void *argument)
{
	int r = ioctl(kfd, cmd, argument), error = errno;
	const char *text = strerrorname_np(error);

	if (r >= 0)
		printf("%s: ok\n", name);
	else if (text)
		printf("%s: %s\n", name, text);
	else
		printf("%s: %d\n", name, error);
	return r >= 0;
}

__attribute__((format(printf, 1, 2))) static void answer(const char *format, ...)
{
	va_list arguments;

	printf("\t");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

static void general(void)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	struct kfd_ioctl_get_clock_counters_args clock = { .gpu_id = gpu };
	struct kfd_ioctl_get_tile_config_args tile = { .gpu_id = NOBODY };
	uint64_t nothing[8] = { 0 };

	if (send("GET_VERSION", AMDKFD_IOC_GET_VERSION, &version))
		answer("%u.%u", version.major_version, version.minor_version);
	send("request 0x7f", _IOWR('K', 0x7f, nothing), nothing);
	send("request 0x00", _IOWR('K', 0x00, nothing), nothing);
	if (send("GET_CLOCK_COUNTERS", AMDKFD_IOC_GET_CLOCK_COUNTERS, &clock))
		answer("frequency %llu", (unsigned long long)clock.system_clock_freq);
	clock.gpu_id = NOBODY;
	send("GET_CLOCK_COUNTERS of no GPU", AMDKFD_IOC_GET_CLOCK_COUNTERS, &clock);
	send("GET_TILE_CONFIG of no GPU", AMDKFD_IOC_GET_TILE_CONFIG, &tile);
	send("DBG_REGISTER", AMDKFD_IOC_DBG_REGISTER_DEPRECATED, nothing);
	send("DBG_UNREGISTER", AMDKFD_IOC_DBG_UNREGISTER_DEPRECATED, nothing);
	send("DBG_ADDRESS_WATCH", AMDKFD_IOC_DBG_ADDRESS_WATCH_DEPRECATED, nothing);
	send("DBG_WAVE_CONTROL", AMDKFD_IOC_DBG_WAVE_CONTROL_DEPRECATED, nothing);
}

static void apertures(void)
{
	struct kfd_process_device_apertures all[64] = { 0 };
	struct kfd_ioctl_get_process_apertures_args old = { 0 };
	struct kfd_ioctl_get_process_apertures_new_args new = { 0 };

	if (send("GET_PROCESS_APERTURES", AMDKFD_IOC_GET_PROCESS_APERTURES, &old))
		answer("%u nodes, LDS at %llx", old.num_of_nodes,
		       (unsigned long long)old.process_apertures[0].lds_base);
	if (send("GET_PROCESS_APERTURES_NEW of 0", AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &new))
		answer("%u nodes", new.num_of_nodes);
	new.kfd_process_device_apertures_ptr = (uintptr_t)all;
	new.num_of_nodes = 1;
	if (send("GET_PROCESS_APERTURES_NEW of 1", AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &new))
		answer("%u nodes, the GPU is %s, scratch at %llx", new.num_of_nodes,
		       all[0].gpu_id == gpu ? "there" : "missing",
		       (unsigned long long)all[0].scratch_base);
	new.num_of_nodes = 2;
	if (send("GET_PROCESS_APERTURES_NEW of one more", AMDKFD_IOC_GET_PROCESS_APERTURES_NEW,
		 &new))
		answer("%u nodes", new.num_of_nodes);
	new.num_of_nodes = 1;
	new.kfd_process_device_apertures_ptr = BAD_ADDRESS;
	send("GET_PROCESS_APERTURES_NEW to nowhere", AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &new);
	new.num_of_nodes = 64;
	send("GET_PROCESS_APERTURES_NEW of 64", AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &new);
}

static void settings(const char *when)
{
	struct kfd_ioctl_set_memory_policy_args policy = { .gpu_id = gpu };
	struct kfd_ioctl_set_scratch_backing_va_args scratch = { .gpu_id = gpu };
	char name[64];

	snprintf(name, sizeof(name), "SET_MEMORY_POLICY %s", when);
	send(name, AMDKFD_IOC_SET_MEMORY_POLICY, &policy);
	policy.default_policy = 2;
	snprintf(name, sizeof(name), "SET_MEMORY_POLICY 2 %s", when);
	send(name, AMDKFD_IOC_SET_MEMORY_POLICY, &policy);
	policy.default_policy = 0;
	policy.gpu_id = NOBODY;
	snprintf(name, sizeof(name), "SET_MEMORY_POLICY of no GPU %s", when);
	send(name, AMDKFD_IOC_SET_MEMORY_POLICY, &policy);
	snprintf(name, sizeof(name), "SET_SCRATCH_BACKING_VA %s", when);
	send(name, AMDKFD_IOC_SET_SCRATCH_BACKING_VA, &scratch);
	scratch.gpu_id = NOBODY;
	snprintf(name, sizeof(name), "SET_SCRATCH_BACKING_VA of no GPU %s", when);
	send(name, AMDKFD_IOC_SET_SCRATCH_BACKING_VA, &scratch);
}

static void acquire(void)
{
	struct kfd_ioctl_acquire_vm_args args = { .drm_fd = 4095, .gpu_id = gpu };
	int again = dup(render), other = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);

	send("ACQUIRE_VM by no file", AMDKFD_IOC_ACQUIRE_VM, &args);
	args.drm_fd = (unsigned)render;
	args.gpu_id = NOBODY;
	send("ACQUIRE_VM of no GPU", AMDKFD_IOC_ACQUIRE_VM, &args);
	args.gpu_id = gpu;
	send("ACQUIRE_VM", AMDKFD_IOC_ACQUIRE_VM, &args);
	send("ACQUIRE_VM again", AMDKFD_IOC_ACQUIRE_VM, &args);
	args.drm_fd = (unsigned)again;
	send("ACQUIRE_VM by a duplicate", AMDKFD_IOC_ACQUIRE_VM, &args);
	args.drm_fd = (unsigned)other;
	send("ACQUIRE_VM by another file", AMDKFD_IOC_ACQUIRE_VM, &args);
	close(again);
	close(other);
}

/* Returns whether it was created. */
static int create_queue(const char *name, struct kfd_ioctl_create_queue_args args)
{
	if (!send(name, AMDKFD_IOC_CREATE_QUEUE, &args))
		return 0;
	answer("queue %u, ring of %u bytes, doorbell %llx", args.queue_id, args.ring_size,
	       (unsigned long long)args.doorbell_offset & 0xfff);
	return 1;
}

static void wrong_queues(void)
{
	struct kfd_ioctl_create_queue_args args = right;

	args.gpu_id = NOBODY;
	create_queue("CREATE_QUEUE of no GPU", args);
	args = right;
	args.queue_percentage = 101;
	create_queue("CREATE_QUEUE of 101 percent", args);
	args = right;
	args.queue_priority = 16;
	create_queue("CREATE_QUEUE of priority 16", args);
	args = right;
	args.ring_size = 3000;
	create_queue("CREATE_QUEUE with a ring of 3000 bytes", args);
	args = right;
	args.queue_type = 9;
	create_queue("CREATE_QUEUE of type 9", args);
	args = right;
	args.ring_base_address = UINT64_MAX - QUEUE_PAGE;
	create_queue("CREATE_QUEUE with a ring of the kernel's", args);
	args = right;
	args.write_pointer_address = UINT64_MAX - QUEUE_PAGE;
	create_queue("CREATE_QUEUE with a write pointer of the kernel's", args);
	args = right;
	args.eop_buffer_address = UINT64_MAX - QUEUE_PAGE;
	create_queue("CREATE_QUEUE with an end of pipe of the kernel's", args);
	args = right;
	args.ctx_save_restore_address = UINT64_MAX - QUEUE_PAGE;
	create_queue("CREATE_QUEUE with a save area of the kernel's", args);
}

/* Creates a queue, and destroys it: it is the first. */
static void try_queue(const char *name, struct kfd_ioctl_create_queue_args args)
{
	struct kfd_ioctl_destroy_queue_args first = { .queue_id = 0 };

	if (create_queue(name, args))
		send("DESTROY_QUEUE of it", AMDKFD_IOC_DESTROY_QUEUE, &first);
}

/* What is wrong with the memory only since Linux 6.12. */
static void wrong_memory(void)
{
	struct kfd_ioctl_create_queue_args args = right;

	args.ctx_save_restore_address = 0;
	try_queue("CREATE_QUEUE without a save area", args);
	args = right;
	args.ctx_save_restore_size -= QUEUE_PAGE;
	try_queue("CREATE_QUEUE with a small save area", args);
	args = right;
	args.ctl_stack_size += QUEUE_PAGE;
	try_queue("CREATE_QUEUE with a large control stack", args);
	args = right;
	args.ring_base_address = right.ring_base_address - 64 * QUEUE_PAGE;
	try_queue("CREATE_QUEUE with a ring that is not mapped", args);
	args = right;
	args.ring_size = 2 * QUEUE_PAGE;
	try_queue("CREATE_QUEUE with a ring that is half mapped", args);
	args = right;
	args.eop_buffer_address = 0;
	try_queue("CREATE_QUEUE without an end of pipe", args);
	args = right;
	args.write_pointer_address += 2048;
	try_queue("CREATE_QUEUE with a write pointer further in its page", args);
}

static void sdma_queues(void)
{
	struct kfd_ioctl_create_queue_args args = right;

	args.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE;
	try_queue("CREATE_QUEUE of PM4 packets", args);
	args.queue_type = KFD_IOC_QUEUE_TYPE_SDMA;
	try_queue("CREATE_QUEUE of SDMA", args);
	args.queue_type = KFD_IOC_QUEUE_TYPE_SDMA_XGMI;
	try_queue("CREATE_QUEUE of SDMA for XGMI", args);
	args.queue_type = 4;
	try_queue("CREATE_QUEUE of a chosen SDMA engine", args);
}

static void runtime(const char *name, unsigned mode)
{
	struct runtime_enable_args args = { .mode = mode };

	send(name, RUNTIME_ENABLE, &args);
}

static void trap(const char *name, pid_t pid, unsigned op)
{
	struct dbg_trap_args args = { .pid = (uint32_t)pid, .op = op };

	send(name, DBG_TRAP, &args);
}

static void debugging(void)
{
	struct kfd_ioctl_set_trap_handler_args handler = { .gpu_id = gpu };

	send("SET_TRAP_HANDLER", AMDKFD_IOC_SET_TRAP_HANDLER, &handler);
	handler.gpu_id = NOBODY;
	send("SET_TRAP_HANDLER of no GPU", AMDKFD_IOC_SET_TRAP_HANDLER, &handler);
	runtime("RUNTIME_ENABLE", 1);
	runtime("RUNTIME_ENABLE again", 1);
	runtime("RUNTIME_ENABLE of nothing", 0);
	runtime("RUNTIME_ENABLE of nothing again", 0);
	trap("DBG_TRAP of no process", 0x3fffff, 0);
	trap("DBG_TRAP of a process without a GPU", 1, 1);
	trap("DBG_TRAP to no end", getpid(), 1);
	trap("DBG_TRAP with an unknown operation", getpid(), 99);
}

static void shared_memory(void)
{
	struct kfd_ioctl_import_dmabuf_args import = { .gpu_id = NOBODY, .dmabuf_fd = 4095 };
	struct export_dmabuf_args export = { .handle = 0x123456789 };
	struct kfd_ioctl_svm_args svm = { .start_addr = 1, .size = QUEUE_PAGE };

	send("IMPORT_DMABUF by no file", AMDKFD_IOC_IMPORT_DMABUF, &import);
	import.dmabuf_fd = (unsigned)kfd;
	send("IMPORT_DMABUF by another file", AMDKFD_IOC_IMPORT_DMABUF, &import);
	send("EXPORT_DMABUF of no memory", EXPORT_DMABUF, &export);
	send("SVM of half a page", AMDKFD_IOC_SVM, &svm);
	svm.start_addr = QUEUE_PAGE;
	svm.size = 0;
	send("SVM of no bytes", AMDKFD_IOC_SVM, &svm);
	svm.nattr = 1;
	send("SVM with an attribute that is not there", AMDKFD_IOC_SVM, &svm);
}

static void mask_queue(const char *name, unsigned queue, unsigned bits, uint64_t address)
{
	struct kfd_ioctl_set_cu_mask_args args = {
		.queue_id = queue,
		.num_cu_mask = bits,
		.cu_mask_ptr = address,
	};

	send(name, AMDKFD_IOC_SET_CU_MASK, &args);
}

static void update_queue(const char *name, unsigned queue, unsigned percentage, unsigned priority,
			 unsigned size)
{
	struct kfd_ioctl_update_queue_args args = {
		.queue_id = queue,
		.queue_percentage = percentage,
		.queue_priority = priority,
		.ring_size = size,
		.ring_base_address = right.ring_base_address,
	};

	send(name, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

static void destroy_queue(const char *name, unsigned queue)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue };

	send(name, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

static void no_queue(void)
{
	static const uint32_t mask[32] = { 0xffff };
	struct kfd_ioctl_get_queue_wave_state_args state = { .queue_id = NO_QUEUE };
	struct kfd_ioctl_alloc_queue_gws_args gws = { .queue_id = NO_QUEUE, .num_gws = 1 };

	destroy_queue("DESTROY_QUEUE of no queue", NO_QUEUE);
	update_queue("UPDATE_QUEUE of no queue", NO_QUEUE, 100, 7, QUEUE_PAGE);
	mask_queue("SET_CU_MASK of no queue", NO_QUEUE, 64, (uintptr_t)mask);
	send("GET_QUEUE_WAVE_STATE of no queue", AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &state);
	send("ALLOC_QUEUE_GWS of no queue", AMDKFD_IOC_ALLOC_QUEUE_GWS, &gws);
}

static void queues(void)
{
	static const uint32_t mask[64] = { 0xffff, 0xffff };

	create_queue("CREATE_QUEUE", right);
	create_queue("CREATE_QUEUE of one more", right);
	runtime("RUNTIME_ENABLE with queues", 1);
	update_queue("UPDATE_QUEUE", 0, 100, 15, QUEUE_PAGE);
	update_queue("UPDATE_QUEUE to 101 percent", 0, 101, 7, QUEUE_PAGE);
	update_queue("UPDATE_QUEUE to priority 16", 0, 100, 16, QUEUE_PAGE);
	update_queue("UPDATE_QUEUE to 3000 bytes", 0, 100, 7, 3000);
	update_queue("UPDATE_QUEUE to no percent", 0, 0, 7, QUEUE_PAGE);
	update_queue("UPDATE_QUEUE back", 0, 100, 7, QUEUE_PAGE);
	mask_queue("SET_CU_MASK", 0, 128, (uintptr_t)mask);
	mask_queue("SET_CU_MASK of 32 bits", 0, 32, (uintptr_t)mask);
	mask_queue("SET_CU_MASK of no bits", 0, 0, (uintptr_t)mask);
	mask_queue("SET_CU_MASK of 33 bits", 0, 33, (uintptr_t)mask);
	mask_queue("SET_CU_MASK of 2048 bits", 0, 2048, (uintptr_t)mask);
	mask_queue("SET_CU_MASK from nowhere", 0, 64, BAD_ADDRESS);
	mask_queue("SET_CU_MASK of zeros", 0, 32, (uintptr_t)(mask + 8));
	destroy_queue("DESTROY_QUEUE", 0);
	destroy_queue("DESTROY_QUEUE again", 0);
	create_queue("CREATE_QUEUE in its place", right);
	destroy_queue("DESTROY_QUEUE of the first", 0);
	destroy_queue("DESTROY_QUEUE of the second", 1);
}

static unsigned create_event(const char *name, unsigned type, int auto_reset)
{
	struct kfd_ioctl_create_event_args args = { .event_type = type,
						    .auto_reset = (unsigned)auto_reset };

	if (send(name, AMDKFD_IOC_CREATE_EVENT, &args))
		answer("event %x, slot %u", args.event_id, args.event_slot_index);
	return args.event_id;
}

static void wait_events(const char *name, unsigned first, unsigned second, int all)
{
	struct kfd_event_data data[2] = { { .event_id = first }, { .event_id = second } };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (uintptr_t)data,
		.num_events = second ? 2 : 1,
		.wait_for_all = (unsigned)all,
		.timeout = 1,
	};

	if (send(name, AMDKFD_IOC_WAIT_EVENTS, &args))
		answer("result %u", args.wait_result);
}

static void event(const char *name, unsigned long cmd, unsigned id)
{
	struct kfd_ioctl_set_event_args args = { .event_id = id }; /* the others are alike */

	send(name, cmd, &args);
}

static void events(void)
{
	unsigned once, stays, other;

	once = create_event("CREATE_EVENT", KFD_IOC_EVENT_SIGNAL, 1);
	stays = create_event("CREATE_EVENT that stays set", KFD_IOC_EVENT_SIGNAL, 0);
	other = create_event("CREATE_EVENT of memory", KFD_IOC_EVENT_MEMORY, 1);
	wait_events("WAIT_EVENTS of one that is not set", once, 0, 0);
	event("SET_EVENT", AMDKFD_IOC_SET_EVENT, once);
	wait_events("WAIT_EVENTS of one that is set", once, 0, 0);
	wait_events("WAIT_EVENTS of one that was set once", once, 0, 0);
	event("SET_EVENT that stays", AMDKFD_IOC_SET_EVENT, stays);
	wait_events("WAIT_EVENTS of any", once, stays, 0);
	wait_events("WAIT_EVENTS of all", once, stays, 1);
	event("RESET_EVENT", AMDKFD_IOC_RESET_EVENT, stays);
	wait_events("WAIT_EVENTS after a reset", stays, 0, 0);
	event("SET_EVENT of memory", AMDKFD_IOC_SET_EVENT, other);
	event("SET_EVENT of no event", AMDKFD_IOC_SET_EVENT, 999);
	event("RESET_EVENT of no event", AMDKFD_IOC_RESET_EVENT, 999);
	wait_events("WAIT_EVENTS of no event", 999, 0, 0);
	event("DESTROY_EVENT", AMDKFD_IOC_DESTROY_EVENT, once);
	event("DESTROY_EVENT again", AMDKFD_IOC_DESTROY_EVENT, once);
}

static void rest(void)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = { .gpu_id = NOBODY, .size = QUEUE_PAGE };
	struct kfd_ioctl_free_memory_of_gpu_args free_args = { .handle = 0x123456789 };
	struct kfd_ioctl_map_memory_to_gpu_args map = { .handle = 0x123456789, .n_devices = 1 };
	struct kfd_ioctl_smi_events_args smi = { .gpuid = NOBODY };
	struct kfd_ioctl_set_xnack_mode_args xnack = { -1 };
	struct kfd_ioctl_criu_args criu = { 0 };
	struct kfd_ioctl_get_available_memory_args available = { .gpu_id = NOBODY };
	ssize_t written, taken;
	uint64_t mask = 1;

	send("ALLOC_MEMORY_OF_GPU of no GPU", AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc);
	alloc.gpu_id = gpu;
	alloc.size = 0;
	send("ALLOC_MEMORY_OF_GPU of no bytes", AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc);
	send("FREE_MEMORY_OF_GPU of no memory", AMDKFD_IOC_FREE_MEMORY_OF_GPU, &free_args);
	send("MAP_MEMORY_TO_GPU from nowhere", AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);
	map.n_devices = 0;
	send("MAP_MEMORY_TO_GPU to no device", AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);
	send("UNMAP_MEMORY_FROM_GPU to no device", AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &map);
	send("AVAILABLE_MEMORY of no GPU", AMDKFD_IOC_AVAILABLE_MEMORY, &available);
	send("CRIU_OP without privilege", AMDKFD_IOC_CRIU_OP, &criu);
	send("SET_XNACK_MODE as a question", AMDKFD_IOC_SET_XNACK_MODE, &xnack);
	send("SMI_EVENTS of no GPU", AMDKFD_IOC_SMI_EVENTS, &smi);
	smi.gpuid = gpu;
	if (!send("SMI_EVENTS", AMDKFD_IOC_SMI_EVENTS, &smi))
		return;
	written = write((int)smi.anon_fd, &mask, sizeof(mask));
	taken = read((int)smi.anon_fd, &mask, sizeof(mask));
	answer("write %zd, read %zd %s", written, taken, strerrorname_np(errno));
}

static void in_a_child(void)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		send("GET_VERSION in a child", AMDKFD_IOC_GET_VERSION, &version);
		create_queue("CREATE_QUEUE in a child", right);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct gpu_node node;

	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	render = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	if (kfd < 0 || render < 0) {
		perror("requests");
		return 1;
	}
	node = gpu_node_read(1);
	gpu = node.id;
	right = queue_args_new(&node);
	general();
	apertures();
	settings("before ACQUIRE_VM");
	wrong_queues();
	create_queue("CREATE_QUEUE before ACQUIRE_VM", right);
	acquire();
	if (queue_args_map(kfd, &right, &node, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) < 0) {
		perror("memory");
		return 1;
	}
	settings("after ACQUIRE_VM");
	debugging();
	shared_memory();
	no_queue();
	wrong_memory();
	sdma_queues();
	queues();
	events();
	rest();
	in_a_child();
	return 0;
}
