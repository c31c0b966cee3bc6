/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/lease/kfd-ioctl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libgpuarb/connection/basics.h"

/* ---- the interface of KFD: <linux/kfd_ioctl.h> needs headers of libdrm --------------------- */

/* The first members of the structures. Newer kernels only append members. */
struct create_queue {
	uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
	uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority;
	uint32_t queue_id; /* from KFD */
};

struct destroy_queue {
	uint32_t queue_id, pad;
};

struct update_queue {
	uint64_t ring_base_address;
	uint32_t queue_id, ring_size, queue_percentage, queue_priority;
};

struct set_cu_mask {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits, a multiple of 32 */
	uint64_t cu_mask_ptr;
};

#define DESTROY_QUEUE _IOWR('K', 0x03, struct destroy_queue)
#define UPDATE_QUEUE _IOW('K', 0x07, struct update_queue)
#define SET_CU_MASK _IOW('K', 0x1A, struct set_cu_mask)

/* KFD_IOC_QUEUE_TYPE_*; the others are SDMA. */
#define COMPUTE 0U
#define COMPUTE_AQL 2U

/* ---- the lock ---------------------------------------------------------------------------- */

/* A queue of this process. SDMA queues are paused together with the compute queues on their GPU. */
struct kfd_queue {
	struct kfd_queue *next;
	uint32_t gpu_id;
	bool compute;
	struct update_queue own; /* what the program asked for last */
	bool own_priority;       /* it asked by UPDATE_QUEUE, not only when it created the queue */
	bool governed;           /* set_turn() was called for it */
	bool paused;
	uint32_t granted; /* the priority, if governed */
};

static struct {
	int (*next)(int fd, unsigned long request, ...);
	const struct kfd_hooks *hooks;
	pthread_mutex_t lock; /* of all members below */
	pid_t pid;            /* the process that filled them; 0: none */
	struct kfd_queue *queues;
} kfd = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Resets the state in a forked child. The child has no queues, because KFD assigns them to the
 * address space of the parent. Another thread of the parent may have held the lock and changed the
 * list during the fork, so the lock is initialised again and the list is leaked.
 */
static void reset_in_child(void)
{
	pthread_mutex_init(&kfd.lock, NULL);
	if (kfd.pid == 0)
		return;
	kfd.queues = NULL;
	kfd.pid = 0;
	if (kfd.hooks)
		kfd.hooks->forked();
}

void kfd_lock(struct kfd_held *held)
{
	sigset_t all;

	held->error = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &held->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held->cancel);
	/* A child of clone() has not run the fork handler. */
	if (kfd.pid != 0 && kfd.pid != getpid())
		reset_in_child();
	pthread_mutex_lock(&kfd.lock);
	kfd.pid = getpid();
}

