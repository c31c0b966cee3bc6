/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The agent of this process: one for all of its threads, and so the one state that is kept in a
 * variable. It comes to be with the first queue: a process without one has no thread of ours.
 */

#include <signal.h>

#include "libgpuarb/agent/link.h"
#include "libgpuarb/agent/queue-set.h"

typedef int (*ioctl_t)(int fd, unsigned long request, ...);

/* Once, when the library is loaded. next: the ioctl() that would be there without us. */
void process_begin(ioctl_t next);

bool process_active(void); /* the program was started to be followed */
int process_ioctl(int fd, unsigned long request, const void *argument); /* the next one */

/* What is held around the functions below: the lock, with the thread's signals blocked and its
 * cancellation put off, as they would leave the lock behind. Keeps errno. */
struct held {
	sigset_t signals;
	int cancel, error;
};
void process_enter(struct held *held);
void process_leave(const struct held *held);

/* The queues. Makes sure first that there is a grant, and a thread that follows it. -EPERM: there
 * is no grant to be had. -EAGAIN: no thread. */
int process_join(struct queue_set **ret);

/* Those that there are, joined or not. */
struct queue_set *process_queue_set(void);

/* Tries again what a queue that is gone now kept from being applied. */
void process_retry(int fd);

/* To standard error, if GPUARB_AGENT_DEBUG is set. */
void process_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
