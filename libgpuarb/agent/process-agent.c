/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "libgpuarb/agent/process-agent.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long the first queue waits for the grant, which gpuarb-agent sends at once. */
#define GRANT_MSEC 10000

/* How long after a refusal of the driver it is asked again: longer and longer. */
#define RETRY_MSEC 100
#define RETRY_MSEC_MAX 10000

/* Room for what a thread of ours needs, beside what the program's libraries put into each. */
#define STACK_SIZE 262144U

/* As in <linux/kfd_ioctl.h>, which wants headers of libdrm. */
struct set_cu_mask {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits */
	uint64_t cu_mask_ptr;
};
#define SET_CU_MASK _IOW('K', 0x1A, struct set_cu_mask)

struct process {
	char name[108]; /* of the socket; "": not to be followed */
	bool debug;
	ioctl_t next;

	pthread_mutex_t lock; /* of all that follows */
	pid_t pid;            /* whose it is: a child begins anew */
	struct link link;
	struct queue_set queue_set;
	struct agent_grant incoming; /* room for one */
	bool thread;
	int error; /* of the last grant that was followed */
	int pause; /* with it: until the driver is asked again, in milliseconds */
};

static struct process process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.link = { .fd = -1 },
};

/* ---- what is the same in every process --------------------------------------------------- */

void process_say(const char *format, ...)
{
	char text[512];
	va_list args;
	int n;

	if (!process.debug)
		return;
	va_start(args, format);
	n = snprintf(text, sizeof(text), "gpuarb-agent[%d]: ", (int)getpid());
	n += vsnprintf(text + n, sizeof(text) - (size_t)n, format, args);
	va_end(args);
	if (n >= (int)sizeof(text))
		n = (int)sizeof(text) - 1;
	text[n++] = '\n'; /* in place of the NUL */
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
}

bool process_active(void)
{
	return process.name[0] != '\0';
}

/* Before this library has begun, others' may already call. */
int process_ioctl(int fd, unsigned long request, const void *argument)
{
	return process.next ? process.next(fd, request, argument)
			    : (int)syscall(SYS_ioctl, fd, request, argument);
}

