/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A directory that stands for /proc, with DRM clients of amdgpu, and gpuarb-fdinfo that reads it. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCFS_ADDRESS "0000:03:00.0" /* the first GPU of a fake machine */

struct fake_procfs {
	char dir[96];    /* exists; the caller removes it */
	char socket[96]; /* of the helper, beside it */
	pid_t listener;  /* 0: none */
};

struct procfs_client {
	unsigned id;
	const char *device; /* NULL: PROCFS_ADDRESS */
	uint64_t gfx_nsec, compute_nsec;
	uint64_t vram; /* KiB */
};

/* Makes DIR/proc. */
void procfs_new(const char *dir, struct fake_procfs *ret);

/* Adds a process: with the stat file that /proc has of this pid, or with this start time unless that
 * is 0. */
void procfs_process(const struct fake_procfs *procfs, pid_t pid, uint64_t start_time);
void procfs_process_gone(const struct fake_procfs *procfs, pid_t pid);

/* Writes the text of a descriptor, in one step. */
void procfs_text(const struct fake_procfs *procfs, pid_t pid, unsigned fd, const char *text);

/* The same, as Linux 6.12 shows a client of amdgpu. */
void procfs_client(const struct fake_procfs *procfs, pid_t pid, unsigned fd,
		   const struct procfs_client *client);

/* Starts gpuarb-fdinfo for each connection to the socket, as systemd does. idle: its
 * --exit-idle-time=, NULL for the default. program: NULL for gpuarb-fdinfo. */
void procfs_serve(struct fake_procfs *procfs, const char *program, const char *idle);

/* Ends the listener. */
void procfs_done(struct fake_procfs *procfs);
