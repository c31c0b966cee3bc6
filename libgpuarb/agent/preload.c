/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libgpuarb-agent.so: for programs that know nothing of their lease. It stands in for ioctl(), to
 * see queues of KFD come, go and be masked, and for nothing else; it exports nothing else, links
 * nothing but the C library, and does nothing in a process without such queues.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libgpuarb/agent/process-agent.h"

/* The beginnings of what <linux/kfd_ioctl.h> has; newer kernels only append to them. */
struct create_queue {
	uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
	uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority;
	uint32_t queue_id; /* from KFD */
};

struct destroy_queue {
	uint32_t queue_id, pad;
};

struct set_cu_mask {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits, a multiple of 32 */
	uint64_t cu_mask_ptr;
};

#define DESTROY_QUEUE _IOWR('K', 0x03, struct destroy_queue)

/* Types 0 and 2 are compute queues, 1 and 3 SDMA (KFD_IOC_QUEUE_TYPE_*). */
#define COMPUTE 0U
#define COMPUTE_AQL 2U

enum call { CALL_OTHER, CALL_CREATE, CALL_DESTROY, CALL_MASK };

/* By direction, number and the least size: the console has requests of type 'K', too. */
static enum call call_of(unsigned long request)
{
	static const struct {
		unsigned number, direction;
		size_t least;
		enum call call;
	} calls[] = {
		{ 0x02, _IOC_READ | _IOC_WRITE, sizeof(struct create_queue), CALL_CREATE },
		{ 0x03, _IOC_READ | _IOC_WRITE, sizeof(uint32_t), CALL_DESTROY },
		{ 0x1A, _IOC_WRITE, sizeof(struct set_cu_mask), CALL_MASK },
	};

	for (size_t i = 0; _IOC_TYPE(request) == 'K' && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (_IOC_NR(request) == calls[i].number &&
		    _IOC_DIR(request) == calls[i].direction && _IOC_SIZE(request) >= calls[i].least)
			return calls[i].call;
	return CALL_OTHER;
}

/* Where there is no /dev/kfd to compare with, as after chroot(), it is taken for one. */
static bool is_kfd(int fd)
{
	struct stat st, kfd;

	if (stat("/dev/kfd", &kfd) < 0)
		return true;
	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISCHR(st.st_mode))
		return S_ISCHR(kfd.st_mode) && st.st_rdev == kfd.st_rdev;
	return st.st_dev == kfd.st_dev && st.st_ino == kfd.st_ino;
}

/* ---- a queue is made --------------------------------------------------------------------- */

static int keep(int fd, uint32_t id, uint32_t gpu_id)
{
	struct queue_set *queue_set;
	int r = process_join(&queue_set);

	if (r >= 0)
		r = queue_set_made(queue_set, fd, id, gpu_id);
	if (r < 0) {
		struct destroy_queue args = { .queue_id = id };

		process_say("queue %u gets no mask (%s): refused", id, strerror(-r));
		(void)process_ioctl(fd, DESTROY_QUEUE, &args);
	} else {
		process_say("queue %u has its mask", id);
	}
	return r;
}

/* The program gets a queue with its mask or no queue. */
static int create(int fd, unsigned long request, struct create_queue *args)
{
	int r = process_ioctl(fd, request, args);
	struct held held;

	if (r < 0 || (args->queue_type != COMPUTE && args->queue_type != COMPUTE_AQL) ||
	    !is_kfd(fd))
		return r;

	process_enter(&held);
	r = keep(fd, args->queue_id, args->gpu_id);
	process_leave(&held);
	if (r == 0)
		return 0;
	errno = -r;
	return -1;
}

/* ---- it goes ----------------------------------------------------------------------------- */

/* Under the lock: its id may be given again at once. */
static int destroy(int fd, unsigned long request, const struct destroy_queue *args)
{
	struct held held;
	int r;

	process_enter(&held);
	r = process_ioctl(fd, request, args);
	if (r < 0) {
		held.error = errno;
	} else if (is_kfd(fd)) {
		queue_set_gone(process_queue_set(), args->queue_id);
		process_retry(fd);
	}
	process_leave(&held);
	return r;
}

/* ---- the program masks it ---------------------------------------------------------------- */

/* The program's memory, which need not be there: then that is the driver's to say. Where a sandbox
 * does not allow to ask, it is believed. */
static bool copy_from(const void *address, void *to, size_t size)
{
	struct iovec local = { to, size }, remote;
	ssize_t n;

	memcpy(&remote.iov_base, &address, sizeof(address));
	remote.iov_len = size;
	n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	if (n < 0 && errno != EFAULT) {
		memcpy(to, address, size);
		return true;
	}
	return n == (ssize_t)size;
}

static bool read_mask(const void *address, uint32_t *ret_queue, struct mask *ret)
{
	struct set_cu_mask args;
	size_t words;

	if (!address || !copy_from(address, &args, sizeof(args)))
		return false;
	words = args.num_cu_mask / 32;
	if (words == 0 || args.num_cu_mask % 32 != 0 || args.cu_mask_ptr == 0)
		return false;
	*ret = (struct mask){ .words = words < MASK_WORDS ? words : MASK_WORDS };
	*ret_queue = args.queue_id;
	return copy_from((const void *)(uintptr_t)args.cu_mask_ptr, ret->word,
			 ret->words * sizeof(ret->word[0]));
}

static int mask(int fd, unsigned long request, void *argument)
{
	uint32_t queue = 0;
	struct held held;
	struct mask own;
	int r;

	process_enter(&held);
	r = is_kfd(fd) && read_mask(argument, &queue, &own)
		    ? queue_set_asked(process_queue_set(), fd, queue, &own)
		    : -ENOENT;
	process_leave(&held);
	if (r == -ENOENT) /* not one of ours, or nothing that could be one */
		return process_ioctl(fd, request, argument);
	if (r >= 0)
		return 0;
	errno = -r;
	return -1;
}

/* ---- what the program calls -------------------------------------------------------------- */

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list args;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);

	switch (process_active() ? call_of(request) : CALL_OTHER) {
	case CALL_CREATE: return create(fd, request, argument);
	case CALL_DESTROY: return destroy(fd, request, argument);
	case CALL_MASK: return mask(fd, request, argument);
	case CALL_OTHER: break;
	}
	return process_ioctl(fd, request, argument);
}

__attribute__((constructor)) static void begin(void)
{
	void *next = dlsym(RTLD_NEXT, "ioctl");
	ioctl_t function;

	memcpy(&function, &next, sizeof(function));
	process_begin(function);
}
