/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The file system that stands for the emulated driver's files: the raw FUSE protocol over
 * /dev/fuse, the tree of tree.h below one mount. Devices are regular files whose memory is
 * the arena (passthrough); texts are made when they are read from their beginning.
 */

#include <sys/queue.h>

#include "kfdsim/front/front.h"
#include "kfdsim/front/fuse-wire.h"

#define FUSE_BUCKETS 1024U
#define FUSE_MAX_WRITE 65536U

/* A file that the kernel knows: its number there is its address here, but the root's is 1. */
struct fuse_node {
	char *path;
	enum tree_kind kind;
	uint64_t lookups;
	struct fuse_node *next; /* of its bucket */
};

struct fuse_nodes {
	struct fuse_node root;
	struct fuse_node *buckets[FUSE_BUCKETS];
};

/* A request that waits: world.answer() is to come. */
struct fuse_wait {
	uint64_t unique;
	size_t room; /* for the argument */
	struct fuse_wait *next;
};

struct fuse {
	struct front *front;
	int fd;
	int32_t backing_id;
	struct fuse_nodes nodes;
	struct fuse_wait *waits;
	LIST_HEAD(, fuse_handle) handles; /* that are open */
	int epoll_fd;                     /* of fd and what the gate has */
	int pair[2];                      /* the listener comes over it */
	int gate_fd;                      /* the listener; -1: not there yet, or gone */
	uint64_t gated; /* the call that came through it and is served now; 0: none */
	uint8_t buffer[FUSE_MAX_WRITE + 4096];
};

/* One request: its header, and what follows. */
struct fuse_request {
	const struct fuse_in_header *in;
	const void *body;
	size_t size;
	struct fuse_node *node;
};

/* What serves one opcode. Returns 0 once it has replied (or withholds the reply), else a
 * negative errno to reply with. */
typedef int fuse_handler(struct fuse *fuse, const struct fuse_request *request);

/* Takes this process into its private mount namespace with FRONT_SCRATCH in it, makes the arena and fills
 * front->world. A negative errno with a sentence in why where FUSE is not to be had here. */
int fuse_start(struct front *front, char *why, size_t size);

/* sim and tree are there: runs the command until it has ended. 0 and front->child_status,
 * or a negative errno, said on stderr. */
int fuse_run(struct front *front, char *const command[]);
void fuse_free(struct fuse *fuse); /* whether it was run or not */

/* A client that has gone meanwhile is not an error. */
int fuse_reply(struct fuse *fuse, uint64_t unique, int error, const void *data, size_t size);

/* Head and data as one answer. */
int fuse_reply_two(struct fuse *fuse, uint64_t unique, const void *head, size_t head_size,
		   const void *data, size_t size);

/* fuse-node.c */
struct fuse_node *fuse_node_of(struct fuse *fuse, uint64_t id);
uint64_t fuse_node_id(const struct fuse *fuse, const struct fuse_node *node);
void fuse_nodes_done(struct fuse_nodes *nodes);
fuse_handler fuse_lookup, fuse_forget, fuse_batch_forget, fuse_getattr, fuse_setattr;

/* fuse-file.c */
fuse_handler fuse_open, fuse_read, fuse_write, fuse_release, fuse_opendir, fuse_readdir;

/* fuse-ioctl.c */
fuse_handler fuse_ioctl, fuse_interrupt;
bool fuse_take_wait(struct fuse *fuse, uint64_t unique, size_t *ret_room);
void fuse_answer(struct front *front, uint64_t unique, int result, const void *argument,
		 size_t size);

/* fuse-gate.c */
int fuse_gate_prepare(struct fuse *fuse);
void fuse_gate_done(struct fuse *fuse);
int fuse_gate_install(struct fuse *fuse); /* in the command's process */
int fuse_gate_ready(struct fuse *fuse);

/* A descriptor of this process for the one that sent the request: its number there, or a negative errno. */
int fuse_gate_give(struct front *front, uint64_t request, int fd);

/* What an open file is: fh of the protocol. */
struct fuse_handle {
	LIST_ENTRY(fuse_handle) of_fuse;
	struct front_client *client; /* of /dev/kfd */
	struct sim_process *context; /* as front_ioctl() has it */
	bool render;                 /* a render node, and its minor */
	unsigned minor;
	char *data; /* a text, or a directory's entries */
	size_t size;
};

void fuse_handle_free(struct fuse_handle *handle);
