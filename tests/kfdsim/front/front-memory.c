/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kfdsim/front/fuse.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "util/base.h"

#define ARENA_SIZE (1ULL << 42) /* sparse: only pages that were touched cost anything */

uint64_t front_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t now(void *front)
{
	(void)front;
	return front_now();
}

/* Addresses are the client's: a number here, never followed. */
static struct iovec there(uint64_t address, size_t size)
{
	return (struct iovec){ .iov_base = (void *)(uintptr_t)address, .iov_len = size };
}

static int read_memory(void *userdata, pid_t pid, uint64_t address, void *buf, size_t size)
{
	struct iovec here = { .iov_base = buf, .iov_len = size }, remote = there(address, size);

	(void)userdata;
	return process_vm_readv(pid, &here, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

static int write_memory(void *userdata, pid_t pid, uint64_t address, const void *buf, size_t size)
{
	struct iovec here = there((uintptr_t)buf, size), remote = there(address, size);

	(void)userdata;
	return process_vm_writev(pid, &here, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

/* A file's hole: zero, and of no cost. */
static void clear(void *userdata, uint64_t place, uint64_t size)
{
	struct front *front = userdata;
	uint8_t *piece = front->world.arena + place;

	if (madvise(piece, size, MADV_REMOVE) < 0)
		memset(piece, 0, size);
}

static void answer(void *userdata, uint64_t request, int result, const void *argument, size_t size)
{
	struct front *front = userdata;

	fuse_answer(front, request, result, argument, size);
}

void front_arena_free(struct front *front)
{
	if (front->world.arena)
		munmap(front->world.arena, front->world.arena_size);
	if (front->arena_fd >= 0)
		close(front->arena_fd);
	front->world = (struct sim_world){ 0 };
	front->arena_fd = -1;
}

int front_arena(struct front *front)
{
	int fd = memfd_create("kfdsim", MFD_CLOEXEC), r;
	void *arena;

	if (fd < 0)
		return -errno;
	arena = ftruncate(fd, (off_t)ARENA_SIZE) < 0
			? MAP_FAILED
			: mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			       fd, 0);
	if (arena == MAP_FAILED) {
		r = -errno;
		close(fd);
		return r;
	}
	front->arena_fd = fd;
	front->world = (struct sim_world){
		.userdata = front,
		.read = read_memory,
		.write = write_memory,
		.answer = answer,
		.now = now,
		.arena = arena,
		.arena_size = ARENA_SIZE,
		.clear = clear,
	};
	front_streams(&front->world);
	return 0;
}

int front_process_of(pid_t tid, pid_t *ret)
{
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	char path[64];
	FILE *stream;
	int r = -ESRCH;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	stream = fopen(path, "re");
	if (!stream)
		return -ESRCH;
	while (r < 0 && getline(&line, &size, stream) > 0)
		if (strncmp(line, "Tgid:", 5) == 0) {
			*ret = (pid_t)strtol(line + 5, NULL, 10);
			r = 0;
		}
	fclose(stream);
	return r;
}

int front_render_minor(const char *path, unsigned *ret)
{
	return sscanf(basename(path), "renderD%u", ret) == 1 ? 0 : -EINVAL;
}
