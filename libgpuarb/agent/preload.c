/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libgpuarb-agent.so: makes the queues of a program follow its lease. The program does not know of
 * the lease; `gpuarbctl run` preloads this library into it and into its children. The
 * library replaces ioctl() to see when the program creates, destroys and masks queues of KFD. It
 * exports nothing else, links only the C library, and does nothing in a process without queues.
 *
 * A process has one agent for all of its threads, hence the static state. It connects and starts
 * its thread with the first queue.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libgpuarb/agent/link.h"
#include "libgpuarb/agent/queue-set.h"
#include "libgpuarb/connection/basics.h"

/* How long the first queue waits for the grant. gpuarb-agent sends it at once. */
#define GRANT_MSEC 10000

/* The interval after which a mask that the driver refused is set again. It grows. */
#define RETRY_MSEC 100
#define RETRY_MSEC_MAX 10000

/* The stack of the agent's thread. glibc puts the thread-local data of all libraries there, too. */
#define STACK_SIZE 262144U

struct process {
	char name[108]; /* of the socket; "": the library does nothing */
	bool debug;

	/* The ioctl() that this library replaces. */
	int (*next)(int fd, unsigned long request, ...);

	pthread_mutex_t lock; /* of all members below */
	pid_t pid;            /* the process that filled them; 0: none */
	struct link link;
	struct queue_set queue_set;
	struct agent_grant incoming; /* buffer for one */
	bool thread;                 /* it runs */
	int error;                   /* -errno of the last grant; 0: all queues have their masks */
	int retry_msec;              /* with error: when to set the masks again */
};

static struct process process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.link = { .fd = -1 },
};

/* Writes to standard error if AGENT_DEBUG is set. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char text[512];
	va_list args;

	if (!process.debug)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(STDERR_FILENO, "gpuarb-agent[%d]: %s\n", (int)getpid(), text);
}

/* Constructors of other libraries may call ioctl() before ours has run. */
static int next_ioctl(int fd, unsigned long request, const void *argument)
{
	return process.next ? process.next(fd, request, argument)
			    : (int)syscall(SYS_ioctl, fd, request, argument);
}

static int set_mask(int fd, uint32_t queue, const struct mask *mask, void *)
{
	return mask_set(next_ioctl, fd, queue, mask);
}

/*
 * Resets the state in a forked child. The child has no queues, because KFD assigns them to the
 * address space of the parent, and no thread. Another thread of the parent may have held the lock
 * and changed the list of queues during the fork, so the lock is initialised again and the list is leaked.
 */
static void reset_in_child(void)
{
	pthread_mutex_init(&process.lock, NULL);
	if (process.pid == 0)
		return;
	link_close(&process.link);
	process.queue_set.queues = NULL;
	queue_set_clear(&process.queue_set);
	process.thread = false;
	process.error = 0;
	process.pid = 0;
}

/* What is to be restored after the lock was held. */
struct held {
	sigset_t signals;
	int cancel, error;
};

/* Takes the lock. A signal handler or a cancellation could leave it locked, so both are off until
 * leave(). Keeps errno. */
static void enter(struct held *held)
{
	sigset_t all;

	held->error = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &held->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held->cancel);
	/* A child of clone() has not run the fork handler. */
	if (process.pid != 0 && process.pid != getpid())
		reset_in_child();
	pthread_mutex_lock(&process.lock);
}

