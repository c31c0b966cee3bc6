/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The protocol between gpuarb-agent, which follows the lease of `gpuarbctl run`, and
 * libgpuarb-agent.so, which is loaded into each process of the command. Both are of one version and
 * run on one machine, so a message is one datagram with a structure in host byte order. The name of
 * two sockets is in the environment variable AGENT_VARIABLE: a file, and an abstract socket with the path as its name. gpuarb-agent sends the grant
 * when a process connects, and the newest grant when the lease changed and the last grant was
 * answered.
 */

#include <stdint.h>
#include <sys/types.h>

#include "libgpuarb/lease/mask.h"

#define AGENT_VARIABLE "GPUARB_AGENT"
#define AGENT_DEBUG "GPUARB_AGENT_DEBUG"
#define AGENT_VERSION 2U
#define AGENT_PARTITIONS 64U

struct agent_partition {
	uint32_t kfd_gpu_id;
	uint32_t xccs; /* every XCC needs a bit */
	uint32_t paused, priority;
	uint32_t n_words;       /* of cu_mask */
	uint32_t n_environment; /* words of environment */
	uint32_t cu_mask[MASK_WORDS];
	/* the mask in HSA_CU_MASK: the runtime sets it, so it is not an own mask of the program */
	uint32_t environment[MASK_WORDS];
};

/* Only the first n_partitions are sent. */
struct agent_grant {
	uint32_t version, n_partitions;
	uint64_t lease, generation; /* generation: from 1 */
	struct agent_partition partitions[AGENT_PARTITIONS];
};

struct agent_answer {
	uint32_t version;
	int32_t error; /* 0: every queue has the masks of this generation; else -errno */
	uint64_t generation;
};

static inline size_t agent_grant_size(const struct agent_grant *grant)
{
	return offsetof(struct agent_grant, partitions) +
	       grant->n_partitions * sizeof(grant->partitions[0]);
}

/* Whether these bytes are a valid grant of this version. */
static inline bool agent_grant_valid(const struct agent_grant *grant, size_t size)
{
	if (size < offsetof(struct agent_grant, partitions) || grant->version != AGENT_VERSION ||
	    grant->n_partitions > AGENT_PARTITIONS || grant->generation == 0 ||
	    size != agent_grant_size(grant))
		return false;
	for (size_t i = 0; i < grant->n_partitions; i++)
		if (grant->partitions[i].n_words == 0 ||
		    grant->partitions[i].n_words > MASK_WORDS ||
		    grant->partitions[i].n_environment > MASK_WORDS)
			return false;
	return true;
}

/*
 * The connection of a process to gpuarb-agent. The program may close every fd, this one included,
 * and its number may then belong to another file. So every use first compares the inode.
 */
struct link {
	int fd; /* -1: none */
	ino_t inode;
};

/* Connects to one of the sockets of this name, of at most 106 bytes. -ECONNREFUSED: nothing listens
 * there. -EPERM: a process of another user does. */
int link_open(struct link *link, const char *name);

/* Closes the fd if it still is this connection. */
void link_close(struct link *link);

bool link_is_ours(const struct link *link);

/*
 * Waits for a message or the end of the connection, at most msec milliseconds, or without limit for
 * -1. False: nothing came. Without limit it waits in recv(), which keeps the socket that it started
 * with. poll() resolves the number again whenever it wakes up, so it could wait for another file.
 */
bool link_wait(int fd, int msec);

/* Receives the next grant, waiting up to msec milliseconds. 1: received. 0: nothing came.
 * -ECONNRESET: the connection is closed. -EPROTO: the message is not a grant. */
int link_receive(const struct link *link, int msec, struct agent_grant *ret);

/* Reports that all queues have the masks of this generation, or why they do not (-errno). */
void link_answer(const struct link *link, uint64_t generation, int error);
