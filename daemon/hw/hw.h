/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the daemon needs of hardware: which GPUs there are, and what processes do with
 * them. One implementation a file. Nothing here writes to hardware, opens /dev/kfd, or
 * waits.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/mask/gpu-info.h"
#include "util/diagnostics.h"

struct hw;

/* What one process has on one GPU now. */
struct hw_use {
	pid_t pid; /* in the namespace that the kernel reports: the initial one */
	uint32_t kfd_gpu_id;
	unsigned queues; /* compute queues: each wants a queue slot */
	unsigned sdma_queues;
	uint64_t vram; /* bytes */
};

struct hw_ops {
	const char *name; /* "kfd", "simulated" */

	/* where: the directory that stands for /sys (kfd); NULL: /sys itself. A machine without
	 * a GPU, or whose driver is not loaded yet, opens fine: list() says so and finds what
	 * comes later. Returns a negative errno with a note where `where` is no directory. */
	int (*open)(const char *where, struct hw **ret, struct diagnostics *diagnostics);

	/* Takes NULL. */
	void (*close)(struct hw *hw);

	/* Fills gpus[] with up to max GPUs, ordered by name; returns how many there are in
	 * all: 0 is a machine without a GPU. What had to be guessed or left out is told in
	 * notes, naming the file. A GPU that cannot be believed is left out with an error
	 * among the notes; -EIO, with a note, where none of the tree can be. */
	int (*list)(struct hw *hw, struct gpu_info *gpus, size_t max,
		    struct diagnostics *diagnostics);

	/* A number that is another whenever list() may have another answer. Cheap: asked for at
	 * every look. UINT64_MAX while it cannot be told. */
	uint64_t (*generation)(struct hw *hw);

	/* Fills uses[] with up to max rows, one for each process and GPU that it holds
	 * queues or memory on, ordered by pid, then GPU; returns how many there are in
	 * all. A process that goes while it is read is left out, never an error; -E2BIG where
	 * there are more of anything than a driver can have. */
	int (*use)(struct hw *hw, struct hw_use *uses, size_t max);
};

extern const struct hw_ops hw_kfd;

/* GPUs from profiles, read elsewhere: card i shows partitions[i] GPUs like cards[i] (1, or
 * 8 for an MI300X in CPX mode). They are named 0000:03:00.0, 0000:04:00.0, … and
 * …/0 to …/7 where there are partitions; their kfd_gpu_id is 0 and nobody ever uses them.
 * hw_simulated.open answers -EOPNOTSUPP: there is nothing on this machine to open. */
int hw_simulated_new(const struct gpu_info *cards, const unsigned *partitions, size_t n,
		     struct hw **ret);
extern const struct hw_ops hw_simulated;