static void leave(const struct held *held)
{
	pthread_mutex_unlock(&process.lock);
	pthread_setcancelstate(held->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
	errno = held->error;
}

static void answer(void)
{
	link_answer(&process.link, process.queue_set.grant.generation, process.error);
	if (process.error < 0)
		say("generation %llu cannot be applied: %s",
		    (unsigned long long)process.queue_set.grant.generation,
		    strerror(-process.error));
}

/* Takes over process.incoming, and masks the queues if there are any. */
static void follow(void)
{
	bool needed = process.queue_set.n > 0;
	_cleanup_(close_fd) int fd = needed ? open("/dev/kfd", O_RDWR | O_CLOEXEC) : -1;

	process.error = needed && fd < 0 ? -errno : 0;
	if (process.error == 0)
		process.error = queue_set_follow(&process.queue_set, fd, &process.incoming);
	else
		process.queue_set.grant = process.incoming;
	say("lease %llu, generation %llu: %zu queues",
	    (unsigned long long)process.queue_set.grant.lease,
	    (unsigned long long)process.queue_set.grant.generation, process.queue_set.n);
	answer();
}

/* A destroyed queue may have been the one whose mask was refused: masks the others again. */
static void retry(int fd)
{
	if (process.error == 0)
		return;
	process.incoming = process.queue_set.grant;
	process.error = queue_set_follow(&process.queue_set, fd, &process.incoming);
	answer();
}

/* Receives and follows a grant. -ECONNRESET: the connection is closed. */
static int receive(int msec)
{
	int r = link_receive(&process.link, msec, &process.incoming);

	if (r > 0) {
		process.retry_msec = RETRY_MSEC;
		follow();
	}
	return r == -EPROTO ? 0 : r;
}

/* Connects and takes the first grant. */
static int connect_agent(void)
{
	int r;

	link_close(&process.link);
	r = link_open(&process.link, process.name);
	if (r >= 0)
		r = receive(GRANT_MSEC);
	if (r == 0)
		r = -ETIMEDOUT;
	if (r < 0)
		link_close(&process.link);
	return r < 0 ? r : 0;
}

/* ---- the thread -------------------------------------------------------------------------- */

/* False: gpuarb-agent has ended and is not replaced. The queues keep their masks. */
static bool take_turn(void)
{
	bool goes_on = true;

	pthread_mutex_lock(&process.lock);
	if (receive(0) < 0 && connect_agent() < 0) {
		say("gpuarb-agent has ended: the queues keep their masks");
		process.thread = goes_on = false;
	}
	pthread_mutex_unlock(&process.lock);
	return goes_on;
}

/* Sets masks again that the driver refused. */
static void set_again(void)
{
	pthread_mutex_lock(&process.lock);
	if (process.error < 0) {
		process.incoming = process.queue_set.grant;
		follow();
		process.retry_msec = process.retry_msec < RETRY_MSEC_MAX / 2
					     ? process.retry_msec * 2
					     : RETRY_MSEC_MAX;
	}
	pthread_mutex_unlock(&process.lock);
}

static void *run(void *)
{
	int fd, timeout;

	pthread_setname_np(pthread_self(), "gpuarb-agent");
	do {
		pthread_mutex_lock(&process.lock);
		fd = process.link.fd;
		timeout = process.error < 0 ? process.retry_msec : -1;
		pthread_mutex_unlock(&process.lock);
		if (fd >= 0 && !link_wait(fd, timeout))
			set_again();
	} while (take_turn());
	return NULL;
}

/* The thread is detached and ends with the process. EINVAL: the thread-local data do not fit into
 * STACK_SIZE, so the thread gets the default stack. */
static int start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	r = pthread_attr_init(&attributes);
	if (r != 0)
		return -r;
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	r = pthread_create(&thread, &attributes, run, NULL);
	pthread_attr_destroy(&attributes);
	if (r == EINVAL) {
		r = pthread_create(&thread, NULL, run, NULL);
		if (r == 0)
			pthread_detach(thread);
	}
	return -r;
}

/* Connects to gpuarb-agent, takes the first grant, and starts the thread, unless that was done.
 * -EPERM: there is no grant. -EAGAIN: no thread. */
static int join(void)
{
	int r;

	process.pid = getpid();
	if (!link_is_ours(&process.link)) {
		r = connect_agent();
		if (r < 0) {
			say("cannot reach gpuarb-agent: %s", strerror(-r));
			/* With an earlier grant the process continues under that. */
			return process.queue_set.grant.generation > 0 ? 0 : -EPERM;
		}
	}
	if (process.thread)
		return 0;
	r = start_thread();
	process.thread = r >= 0;
	if (r < 0) {
		say("cannot start a thread: %s", strerror(-r));
		link_close(&process.link);
	}
	return r;
}

/* ---- replacing ioctl() ------------------------------------------------------------------- */

/* The first members of the structures in <linux/kfd_ioctl.h>. Newer kernels only append members. */
struct create_queue {
	uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
	uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority;
	uint32_t queue_id; /* from KFD */
};

