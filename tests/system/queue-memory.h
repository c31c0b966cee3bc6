/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <linux/kfd_ioctl.h>
#include <stdint.h>

#define QUEUE_PAGE 4096

/* A GPU, as the topology of KFD has it. */
struct gpu_node {
	unsigned id, minor, xccs;
	uint32_t control, save, debugger; /* bytes of the area to save a queue to, of each XCC */
};

/* Reads node N of the topology. Ends the program with a message if it is not a GPU. */
struct gpu_node gpu_node_read(unsigned n);

/* The arguments of CREATE_QUEUE for an AQL queue of this GPU, with memory of its own. */
struct kfd_ioctl_create_queue_args queue_args_new(const struct gpu_node *node);

/* Maps the memory of a queue to the GPU, as the driver wants it since Linux 6.12: that of the process
 * (KFD_IOC_ALLOC_MEM_FLAGS_USERPTR), or memory of the kernel in its place (…_GTT). Needs ACQUIRE_VM.
 * 0, or negative errno. */
int queue_args_map(int kfd, const struct kfd_ioctl_create_queue_args *args,
		   const struct gpu_node *node, uint32_t kind);
