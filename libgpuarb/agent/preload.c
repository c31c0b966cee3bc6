/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libgpuarb-agent.so: makes the queues of a program follow its lease. The program does not know of
 * the lease; `gpuarbctl run` preloads this library into it and into its children. The
 * library replaces ioctl() to see when the program creates, destroys and masks queues of KFD
 * (libgpuarb/lease/kfd-ioctl.c). It exports nothing else, links only the C library, and does nothing in a process without queues.
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

/* The interval of attempts to reach gpuarb-agent, for at most GRANT_MSEC, after an error that can pass. */
#define ATTEMPT_MSEC 100

/* The interval after which a mask that the driver refused is set again. It grows. */
#define RETRY_MSEC 100
#define RETRY_MSEC_MAX 10000

/* The stack of the agent's thread. glibc puts the thread-local data of all libraries there, too. */
#define STACK_SIZE 262144U

struct process {
	char name[108]; /* of the socket; "": the library does nothing */
	char lease[24]; /* its number, for messages */
	bool debug;

	/* With kfd_lock(). */
	struct link link;
	struct queue_set queue_set;
	struct agent_grant incoming; /* buffer for one */
	bool thread;                 /* it runs */
	bool fixed;                  /* it cannot follow: gpuarb-agent is not asked again */
	int error;                   /* -errno of the last grant; 0: all queues have their masks */
	int retry_msec;              /* with error: when to set the masks again */
};

static struct process process = {
	.link = { .fd = -1 },
	.queue_set = { .driver = &kfd_driver },
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

/* Nothing will resume paused queues later. */
static void resume(void)
{
	process.incoming = process.queue_set.grant;
	for (size_t i = 0; i < process.incoming.n_partitions; i++)
		process.incoming.partitions[i].paused = 0;
	follow();
}

/* False: gpuarb-agent has ended and is not replaced. The queues keep their masks. */
static bool take_turn(void)
{
	bool goes_on = true;
	struct kfd_held held;

	kfd_lock(&held);
	if (receive(0) < 0 && connect_agent() < 0) {
		say("gpuarb-agent has ended: the queues keep their masks");
		process.thread = goes_on = false;
		resume();
	}
	kfd_unlock(&held);
	return goes_on;
}

/* Sets masks again that the driver refused. */
static void set_again(void)
{
	struct kfd_held held;

	kfd_lock(&held);
	if (process.error < 0) {
		process.incoming = process.queue_set.grant;
		follow();
		process.retry_msec = process.retry_msec < RETRY_MSEC_MAX / 2
					     ? process.retry_msec * 2
					     : RETRY_MSEC_MAX;
	}
	kfd_unlock(&held);
}

static void *run(void *)
{
	struct kfd_held held;
	int fd, timeout;

	pthread_setname_np(pthread_self(), "gpuarb-agent");
	do {
		kfd_lock(&held);
		fd = process.link.fd;
		timeout = process.error < 0 ? process.retry_msec : -1;
		kfd_unlock(&held);
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

/* Why the agent cannot be reached, and what to do. */
static const char *explain(int error)
{
	switch (error) {
	case -ECONNREFUSED:
		return "gpuarb-agent has ended, or this process is in another network and mount "
		       "namespace (a container): mount the directory of its socket, which " AGENT_VARIABLE
		       " names, or use gpuarbctl run --fixed";
	case -EPERM:
		return "another user listens on its socket: start this process as the user of "
		       "gpuarbctl run, or use gpuarbctl run --fixed";
	case -ETIMEDOUT:
	case -ECONNRESET:
		return "it sends no mask: examine gpuarbctl list, and start the command again if "
		       "the lease has ended";
	case -EAGAIN:
		return "there is no thread for it: raise RLIMIT_NPROC, or use gpuarbctl run --fixed";
	default:
		return "allow socket() and connect() in the sandbox of this process, or use "
		       "gpuarbctl run --fixed";
	}
}

/* Most programs do not survive a queue that is refused. Their runtime sets the mask of the environment, and gpuarb-agent
 * acknowledges no other one while a process has queues and does not follow. */
static void be_fixed(int error)
{
	link_close(&process.link);
	process.fixed = true;
	if (process.queue_set.grant.generation > 0)
		resume();
	dprintf(STDERR_FILENO,
		"gpuarb-agent: lease %s: fixed for process %d: its queues keep the CUs that they begin "
		"with, because it cannot follow gpuarb-agent (%s): %s\n",
		process.lease, (int)getpid(), strerror(-error), explain(error));
}

/* Connects to gpuarb-agent, takes the first grant, and starts the thread, unless that was done. */
static int try_join(void)
{
	int r = link_is_ours(&process.link) ? 0 : connect_agent();

	if (r < 0)
		say("cannot reach gpuarb-agent: %s", strerror(-r));
	if (r >= 0 && !process.thread) {
		r = start_thread();
		process.thread = r >= 0;
	}
	return r;
}

/* A limit of the process or of the machine that others have reached, or that it was stopped meanwhile. */
static bool can_pass(int error)
{
	return error == -EAGAIN || error == -EINTR || error == -EMFILE || error == -ENFILE ||
	       error == -ENOBUFS || error == -ENOMEM;
}

/* The environment has the mask that the lease began with: a queue under that has CUs that the lease may have returned. */
static void join(void)
{
	int r = process.fixed ? 0 : try_join();

	for (int msec = 0; can_pass(r) && msec < GRANT_MSEC; msec += ATTEMPT_MSEC) {
		usleep(ATTEMPT_MSEC * 1000);
		r = try_join();
	}
	/* Without a connection the process continues under an earlier grant. */
	if (r < 0 && (process.queue_set.grant.generation == 0 || link_is_ours(&process.link)))
		be_fixed(r);
}

/* ---- called by ioctl() of the program, with kfd_lock() ------------------------------------- */

static int created(int fd, uint32_t queue, uint32_t kfd_gpu_id)
{
	int r;

	join();
	r = queue_set_add(&process.queue_set, fd, queue, kfd_gpu_id);
	if (r < 0)
		say("queue %u is destroyed, because it got no mask: %s", queue, strerror(-r));
	else
		say("queue %u has its mask", queue);
	return r;
}

/* The destroyed queue may have been the one whose mask was refused: masks the others again. */
static void destroyed(int fd, uint32_t queue)
{
	queue_set_remove(&process.queue_set, queue);
	if (process.error == 0)
		return;
	process.incoming = process.queue_set.grant;
	process.error = queue_set_follow(&process.queue_set, fd, &process.incoming);
	answer();
}

static int mask_own(int fd, uint32_t queue, const struct mask *own)
{
	return queue_set_mask(&process.queue_set, fd, queue, own);
}

/* The child has no queues, and no thread. */
static void forked(void)
{
	link_close(&process.link);
	process.queue_set.queues = NULL;
	queue_set_clear(&process.queue_set);
	process.thread = process.fixed = false;
	process.error = 0;
}

static const struct kfd_hooks hooks = { created, destroyed, mask_own, forked };

__attribute__((constructor)) static void init(void)
{
	const char *name = secure_getenv(AGENT_VARIABLE), *debug = secure_getenv(AGENT_DEBUG);
	const char *lease = secure_getenv("GPUARB_LEASE");

	process.debug = debug && *debug && strcmp(debug, "0") != 0;
	if (!name || strlen(name) >= sizeof(process.name) - 1)
		return;
	strcpy(process.name, name);
	snprintf(process.lease, sizeof(process.lease), "%s", lease ? lease : "?");
	kfd_hook(&hooks);
}
