/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Clients of a daemon that is killed at any moment: they compare what they received with the
 * ledger of the next daemon. */

#include <poll.h>

#include "book.h"
#include "dbus/record.h"
#include "scratch.h"

enum knowledge { NOTHING, WAITING, GRANTED, GONE };

/* A lease as one client received it. */
struct known {
	struct live_lease lease; /* holder -1: none, or closed */
	enum knowledge told;
	uint32_t cause;
	uint64_t generation;
	struct book_part parts[BOOK_GPUS];
	unsigned n_parts;
	bool expires, bound, resized, acknowledged;
};

struct stage {
	struct rig rig;
	sd_bus *bus;
	bool gone; /* the daemon */
	struct told heard;
	bool drained;
	bool untraceable; /* the service manager cannot trace the daemon */
	pid_t process;
	int pidfd;
	struct known known[2];
	struct book book;
};

/* ---- clients that may lose their daemon ------------------------------------------------ */

/* Connects as root, and sees the daemon leave the bus. */
void crash_connect(struct stage *stage);

/* Sends the call and frees it. Returns the answer; NULL: the daemon has ended. */
sd_bus_message *crash_try(sd_bus_message *m);

/* Whether the call succeeded. */
bool crash_done(sd_bus_message *m);

/* Calls the daemon once: what it does after its previous answer is done then. */
void ping(struct stage *stage);

void take_grant(struct known *known, sd_bus_message *answer);

/* Reads all records that have arrived. */
void hear(struct known *known);

/* Waits until the state of the lease changes, or the daemon ends. */
void await_news(struct stage *stage, struct known *known);

bool no_file_is_left(const struct stage *stage);

/* ---- a daemon that is killed at each point that a client can observe ------------------------ */

/* Tries at 1, 2 and so on, until three points in a row were not reached: an operation has no more then.
 * (Signals may go out together or one by one.) Returns how many were. */
unsigned crash_at_each(struct stage *stage, bool (*try_at)(void *data, unsigned at), void *data);

/* Has the service manager kill the daemon at the point number at. False where it cannot trace. */
bool crash_arm(struct stage *stage, unsigned at);

/* Returns whether the daemon was killed. */
bool crash_disarm(struct stage *stage, unsigned at);

/* Starts the next daemon, and kills it at the point number at unless that is 0. Returns whether it
 * was killed. */
bool crash_start_next(struct stage *stage, unsigned at);

struct operation {
	const char *hardware;
	void (*configure)(const struct rig *rig); /* NULL: defaults */
	bool compares; /* `after` does, and knows the leases, which are stage->known[] all the same */
	void (*before)(struct stage *stage);
	void (*run)(struct stage *stage);   /* the daemon may end at any moment in it; NULL:
					     * only the start after a crash is tested */
	void (*after)(struct stage *stage); /* with the next daemon */
};

/* Kills the daemon at each of its points in the operation, and at each point of the start after
 * it, and compares the ledger with what the clients were told. Returns false where processes cannot
 * be traced. */
bool crash_everywhere(const struct operation *operation);

#define CRASH_EVERYWHERE(...)                                                    \
	do {                                                                     \
		if (!crash_everywhere(&(const struct operation){ __VA_ARGS__ })) \
			SKIP("processes cannot be traced here");                 \
	} while (0)
