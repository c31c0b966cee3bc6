/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Plays what the kernels of client/latency/kernel.c do, where the timing model runs: they are recognised by
 * the symbols of their code object in the memory of the GPU, and see where the model put their work-groups.
 * No instruction is executed. Every other kernel does nothing.
 */

#include "kfdsim/packet/packet.h"

/* A dispatch of a kernel. */
struct kernel_call {
	uint64_t object, arguments; /* addresses: of the descriptor, of the arguments */
	uint32_t blocks, threads;   /* work-groups, and threads of each */
};

/* Fills in how long its work-groups take, unless that is set, and what the model is to tell of them. */
void kernel_prepare(struct sim_queue *queue, const struct kernel_call *call,
		    struct timing_kernel *kernel);

/* The model has it. */
void kernel_begin(struct sim_queue *queue, const struct kernel_call *call, uint64_t now_ns);

/* The model has ended it: writes what it writes. 0; 1: it goes on and waits for another kernel, which ends
 * both by aql_dispatch_retire(), or until kernel_patience(). A negative errno: the queue is stopped. */
int kernel_end(struct sim_queue *queue, const struct kernel_call *call, uint64_t end_ns);

/* It has waited in vain. */
int kernel_give_up(struct sim_queue *queue, const struct kernel_call *call);

/* As the constant clock of the GPU counts: 100 MHz. A value of the kernel that reads it says that it is
 * a model's. */
#define KERNEL_TICK_NS 10U
