/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Clients of the shipped daemon: calls that are awaited, leases, what the bus tells. */

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>

#include "adapter.h"
#include "dbus/record.h"

#define NEEDS_DAEMON()                       \
	do {                                 \
		NEEDS_BUS();                 \
		if (rig_missing())           \
			SKIP(rig_missing()); \
	} while (0)

/* Hundreds of leases on one GPU: besteffort, shared and beyond the slots. */
#define CROWD "[daemon]\noversubscribe = besteffort\n"

/* Runs the connection until the condition holds. */
#define AWAIT(bus, cond)                \
	do {                            \
		while (!(cond))         \
			live_turn(bus); \
	} while (0)

void live_turn(sd_bus *bus);

/* Sends a call, which it frees, and awaits the answer, which is the caller's. */
sd_bus_message *call(sd_bus_message *m);

uint64_t boottime_usec(void);

void await_time(uint64_t boottime);

/* ---- leases ---- */

struct live_lease {
	char path[64];
	uint64_t id;
	int holder;
};

/* Out of the answer of Reserve, which it frees. */
struct live_lease reserved(sd_bus_message *m, const char *in_state);

struct live_lease granted(sd_bus_message *m);

struct live_lease waiting(sd_bus_message *m);

struct live_lease reserve(sd_bus *bus, unsigned cus);

/* A call for one of a crowd. */
sd_bus_message *ask_shared(sd_bus *bus);

sd_bus_message *ask_token(sd_bus *bus, unsigned cus, const char *token);

sd_bus_message *ask_bound(sd_bus *bus, unsigned cus, int fd);

sd_bus_message *resize(sd_bus *bus, const char *path, unsigned cus);

sd_bus_message *release(sd_bus *bus, const char *path);

/* ---- what a holder carries ---- */

struct live_record {
	struct gpuarb_record record;
	struct gpuarb_record_partition partitions[8];
};

/* The next record; false at the end. */
bool next_record(int holder, struct live_record *ret);

/* The first record that says this, of those that come. */
struct live_record await_record(int holder, enum gpuarb_record_state state);

/* ---- properties ---- */

uint64_t number_of(sd_bus *bus, const char *path, const char *interface, const char *name);

unsigned gpu_number(sd_bus *bus, const char *name);

/* Whether a text property of the lease has this in it. */
bool lease_says(sd_bus *bus, const char *path, const char *name, const char *text);

bool lease_exists(sd_bus *bus, const char *path);

/* ---- what the bus tells ---- */

struct told {
	unsigned added, removed;
	unsigned gpu, lease;           /* PropertiesChanged of each kind of object */
	unsigned cus_free, slots_free; /* of the last one */
	char last_added[64], last_removed[64];
};

void listen_in(sd_bus *bus, struct told *told);

/* ---- processes ---- */

/* A process that waits to be killed, and its pidfd. */
pid_t idler(uid_t uid, int *ret_pidfd);

void end_process(pid_t pid);

/* Sends an fd over a socket; with fd -1 it receives one, and returns it. */
int pass(int socket, int fd);

/* ---- the daemon's log ---- */

/* Until log_end() what is written to stderr, by daemons started meanwhile too, goes to a
 * file of the rig. Returns what stderr was. */
int log_begin(const struct rig *rig);

/* What was written, valid until the next call. */
const char *log_end(const struct rig *rig, int before);

/* ---- the end of a test ---- */

void leave(sd_bus *bus);

/* Starts the daemon without what it says of each lease, and without AddressSanitizer's keeping
 * of what is freed, which would hide what is not. */
void start_quietly(struct rig *rig, void (*start)(struct rig *rig));