void kfd_unlock(const struct kfd_held *held)
{
	pthread_mutex_unlock(&kfd.lock);
	pthread_setcancelstate(held->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
	errno = held->error;
}

void kfd_hook(const struct kfd_hooks *hooks)
{
	kfd.hooks = hooks;
}

/* ---- calls ------------------------------------------------------------------------------- */

/* Constructors of other libraries may call ioctl() before ours has run. */
int kfd_ioctl(int fd, unsigned long request, const void *argument)
{
	return kfd.next ? kfd.next(fd, request, argument)
			: (int)syscall(SYS_ioctl, fd, request, argument);
}

static int call(int fd, unsigned long request, const void *argument)
{
	while (kfd_ioctl(fd, request, argument) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Where the queue with this id is linked, or the end of the list. */
static struct kfd_queue **find(uint32_t id)
{
	struct kfd_queue **p = &kfd.queues;

	while (*p && (*p)->own.queue_id != id)
		p = &(*p)->next;
	return p;
}

/* What KFD is to have for what the program asked for. */
static struct update_queue effective(const struct kfd_queue *queue)
{
	struct update_queue args = queue->own;

	if (queue->governed && (!queue->own_priority || args.queue_priority > queue->granted))
		args.queue_priority = queue->granted;
	if (queue->paused)
		args.queue_percentage = 0;
	return args;
}

/* KFD keeps one set of queues for a process, however often it opens the device
 * (kfd_create_process()). An inherited fd acts on no queue, so a fd of the program is no use. */
static int open_kfd(void *)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Changes the queue to this state, and calls KFD if that means something else for it. */
static int change(int fd, struct kfd_queue *queue, const struct kfd_queue *next)
{
	struct update_queue had = effective(queue), args = effective(next);
	_cleanup_(close_fd) int own = -1;
	int r = 0;

	if (memcmp(&had, &args, sizeof(args)) != 0) {
		own = fd < 0 ? open_kfd(NULL) : -1;
		r = call(fd < 0 ? own : fd, UPDATE_QUEUE, &args);
	}
	if (r >= 0)
		*queue = *next;
	return r;
}

/* Pauses or resumes the SDMA queues on a GPU. One that KFD does not know was destroyed without our
 * ioctl(). */
static int pause_sdma(int fd, uint32_t gpu_id, bool paused)
{
	struct kfd_queue **p = &kfd.queues, *queue;

	while ((queue = *p)) {
		struct kfd_queue next = *queue;
		int r = 0;

		next.paused = paused;
		if (!queue->compute && queue->gpu_id == gpu_id)
			r = change(fd, queue, &next);
		if (r < 0 && r != -EFAULT)
			return r;
		if (r < 0) {
			*p = queue->next;
			free(queue);
		} else {
			p = &queue->next;
		}
	}
	return 0;
}

static int set_turn(void *, int fd, uint32_t id, bool paused, uint32_t priority)
{
	struct kfd_queue *queue = *find(id), next;
	int r;

	if (!queue || !queue->compute)
		return paused ? -EOPNOTSUPP : priority == KFD_PRIORITY_DEFAULT ? 0 : -ENODATA;

	next = *queue;
	next.governed = true;
	next.paused = paused;
	next.granted = priority;
	r = change(fd, queue, &next);
	return r < 0 ? r : pause_sdma(fd, queue->gpu_id, paused);
}

static int set_mask(void *, int fd, uint32_t queue, const struct mask *mask)
{
	struct set_cu_mask args = {
		.queue_id = queue,
		.num_cu_mask = (uint32_t)(mask->words * 32),
		.cu_mask_ptr = (uintptr_t)mask->word,
	};

	return call(fd, SET_CU_MASK, &args);
}

/* ioctl() of this library is in force if it is the first one in the order of symbols. */
static bool replaces_ioctl(void)
{
	__typeof__(&ioctl) own = ioctl;
	void *first = dlsym(RTLD_DEFAULT, "ioctl");

	return memcmp(&first, &own, sizeof(first)) == 0;
}

const struct driver kfd_driver = { NULL, open_kfd, set_mask, set_turn, replaces_ioctl };

static bool turn_same(const struct queue_state *a, const struct queue_state *b)
{
	return a->has_turn == b->has_turn && a->paused == b->paused && a->priority == b->priority;
}

bool queue_state_same(const struct queue_state *a, const struct queue_state *b)
{
	return turn_same(a, b) && a->mask.words > 0 && mask_same(&a->mask, &b->mask);
}

int queue_state_turn(const struct driver *driver, int fd, uint32_t queue, struct queue_state *now,
		     const struct queue_state *next)
{
	int r = 0;

	if (next->has_turn && !turn_same(now, next))
		r = driver->set_turn(driver->userdata, fd, queue, next->paused, next->priority);
	if (r < 0 && r != -ENODATA) {
		now->has_turn = false; /* a part of it may be in force */
		return r;
	}
	now->has_turn = next->has_turn;
	now->paused = next->paused;
	now->priority = next->priority;
	return r;
}

int queue_state_set(const struct driver *driver, int fd, uint32_t queue, struct queue_state *now,
		    const struct queue_state *next)
{
	int turn = next->paused ? queue_state_turn(driver, fd, queue, now, next) : 0, r = 0;

	if (turn < 0 && turn != -ENODATA)
		return turn;
	if (now->mask.words == 0 || !mask_same(&now->mask, &next->mask))
		r = driver->set_mask(driver->userdata, fd, queue, &next->mask);
	if (r < 0)
		return r;
	return next->paused ? turn : queue_state_turn(driver, fd, queue, now, next);
}

/* ---- replacing ioctl() ------------------------------------------------------------------- */

enum call { CALL_OTHER, CALL_CREATE, CALL_DESTROY, CALL_UPDATE, CALL_MASK };

/* Compares direction, number and minimal size, because the console has requests of type 'K',
 * too. */
static enum call call_of(unsigned long request)
{
	static const struct {
		unsigned number, direction;
		size_t min_size;
		enum call call;
	} calls[] = {
		{ 0x02, _IOC_READ | _IOC_WRITE, sizeof(struct create_queue), CALL_CREATE },
		{ 0x03, _IOC_READ | _IOC_WRITE, sizeof(uint32_t), CALL_DESTROY },
		{ 0x07, _IOC_WRITE, sizeof(struct update_queue), CALL_UPDATE },
		{ 0x1A, _IOC_WRITE, sizeof(struct set_cu_mask), CALL_MASK },
	};

	for (size_t i = 0; _IOC_TYPE(request) == 'K' && i < ARRAY_SIZE(calls); i++)
		if (_IOC_NR(request) == calls[i].number &&
		    _IOC_DIR(request) == calls[i].direction &&
		    _IOC_SIZE(request) >= calls[i].min_size)
			return calls[i].call;
	return CALL_OTHER;
}

/* Without /dev/kfd to compare with, as after chroot(), every file is taken for it. */
static bool is_kfd(int fd)
{
	struct stat st, device;

	if (stat("/dev/kfd", &device) < 0)
		return true;
	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISCHR(st.st_mode))
		return S_ISCHR(device.st_mode) && st.st_rdev == device.st_rdev;
	return st.st_dev == device.st_dev && st.st_ino == device.st_ino;
}

/* The result of ioctl() for 0 or a negative errno. */
static int ioctl_result(int r)
{
	if (r >= 0)
		return 0;
	errno = -r;
	return -1;
}

/* The compute queues on this GPU; paused: those that are paused. */
static size_t count_compute(uint32_t gpu_id, bool paused)
{
	size_t n = 0;

	for (const struct kfd_queue *queue = kfd.queues; queue; queue = queue->next)
		n += queue->compute && queue->gpu_id == gpu_id && (!paused || queue->paused);
	return n;
}

/* Nothing would resume SDMA queues without a compute queue. */
static void forget(int fd, uint32_t id)
{
	struct kfd_queue **p = find(id), *queue = *p;
	uint32_t gpu_id;

	if (!queue)
		return;
	*p = queue->next;
	gpu_id = queue->gpu_id;
	free(queue);
	if (count_compute(gpu_id, false) == 0)
		(void)pause_sdma(fd, gpu_id, false);
}

static int remember(int fd, const struct create_queue *args)
{
	struct kfd_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	forget(fd, args->queue_id); /* it was destroyed without our ioctl() */
	queue->gpu_id = args->gpu_id;
	queue->compute = args->queue_type == COMPUTE || args->queue_type == COMPUTE_AQL;
	queue->own = (struct update_queue){
		.ring_base_address = args->ring_base_address,
		.queue_id = args->queue_id,
		.ring_size = args->ring_size,
		.queue_percentage = args->queue_percentage,
		.queue_priority = args->queue_priority,
	};
	queue->next = kfd.queues;
	kfd.queues = queue;
	return 0;
}

/* Gives a new queue its state before the program knows of it. */
static int govern(int fd, const struct create_queue *args)
{
	int r = remember(fd, args);

	if (r < 0)
		return r;
	if ((*find(args->queue_id))->compute)
		return kfd.hooks ? kfd.hooks->created(fd, args->queue_id, args->gpu_id) : 0;
	return pause_sdma(fd, args->gpu_id, count_compute(args->gpu_id, true) > 0);
}

static int create(int fd, unsigned long request, struct create_queue *args)
{
	int r = kfd_ioctl(fd, request, args);
	struct destroy_queue undo;
	struct kfd_held held;

	if (r < 0 || !is_kfd(fd))
		return r;

	kfd_lock(&held);
	r = govern(fd, args);
	if (r < 0) {
		forget(fd, args->queue_id);
		undo = (struct destroy_queue){ .queue_id = args->queue_id };
		(void)kfd_ioctl(fd, DESTROY_QUEUE, &undo);
	}
	kfd_unlock(&held);
	return ioctl_result(r);
}

/* The lock is held during the call, because KFD may give the id to another queue at once. */
static int destroy(int fd, unsigned long request, const struct destroy_queue *args)
{
	struct kfd_held held;
	int r;

	kfd_lock(&held);
	r = kfd_ioctl(fd, request, args);
	if (r < 0) {
		held.error = errno;
	} else if (is_kfd(fd)) {
		forget(fd, args->queue_id);
		if (kfd.hooks && kfd.hooks->destroyed)
			kfd.hooks->destroyed(fd, args->queue_id);
	}
	kfd_unlock(&held);
	return r;
}

/* Copies from an address of the program that may be invalid: then false, and the driver reports it.
 * In a sandbox that forbids process_vm_readv() the address is trusted. */
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

/* A paused queue stays paused, and none gets more than the granted priority. */
static int update(int fd, unsigned long request, const void *argument)
{
	struct update_queue own, args;
	struct kfd_queue *queue = NULL;
	struct kfd_held held;
	int r;

	if (!argument || !copy_from(argument, &own, sizeof(own)))
		return kfd_ioctl(fd, request, argument);

	kfd_lock(&held);
	if (is_kfd(fd))
		queue = *find(own.queue_id);
	if (queue) {
		struct kfd_queue next = *queue;

		next.own = own;
		next.own_priority |= own.queue_priority != queue->own.queue_priority;
		args = effective(&next);
		/* What KFD would refuse it is to refuse. */
		if (own.queue_priority > KFD_PRIORITY_MAX || own.queue_percentage > 100)
			args = own;
		r = call(fd, UPDATE_QUEUE, &args);
		if (r >= 0)
			*queue = next;
	}
	kfd_unlock(&held);
	return queue ? ioctl_result(r) : kfd_ioctl(fd, request, argument);
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

static int mask(int fd, unsigned long request, const void *argument)
{
	uint32_t queue = 0;
	struct kfd_held held;
	struct mask own;
	int r;

	kfd_lock(&held);
	r = kfd.hooks && is_kfd(fd) && read_mask(argument, &queue, &own)
		    ? kfd.hooks->mask(fd, queue, &own)
		    : -ENOENT;
	kfd_unlock(&held);
	/* No queue of a lease, or an invalid argument. */
	return r == -ENOENT ? kfd_ioctl(fd, request, argument) : ioctl_result(r);
}

/* The request is an unsigned long with glibc, an int with musl, and has 32 bits. Not in libgpuarb.sym: a symbol with a
 * version of this library would not replace that of the C library. */
__attribute__((visibility("default"))) int replaced_ioctl(int fd, unsigned long any,
							  ...) __asm__("ioctl");
int replaced_ioctl(int fd, unsigned long any, ...)
{
	uint32_t request = (uint32_t)any;
	void *argument;
	va_list args;

	va_start(args, any);
	argument = va_arg(args, void *);
	va_end(args);

	switch (call_of(request)) {
	case CALL_CREATE: return create(fd, request, argument);
	case CALL_DESTROY: return destroy(fd, request, argument);
	case CALL_UPDATE: return update(fd, request, argument);
	case CALL_MASK: return mask(fd, request, argument);
	case CALL_OTHER: break;
	}
	return kfd_ioctl(fd, request, argument);
}

__attribute__((constructor)) static void init(void)
{
	void *next = dlsym(RTLD_NEXT, "ioctl");

	memcpy(&kfd.next, &next, sizeof(kfd.next));
	pthread_atfork(NULL, NULL, reset_in_child);
}
