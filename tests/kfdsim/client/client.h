/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the clients of the emulated driver share. Each prints a line for everything it has done,
 * and ends with 1 if any of it failed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_MASKS 16U
#define CLIENT_WORDS 32U

struct client_mask {
	uint32_t words[CLIENT_WORDS];
	unsigned n; /* words */
};

/*
 *	--device N      of the GPUs that the library sees (0)
 *	--streams N     plain queues or streams
 *	--masked HEX    one with this mask, any number of digits; may be repeated
 *	--high          one of high priority
 *	--copy          memory there and back (HIP)
 *	--work          a packet through each queue, and wait for it
 *	--broken        an invalid packet to a queue of its own, and what ROCr says of it
 *	--hold          then print "ready" and wait until standard input ends; with HIP, each line
 *	                that comes there makes a plain stream more, and "ready" again
 */
struct client_options {
	unsigned device, streams;
	struct client_mask masks[CLIENT_MASKS];
	size_t n_masks;
	bool high, copy, work, broken, hold;
};

/* Ends the program with 2 where the command line is wrong. */
void client_options(struct client_options *options, int argc, char *argv[]);

void client_hold(const struct client_options *options);

/* Prints "ready" and waits for a line of standard input; false at its end, or without --hold. */
bool client_step(const struct client_options *options);
