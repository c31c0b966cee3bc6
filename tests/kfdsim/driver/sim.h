/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The emulated KFD, its pure core: one driver, several GPUs, the processes that opened it,
 * their queues, events, memory and doorbells. No file descriptor, no thread, no clock of its
 * own: what it needs of the world comes by struct sim_world, and time as an argument. The front
 * ends (FUSE, seccomp) bring ioctls here and carry answers back.
 *
 * Written from what amdkfd does (Linux 6.1, 6.12 and 7.2, with KFD 1.11, 1.17 and 1.23), as read for
 * facts in the comments beside each check; nothing here is shared with the daemon but the plain value
 * struct gpu_info.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/gpu-info.h"

#define SIM_GPUS_MAX 64U

struct sim;
struct sim_process;

/* ---- the world ------------------------------------------------------------------------- */

struct sim_world {
	void *userdata;

	/* A process's own memory. 0 or -EFAULT. */
	int (*read)(void *userdata, pid_t pid, uint64_t address, void *buf, size_t size);
	int (*write)(void *userdata, pid_t pid, uint64_t address, const void *buf, size_t size);

	/* Answers a request for which sim_ioctl() returned -EINPROGRESS: result 0 or -errno, and
	 * the argument struct as the driver would write it back. Must not call back into sim. */
	void (*answer)(void *userdata, uint64_t request, int result, const void *argument,
		       size_t size);

	/* A stream of bytes between the driver and the process that sent this request, which gets a
	 * new descriptor of it. -EOPNOTSUPP. stream_open NULL: there are no such streams, and the
	 * three below are NULL too. */
	int (*stream_open)(void *userdata, uint64_t request, int *ret_stream, uint32_t *ret_fd);

	/* All of it or nothing. *unread counts what the process has not taken yet: -ENOSPC where
	 * that would be more than room. */
	int (*stream_put)(void *userdata, int stream, const void *data, size_t size, size_t room,
			  size_t *unread);

	/* How many bytes were taken, 0: none are there; -EPIPE: the descriptor is closed. */
	int (*stream_get)(void *userdata, int stream, void *buf, size_t size);
	void (*put_away)(void *userdata, int stream);  /* or a kept file, below */
	bool (*privileged)(void *userdata, pid_t pid); /* has CAP_SYS_ADMIN */

	/* Keeps the open file that this number is in that process: -EBADF, or -EINVAL where it is no
	 * render node. file_keep NULL: files are told apart by their numbers alone. */
	int (*file_keep)(void *userdata, pid_t pid, int fd);
	bool (*file_same)(void *userdata, int kept, pid_t pid, int fd);

	/* The time now, which is later than that of the call: a dispatch whose work-groups tell when they ran does
	 * not begin before its doorbell was rung. NULL: the time of the call. */
	uint64_t (*now)(void *userdata);

	/* What stands for VRAM, GTT and doorbell pages: one sparse piece of memory that the front
	 * end lets clients map. Offset 0 is never given out. Answers have offsets in it for mmap(): /dev/kfd is a
	 * regular file here, which cannot take the driver's own with a type and a GPU in bits 63:46. */
	uint8_t *arena;
	uint64_t arena_size; /* at least 1 MiB; the front end has 4 TiB */

	/* Makes a piece of the arena zero again, in whole pages, and gives back what it cost.
	 * NULL: written over, which costs as much as it is long. */
	void (*clear)(void *userdata, uint64_t place, uint64_t size);
};

/* ---- making it ---------------------------------------------------------------------------- */

/* What the topology says of a GPU and struct gpu_info does not. */
struct sim_node {
	unsigned device_id; /* PCI */
	unsigned sdma_engines, sdma_xgmi_engines;
};

struct sim_config {
	const struct gpu_info *gpus; /* kfd_gpu_id and name are set; copied */
	const unsigned *minors;      /* drm render minor of each */
	const struct sim_node *each; /* more of each; NULL: all 0 */
	size_t n_gpus;

	unsigned kfd_minor; /* the driver is that of KFD 1.11, 1.17 or 1.23; 0: 1.11 */
	bool timing;        /* dispatches take time by the model of timing.h */
};

/* What a queue is saved to when it is preempted, in bytes: as topology's ctl_stack_size and cwsr_size
 * have it since Linux 6.12, and for debuggers; of one XCC. */
