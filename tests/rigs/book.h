/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The ledger as read from the bus, to compare it with what clients received. */

#include "live.h"

#define BOOK_LEASES 64
#define BOOK_GPUS 8
#define BOOK_WORDS 16

struct book_part {
	char gpu[32];
	uint32_t mask[BOOK_WORDS];
	unsigned cus, queues;
};

struct book_lease {
	uint64_t id, generation, deadline;
	char state[16], reason[128];
	unsigned position, n_parts;
	struct book_part parts[BOOK_GPUS];
};

struct book_gpu {
	char path[64], name[32];
	unsigned cus, cus_free, slots, slots_free, draining;
};

struct book {
	struct book_lease leases[BOOK_LEASES];
	struct book_gpu gpus[BOOK_GPUS];
	unsigned n_leases, n_gpus;
};

/* Reads aa{sv}. */
void book_take_parts(sd_bus_message *m, struct book_part *parts, unsigned *n);

void book_read(sd_bus *bus, struct book *ret);

struct book_lease *book_find(struct book *book, uint64_t id);

bool book_same_parts(const struct book_lease *lease, const struct book_part *parts, unsigned n);

/* Checks a ledger without shared leases: no CU is in two masks; granted and free resources are
 * at most those of the GPU, and exactly those when settled (no acknowledgement is pending). */
void book_check(const struct book *book, bool settled);

/* Whether no lease exists and everything is free. */
bool book_is_empty(const struct book *book);
