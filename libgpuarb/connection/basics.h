/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What every file of the library uses: cleanup, memory, and waiting. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/util/base.h"

#define GPUARB_EXPORT __attribute__((visibility("default")))

/* Returns the fd and sets the variable to -1. */
#define TAKE_FD(fd)             \
	({                      \
		int take_ = fd; \
		fd = -1;        \
		take_;          \
	})

/* Closes *fd unless it is negative, and sets it to -1. */
void close_fd(int *fd);

/* ---- arena: allocations that are freed together, such as all strings of one answer ------- */

struct arena {
	struct arena_block *blocks; /* an arena starts zeroed */
};

/* Room for n objects of size bytes, zeroed; not NULL for n = 0. NULL: out of memory. */
void *arena_alloc(struct arena *arena, size_t n, size_t size);
char *arena_string(struct arena *arena, const char *string);
void *arena_copy(struct arena *arena, const void *data, size_t n, size_t size);
void arena_clear(struct arena *arena); /* frees everything; the arena is empty afterwards */

/* Frees an object of malloc(3) that begins with its arena. NULL is allowed. */
void arena_object_free(void *object);
DEFINE_CLEANUP(void *, arena_object_free)

/* Frees what *arena has and moves the allocations of *from there. */
void arena_take(struct arena *arena, struct arena *from);

struct gpuarb_refusal;
struct gpuarb_refusal_facts;

/* Rows and their facts, in the same order. */
struct refusals {
	const struct gpuarb_refusal *rows;
	const struct gpuarb_refusal_facts *facts;
	size_t n;
};

/* What all partitions of a lease have in common. An older daemon has none of the keys: it caps no lease, and
 * limits none. */
struct terms {
	bool cap;
	uint64_t duration;
};

/* ---- waiting ------------------------------------------------------------------------- */

uint64_t now_usec(void);                /* CLOCK_MONOTONIC */
uint64_t deadline_after(uint64_t usec); /* UINT64_MAX for GPUARB_FOREVER */

struct pollfd;

/* poll() until a deadline. Returns the number of ready fds, -ETIMEDOUT or -EINTR. */
int poll_until(struct pollfd *fds, size_t n, uint64_t deadline);