struct sim_save_area {
	uint32_t control, all, debugger;
};
struct sim_save_area sim_save_area(const struct gpu_info *info);

int sim_new(const struct sim_config *config, const struct sim_world *world, struct sim **ret);
struct sim *sim_free(struct sim *sim); /* takes NULL, returns NULL */

/*
 * Faults, one a text, checked when given. -EINVAL with a sentence in why (size why_size):
 *   IOCTL:N:ERRNO[:PID]   the N-th ioctl of that kind from now on (of that process) fails:
 *                         "create-queue:3:ENOMEM"; N "*": every one. Names as in kfd_ioctl.h,
 *                         lower case, with dashes
 *   gone:GPU              the GPU (its name) disappears, its queues with it
 *   teardown:MSEC         queues of processes that die from now on go away so late
 *   teardown:now          those of processes that are dead go away
 *   reset:GPU             the GPU is reset: its queues are lost, the GPU itself stays
 *   evict:PID             the queues of that process stop on every GPU, until restore:PID
 *   restore:PID           they run again
 *   smi:GPU:TEXT          who subscribed to SMI events of that GPU reads TEXT, which begins with
 *                         the number of an event in hexadecimal: "smi:0000:03:00.0:2 1:7f"
 *   shift:BITS            masks that clients set are rotated by so many bits: a wrong order of bits
 *   cost:THREADS:NSEC     work-groups of so many threads take that long, alone on their CU, in
 *                         dispatches from now on; 0: what the timing model says
 */
int sim_fault(struct sim *sim, const char *text, uint64_t now_ns, char *why, size_t why_size);

/* ---- what a front end brings ---------------------------------------------------------------- */

/* open("/dev/kfd") by a process (its thread group's id). The same process again: the same
 * struct, as in the driver (kfd_create_process()). Processes are told apart by pid; one that
 * ended must have been told by sim_exit() before its pid is used again. -ENOMEM. */
int sim_open(struct sim *sim, pid_t pid, struct sim_process **ret);

/* The process's memory is gone: exit, or exec. Its requests that wait are forgotten, not
 * answered; its queues go now or, with the fault teardown, later. Unknown pids are fine. */
void sim_exit(struct sim *sim, pid_t pid, uint64_t now_ns);

/* The last close of a file that CREATE_PROCESS made that of a secondary context: it ends. */
void sim_close(struct sim_process *file, uint64_t now_ns);

/*
 * One ioctl on a /dev/kfd that `opener` opened, called by process `caller`. cmd as the client
 * gave it; argument holds size bytes (of _IOC_SIZE(cmd), at most SIM_ARGUMENT_MAX; the core
 * zero-extends what is short) and is written back in place. request names it for
 * world.answer() and sim_cancel(). Returns 0, a negative errno as the driver's, or
 * -EINPROGRESS: answered later. -EBADF: the caller is not the opener (kfd_ioctl()).
 */
#define SIM_ARGUMENT_MAX 4096U
int sim_ioctl(struct sim *sim, struct sim_process *opener, pid_t caller, uint64_t request,
	      unsigned cmd, void *argument, size_t size, uint64_t now_ns);

/* The same for an open file that belongs to *file: CREATE_PROCESS makes it another one, which ends
 * by sim_close(). */
int sim_ioctl_file(struct sim *sim, struct sim_process **file, pid_t caller, uint64_t request,
		   unsigned cmd, void *argument, size_t size, uint64_t now_ns);

/* One ioctl on the render node with that minor, as sim_ioctl(). -ENODEV: its GPU is gone. -ENOTTY: no
 * request to a render node. -EOPNOTSUPP: one that is not emulated. */
int sim_render_ioctl(struct sim *sim, unsigned minor, pid_t caller, unsigned cmd, void *argument,
		     size_t size, uint64_t now_ns);

/* A signal ended the wait: forgets the request; the front end answers EINTR. */
void sim_cancel(struct sim *sim, uint64_t request);

/*
 * Everything that happens by itself: doorbells are looked at, packets retire, dispatches end,
 * waits time out, the dead are torn down. Returns nanoseconds until it wants to be called
 * again: UINT64_MAX where nothing can happen before the next call from outside (no queue
 * lives), small while there are doorbells to watch.
 */
uint64_t sim_work(struct sim *sim, uint64_t now_ns);
