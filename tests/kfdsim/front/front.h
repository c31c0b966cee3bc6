/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the front end (fuse.h) stands on: the arena, clients' memory, who is alive, and the loop.
 *
 * One thread. /dev/kfd's requests come by the descriptor of FUSE; deaths by pidfds; everything
 * else happens in sim_work(), called when it said it wants to be.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kfdsim/driver/sim.h"
#include "kfdsim/text/tree.h"

#define FRONT_WHY 512U

struct fuse;

/* The directory that is kfdsim's own, a tmpfs in its mount namespace alone: nothing is ever left
 * behind. */
#define FRONT_SCRATCH "/sys/kernel/debug"

/* What stands for /sys: class/kfd/kfd, module/amdgpu. */
#define FRONT_SYSFS FRONT_SCRATCH "/sysfs"

/* A process that opened /dev/kfd. Gone from the list when it has ended, from memory when its
 * handles are closed too. */
struct front_client {
	pid_t pid;
	int pidfd;
	int memory_fd; /* its memory at the first open: reads 0 bytes once that is gone */
	unsigned handles;
	bool ended; /* sim_exit() was called: process is not valid any more */
	struct sim_process *process;
	struct front_client *next;
};

struct front {
	struct fuse *fuse;
	struct sim *sim;
	struct tree *tree;
	struct sim_world world;
	bool no_smi; /* without the listener that SMI_EVENTS needs */

	int arena_fd; /* memfd */
	int epoll_fd, signal_fd;
	struct front_client *clients;
	pid_t child; /* the command; its end ends the loop */
	bool child_ended;
	int child_status; /* as of waitpid() */
	unsigned signals; /* SIGTERM or SIGINT that came */
};

/* ---- front-memory.c ---- */

uint64_t front_now(void); /* CLOCK_MONOTONIC_RAW, nanoseconds */

/* Makes the arena in a memfd, and fills front->world. */
int front_arena(struct front *front);

void front_arena_free(struct front *front);

/* The thread group that a thread belongs to, as /proc says: requests name threads. */
int front_process_of(pid_t tid, pid_t *ret);

/* The minor of a render node, by its path. -EINVAL: it is none. */
int front_render_minor(const char *path, unsigned *ret);

/* ---- front-stream.c: struct sim_world's streams, as pairs of sockets, and kept files ---- */
void front_streams(struct sim_world *world);

/* ---- front-client.c ---- */

/* open("/dev/kfd") by a thread; each success wants a front_close(). The same process again:
 * the same client, unless it has become another program by exec. */
int front_open(struct front *front, pid_t tid, struct front_client **ret);

/* The last close of what was opened once. A process whose handles are all closed and whose
 * memory is another one has called exec: that ends it for the driver. */
void front_close(struct front *front, struct front_client *client);

/* Who has opened /dev/kfd already, or NULL. */
struct front_client *front_find(struct front *front, pid_t tid);

/* sim_ioctl() by a thread, -EBADF where the opener has ended or is not the thread's. *file is the
 * secondary context that the open file is of, NULL: the client's own; file NULL: files are not told
 * apart, and CREATE_PROCESS fails. */
int front_ioctl(struct front *front, struct front_client *client, struct sim_process **file,
		pid_t tid, uint64_t request, unsigned cmd, void *argument, size_t size);

/* Ends whoever is gone. Before a text is made, too: who asks for one after a death has its turn
 * before the pidfd may have, and nothing tells of files that an exec has closed. */
void front_bury(struct front *front);
void front_kill_clients(struct front *front);

/* ---- front.c ---- */

/* Forks the command: enter() goes to where it is to run, in the child, while the parent is in
 * front_loop() already; a negative errno of it, said on stderr, ends the child with 125. */
int front_spawn(struct front *front, char *const command[], int (*enter)(struct front *front));

/* Runs until the child has ended and nobody is left of those that it started: whoever it
 * left behind is killed. ready(): the front end's fd is readable. */
int front_loop(struct front *front, int fd, int (*ready)(struct front *front));

void front_done(struct front *front);