struct destroy_queue {
	uint32_t queue_id, pad;
};

#define DESTROY_QUEUE _IOWR('K', 0x03, struct destroy_queue)

/* Types 0 and 2 are compute queues, 1 and 3 SDMA (KFD_IOC_QUEUE_TYPE_*). */
#define COMPUTE 0U
#define COMPUTE_AQL 2U

enum call { CALL_OTHER, CALL_CREATE, CALL_DESTROY, CALL_MASK };

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
		{ 0x1A, _IOC_WRITE, sizeof(struct kfd_set_cu_mask), CALL_MASK },
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
	struct stat st, kfd;

	if (stat("/dev/kfd", &kfd) < 0)
		return true;
	if (fstat(fd, &st) < 0)
		return false;
	if (S_ISCHR(st.st_mode))
		return S_ISCHR(kfd.st_mode) && st.st_rdev == kfd.st_rdev;
	return st.st_dev == kfd.st_dev && st.st_ino == kfd.st_ino;
}

/* Sets the mask of a new queue, or destroys it. */
static int mask_or_destroy(int fd, uint32_t id, uint32_t gpu_id)
{
	int r = join();

	if (r >= 0)
		r = queue_set_add(&process.queue_set, fd, id, gpu_id);
	if (r < 0) {
		struct destroy_queue args = { .queue_id = id };

		say("destroyed queue %u, because it got no mask: %s", id, strerror(-r));
		(void)next_ioctl(fd, DESTROY_QUEUE, &args);
	} else {
		say("queue %u has its mask", id);
	}
	return r;
}

/* The result of ioctl() for 0 or a negative errno. */
static int ioctl_result(int r)
{
	if (r >= 0)
		return 0;
	errno = -r;
	return -1;
}

static int create(int fd, unsigned long request, struct create_queue *args)
{
	int r = next_ioctl(fd, request, args);
	struct held held;

	if (r < 0 || (args->queue_type != COMPUTE && args->queue_type != COMPUTE_AQL) ||
	    !is_kfd(fd))
		return r;

	enter(&held);
	r = mask_or_destroy(fd, args->queue_id, args->gpu_id);
	leave(&held);
	return ioctl_result(r);
}

/* The lock is held during the call, because KFD may give the id to another queue at once. */
static int destroy(int fd, unsigned long request, const struct destroy_queue *args)
{
	struct held held;
	int r;

	enter(&held);
	r = next_ioctl(fd, request, args);
	if (r < 0) {
		held.error = errno;
	} else if (is_kfd(fd)) {
		queue_set_remove(&process.queue_set, args->queue_id);
		retry(fd);
	}
	leave(&held);
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

static bool read_mask(const void *address, uint32_t *ret_queue, struct mask *ret)
{
	struct kfd_set_cu_mask args;
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

	enter(&held);
	r = is_kfd(fd) && read_mask(argument, &queue, &own)
		    ? queue_set_mask(&process.queue_set, fd, queue, &own)
		    : -ENOENT;
	leave(&held);
	if (r == -ENOENT) /* no queue of the set, or an invalid argument */
		return next_ioctl(fd, request, argument);
	return ioctl_result(r);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	void *argument;
	va_list args;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);

	switch (process.name[0] ? call_of(request) : CALL_OTHER) {
	case CALL_CREATE: return create(fd, request, argument);
	case CALL_DESTROY: return destroy(fd, request, argument);
	case CALL_MASK: return mask(fd, request, argument);
	case CALL_OTHER: break;
	}
	return next_ioctl(fd, request, argument);
}

__attribute__((constructor)) static void init(void)
{
	const char *name = secure_getenv(AGENT_VARIABLE), *debug = secure_getenv(AGENT_DEBUG);
	void *next = dlsym(RTLD_NEXT, "ioctl");

	memcpy(&process.next, &next, sizeof(process.next));
	process.debug = debug && *debug && strcmp(debug, "0") != 0;
	process.queue_set.set_mask = set_mask;
	if (name && strlen(name) < sizeof(process.name) - 1 &&
	    pthread_atfork(NULL, NULL, reset_in_child) == 0)
		strcpy(process.name, name);
}