static int set_mask(int fd, uint32_t queue, const struct mask *mask, void *userdata)
{
	struct set_cu_mask args = {
		.queue_id = queue,
		.num_cu_mask = (uint32_t)(mask->words * 32),
		.cu_mask_ptr = (uintptr_t)mask->word,
	};

	(void)userdata;
	while (process_ioctl(fd, SET_CU_MASK, &args) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* ---- a child begins anew ----------------------------------------------------------------- */

/* It has no queues, as KFD goes by the address space, and no thread; the lock may be in the middle
 * of something that nobody here goes on with, and so may the queues be: they are left where they
 * are. The socket is the parent's. */
static void forget(void)
{
	int fd = process.link.fd;

	pthread_mutex_init(&process.lock, NULL);
	if (process.pid == 0)
		return;
	if (link_is_ours(&process.link))
		close(fd);
	process.link.fd = -1;
	process.queue_set.queues = NULL;
	process.queue_set.n = 0;
	process.queue_set.grant.generation = 0;
	process.queue_set.grant.n_parts = 0;
	process.thread = false;
	process.error = 0;
	process.pid = 0;
}

void process_begin(ioctl_t next)
{
	const char *name = secure_getenv(AGENT_VARIABLE), *debug = secure_getenv(AGENT_DEBUG);

	process.next = next;
	process.debug = debug && *debug && strcmp(debug, "0") != 0;
	process.queue_set.set_mask = set_mask;
	if (name && strlen(name) < sizeof(process.name) - 1 &&
	    pthread_atfork(NULL, NULL, forget) == 0)
		strcpy(process.name, name);
}

/* ---- the lock ---------------------------------------------------------------------------- */

static void block_all(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

void process_enter(struct held *held)
{
	held->error = errno;
	block_all(&held->signals);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held->cancel);
	if (process.pid != 0 && process.pid != getpid()) /* forked without fork() */
		forget();
	pthread_mutex_lock(&process.lock);
}

void process_leave(const struct held *held)
{
	pthread_mutex_unlock(&process.lock);
	pthread_setcancelstate(held->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
	errno = held->error;
}

struct queue_set *process_queue_set(void)
{
	return &process.queue_set;
}

/* ---- following --------------------------------------------------------------------------- */

static void answer(void)
{
	link_answer(&process.link, process.queue_set.grant.generation, process.error);
	if (process.error < 0)
		process_say("generation %llu cannot be applied: %s",
			    (unsigned long long)process.queue_set.grant.generation,
			    strerror(-process.error));
}

/* The grant that came. Without queues there is nothing to ask of the driver. */
static void follow(void)
{
	int fd = -1;

	process.error = 0;
	if (process.queue_set.n > 0) {
		fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		if (fd < 0)
			process.error = -errno;
	}
	if (process.error == 0)
		process.error = queue_set_follow(&process.queue_set, fd, &process.incoming);
	else
		process.queue_set.grant = process.incoming;
	if (fd >= 0)
		close(fd);
	process_say("lease %llu, generation %llu: %zu queues",
		    (unsigned long long)process.queue_set.grant.lease,
		    (unsigned long long)process.queue_set.grant.generation, process.queue_set.n);
	answer();
}

void process_retry(int fd)
{
	if (process.error == 0)
		return;
	process.incoming = process.queue_set.grant;
	process.error = queue_set_follow(&process.queue_set, fd, &process.incoming);
	answer();
}

/* Takes what has come. -ECONNRESET: there is no connection any more. */
static int receive(int msec)
{
	int r = link_receive(&process.link, msec, &process.incoming);

	if (r > 0) {
		process.pause = RETRY_MSEC;
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

/* False: gpuarb-agent is gone, and nobody comes in its place. The masks stay what they are. */
static bool take_turn(void)
{
	bool goes_on = true;

	pthread_mutex_lock(&process.lock);
	if (receive(0) < 0 && connect_agent() < 0) {
		process_say("gpuarb-agent is gone: masks stay as they are");
		process.thread = goes_on = false;
	}
	pthread_mutex_unlock(&process.lock);
	return goes_on;
}

/* What the driver refused is no program's fault, and it may not do so any more. */
static void try_again(void)
{
	pthread_mutex_lock(&process.lock);
	if (process.error < 0) {
		process.incoming = process.queue_set.grant;
		follow();
		process.pause = process.pause < RETRY_MSEC_MAX / 2 ? process.pause * 2
								   : RETRY_MSEC_MAX;
	}
	pthread_mutex_unlock(&process.lock);
}

static void *run(void *userdata)
{
	int fd, pause;

	(void)userdata;
	pthread_setname_np(pthread_self(), "gpuarb-agent");
	do {
		pthread_mutex_lock(&process.lock);
		fd = process.link.fd;
		pause = process.error < 0 ? process.pause : -1;
		pthread_mutex_unlock(&process.lock);
		if (fd >= 0 && !link_wait(fd, pause))
			try_again();
	} while (take_turn());
	return NULL;
}

/* Detached: nobody waits for it, and it ends with the process. Where the program's libraries put
 * more into each thread than that, the stack is as large as others'. */
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

static int join(void)
{
	int r;

	if (!link_is_ours(&process.link)) {
		r = connect_agent();
		if (r < 0) {
			process_say("cannot reach gpuarb-agent: %s", strerror(-r));
			/* Who was followed once goes on with what it had then. */
			return process.queue_set.grant.generation > 0 ? 0 : -EPERM;
		}
	}
	if (process.thread)
		return 0;
	r = start_thread();
	process.thread = r >= 0;
	if (r < 0) {
		process_say("cannot start a thread: %s", strerror(-r));
		link_close(&process.link);
	}
	return r;
}

int process_join(struct queue_set **ret)
{
	int r;

	process.pid = getpid();
	r = join();
	if (r >= 0)
		*ret = &process.queue_set;
	return r;
}
