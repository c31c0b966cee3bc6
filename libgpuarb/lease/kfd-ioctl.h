/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The calls of this process to KFD. kfd-ioctl.c replaces ioctl(), to see when the program creates,
 * destroys, masks and updates compute queues: UPDATE_QUEUE, which sets the priority and pauses a
 * queue, needs the ring that the program passed with CREATE_QUEUE. Queues that the program creates
 * in another way (syscall(), or ioctl() of a C library that comes before this library in the order
 * of symbols) are not known here.
 *
 * One lock protects these queues and the state of the agents that follow leases.
 */

#include <signal.h>
#include <stdint.h>

#include "libgpuarb/lease/mask.h"

#define KFD_PRIORITY_DEFAULT 7U /* GPUARB_PRIORITY_DEFAULT */
#define KFD_PRIORITY_MAX 15U

struct kfd_hooks {
	/* A compute queue was created. On a negative errno it is destroyed, and the program gets
	 * the error. */
	int (*created)(int fd, uint32_t queue, uint32_t kfd_gpu_id);
	void (*destroyed)(int fd, uint32_t queue); /* or NULL */

	/* The program asks for a mask. -ENOENT: the call is passed on to KFD. */
	int (*mask)(int fd, uint32_t queue, const struct mask *own);

	/* In a forked child: it has no queues and no other threads. The state may be inconsistent,
	 * because another thread of the parent may have changed it. */
	void (*forked)(void);
};

/* Calls these hooks from now on, each with the lock. NULL: none. */
void kfd_hook(const struct kfd_hooks *hooks);

/* What is to be restored after the lock was held. */
struct kfd_held {
	sigset_t signals;
	int cancel, error;
};

/* Takes the lock. Signals and cancellation are off until kfd_unlock(): a handler that calls ioctl()
 * would wait for ever. Keeps errno. */
void kfd_lock(struct kfd_held *held);
void kfd_unlock(const struct kfd_held *held);

/* The ioctl() that this library replaces. */
int kfd_ioctl(int fd, unsigned long request, const void *argument);

/* What sets masks and turns; tests have another driver. */
struct driver {
	void *userdata;

	/* Opens /dev/kfd: the fd acts on the queues of the process that opened it. */
	int (*open)(void *userdata);

	/* Gives a queue of this process the mask. A negative errno of KFD. */
	int (*set_mask)(void *userdata, int fd, uint32_t queue, const struct mask *mask);

	/*
	 * Pauses a queue or lets it run, and the SDMA queues on its GPU with it, and holds it to
	 * the priority: if the program asked for less by itself, it has that. Calls KFD only if
	 * something changes. fd -1: opens the device for that. -EOPNOTSUPP: the ring
	 * of the queue is not known, so it cannot be paused. -ENODATA: for the same reason its
	 * priority cannot be set. Else a negative errno of KFD.
	 */
	int (*set_turn)(void *userdata, int fd, uint32_t queue, bool paused, uint32_t priority);

	/* Whether the hooks see each queue that a library of this process creates by ioctl(). */
	bool (*sees_queues)(void);
};
extern const struct driver kfd_driver;

/* The state of a queue: as it was set last, or as it is to be. */
struct queue_state {
	struct mask mask;  /* no words: none was set yet */
	bool has_turn;     /* paused and priority were set */
	bool paused;       /* it is not in the run list */
	uint32_t priority; /* the highest one that it may have */
};

bool queue_state_same(const struct queue_state *a, const struct queue_state *b);

/* Pauses or resumes a queue, and holds it to the priority, if that differs. *now: what was set. */
int queue_state_turn(const struct driver *driver, int fd, uint32_t queue, struct queue_state *now,
		     const struct queue_state *next);

/* Sets what differs, with the mask changing while the queue is paused. *now: what was set; its mask
 * is left to the caller. -ENODATA as of set_turn(), after all else was done. */
int queue_state_set(const struct driver *driver, int fd, uint32_t queue, struct queue_state *now,
		    const struct queue_state *next);
