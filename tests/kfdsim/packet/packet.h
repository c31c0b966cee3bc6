/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * What the packet processors share. A step takes at most one packet: it returns 1 where one
 * retired, 0 where there is none or it has to wait, and a negative errno where the queue was
 * stopped. Nothing that a client wrote is trusted: not the ring, nor what is in it.
 */

#include "util/base.h"
#include "kfdsim/driver/internal.h"

struct packet_step {
	uint64_t now_ns;
	uint64_t bytes; /* that may still be copied before others have their turn */
};

int aql_step(struct sim_queue *queue, struct packet_step *step);
int sdma_step(struct sim_queue *queue, struct packet_step *step);

/* Retires the dispatch that is at the queue's head: its packet is read anew. */
int aql_dispatch_ended(struct sim_queue *queue, uint64_t end_ns);

/* The same of a dispatch whose kernel was waiting (kernel.h). */
int aql_dispatch_retire(struct sim_queue *queue, uint64_t end_ns);

/* Its kernel has waited long enough. */
int aql_dispatch_give_up(struct sim_queue *queue, uint64_t now_ns);

/* Stops the queue for good and keeps why. Returns -EIO. */
int packet_stop(struct sim_queue *queue, const char *format, ...) PRINTF_LIKE(2, 3);

/* As sim_get() and sim_put(), but the queue is stopped where they fail. */
int packet_get(struct sim_queue *queue, uint64_t address, void *buf, size_t size);
int packet_put(struct sim_queue *queue, uint64_t address, const void *buf, size_t size);

/* Takes up the packet at read_index. */
void packet_begin(struct sim_queue *queue, uint64_t now_ns);

/* It is done: moves read_index on by that much, and tells the client. */
int packet_retire(struct sim_queue *queue, uint64_t by, uint64_t now_ns);
