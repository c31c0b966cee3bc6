/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The emulator without FUSE: /dev/kfd is a plain sparse file on a tmpfs, so that mmap() of it
 * is the kernel's own; a filter (seccomp, user notification) hands ioctls of types 'K' and 'd' to
 * this process; and texts are plain files that are written anew where they changed. It takes
 * no privilege: where there is none, a user namespace is made.
 *
 * The filter hands over openat() too, which then goes on as it would: so whoever opens a text
 * finds it as it is at that time, as one that is made when it is read. And nobody may change the
 * size of what stands for /dev/kfd.
 *
 * What is other than with FUSE: a text is not made anew for who keeps it open, and who only looks
 * if it is there may be some milliseconds behind; faults written to control get no answer; a
 * descriptor that is kept over an exec is as good as a new one; and who has a listener of its
 * own cannot be run.
 */

#include <limits.h>

#include "kfdsim/front/front.h"

#define SECCOMP_PATH (PATH_MAX + 64U) /* with /proc/TID/root before it */

/* A system call of a thread, as it called it. */
struct seccomp_call {
	uint64_t id;
	int number;
	pid_t tid, pid;
	int fd;           /* AT_FDCWD where the call has none */
	unsigned cmd;     /* ioctl */
	uint64_t address; /* of its argument, or of a path */
	uint64_t flags;   /* of what opens */
};

/* A request that waits: world.answer() is to come. */
struct seccomp_wait {
	uint64_t id;
	pid_t tid;
	uint64_t address; /* of the argument */
	size_t room;      /* that is written back there */
	struct seccomp_wait *next;
};

/* A descriptor that a process was seen to use: an open file is its opener's. */
struct seccomp_file {
	pid_t pid;
	int fd;
	struct seccomp_file *next;
};

struct seccomp {
	struct front *front;
	int pair[2];     /* the listener comes over it */
	int listener_fd; /* -1: gone */
	int timer_fd, control_fd;
	int epoll_fd; /* of these three */
	struct seccomp_wait *waits;
	struct seccomp_file *files;
	char *generation; /* the topology's, as the files have it */
};

/* ---- seccomp-filter.c ---- */

/* True if this kernel can do it (Linux 5.19). */
bool seccomp_there(void);

/* What a filter hands over: all that the front end without FUSE serves, or only SMI_EVENTS, which
 * FUSE cannot answer with a descriptor. */
enum seccomp_calls { SECCOMP_CALLS_ALL, SECCOMP_CALLS_SMI };

/* Puts the filter on this process, and what it starts, and sends the listener. */
int seccomp_install(int socket_fd, enum seccomp_calls calls);
int seccomp_receive(int socket_fd, int *ret_listener_fd);

/* Puts a descriptor of this process into the one whose call that is: its number there. */
int seccomp_give(int listener_fd, uint64_t id, int fd);

/* ---- seccomp-wait.c ---- */

/* Whoever asked was not killed meanwhile: what /proc says of the thread is of the same one. */
bool seccomp_waits(const struct seccomp *seccomp, uint64_t id);

/* 0 or a negative errno for the caller, or flags to go on by itself. */
int seccomp_reply(const struct seccomp *seccomp, uint64_t id, int result, uint32_t flags);
int seccomp_reply_call(const struct seccomp *seccomp, const struct seccomp_wait *wait, int result,
		       const void *argument);

bool seccomp_take_wait(struct seccomp *seccomp, uint64_t id, struct seccomp_wait *ret);
void seccomp_answer(struct front *front, uint64_t id, int result, const void *argument,
		    size_t size);

/* Requests of the dead are forgotten; those whose thread has a signal to take end in EINTR. */
void seccomp_look_at_waits(struct seccomp *seccomp);
void seccomp_forget(struct seccomp *seccomp); /* all that is kept of requests */

/* ---- seccomp-device.c ---- */

/* True if the path leads to /dev/kfd or a render node: here they are one file. */
bool seccomp_is_device(const struct seccomp *seccomp, const char *path);

/* open() with O_TRUNC of a device: true, and answered as without, or *ret is a negative errno. */
bool seccomp_open_whole(const struct seccomp *seccomp, const struct seccomp_call *call,
			const char *path, int *ret);

/* truncate(), ftruncate() and fallocate(): refused on a device. path: truncate()'s. */
int seccomp_resize(struct seccomp *seccomp, const struct seccomp_call *call, const char *path);

/* ---- seccomp-ioctl.c ---- */

int seccomp_ioctl(struct seccomp *seccomp, struct seccomp_call *call);

/* ---- seccomp-files.c ---- */

/* Brings files in line with the tree: the topology's only where that has changed. Processes are
 * what is looked for by name; debugfs has long texts, wanted by who opens them. */
int seccomp_write_processes(struct seccomp *seccomp);
int seccomp_write_files(struct seccomp *seccomp); /* all */

/* Before a path is opened: writes the files where it is one of them. */
int seccomp_open(struct seccomp *seccomp, const struct seccomp_call *call, const char *path);

/* The path as the caller gave it; empty if it cannot be read. */
void seccomp_path(const struct seccomp *seccomp, const struct seccomp_call *call,
		  char path[PATH_MAX]);

/* ---- seccomp-mirror.c ---- */

/* One directory of the tree, and all below, as plain files in the directory `to`. Links of
 * device are the render nodes. A text changes by being replaced, never half. */
int mirror_tree(struct tree *tree, const char *path, const char *to, const char *device);
