/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Clients of the shipped daemon: synchronous calls, leases, signals, the daemon's log. */

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
#include "await.h"
#include "dbus/record.h"

/* For NEEDS(): why there can be no gpuarbd with two users. */
const char *daemon_missing(void);

/* A configuration that allows hundreds of besteffort leases on one GPU. */
#define CROWD "[daemon]\noversubscribe = besteffort\n"

/* Sends the call, frees it, waits for the answer, and returns that for the caller to free. */
sd_bus_message *call(sd_bus_message *m);

uint64_t boottime_usec(void);

void await_time(uint64_t boottime);

/* ---- leases ---- */

struct live_lease {
	char path[64];
	uint64_t id;
	int holder;
};

/* Takes the lease out of an answer of Reserve, and frees the answer. */
struct live_lease reserved(sd_bus_message *m, const char *in_state);

struct live_lease granted(sd_bus_message *m);

struct live_lease waiting(sd_bus_message *m);

struct live_lease reserve(sd_bus *bus, unsigned cus);

/* A Reserve call for a shared lease of 15 CUs; see CROWD. */
sd_bus_message *ask_shared(sd_bus *bus);

sd_bus_message *ask_token(sd_bus *bus, unsigned cus, const char *token);

sd_bus_message *ask_bound(sd_bus *bus, unsigned cus, int fd);

sd_bus_message *resize(sd_bus *bus, const char *path, unsigned cus);

sd_bus_message *release(sd_bus *bus, const char *path);

/* ---- records on a holder ---- */

struct live_record {
	struct gpuarb_record record;
	struct gpuarb_record_partition partitions[8];
};

/* Reads the next record; false at the end of the stream. */
bool next_record(int holder, struct live_record *ret);

/* Reads records until one has the state. */
struct live_record await_record(int holder, enum gpuarb_record_state state);

/* ---- properties ---- */

uint64_t number_of(sd_bus *bus, const char *path, const char *interface, const char *name);

unsigned gpu_number(sd_bus *bus, const char *name);

/* Whether a text property of the lease contains the text. */
bool lease_says(sd_bus *bus, const char *path, const char *name, const char *text);

bool lease_exists(sd_bus *bus, const char *path);

/* ---- signals ---- */

struct told {
	unsigned added, removed;
	unsigned gpu, lease;           /* PropertiesChanged of each kind of object */
	unsigned cus_free, slots_free; /* of the last one */
	char last_added[64], last_removed[64];
};

void listen_in(sd_bus *bus, struct told *told);

/* A daemon, the connections of root and, where the test has it, of STRANGER, and what root is told. */
struct live {
	struct rig rig;
	sd_bus *bus, *user;
	struct told told;
};

/* Connects as root, and listens. */
void live_connect(struct live *live);

/* ---- processes ---- */

/* Starts a process of uid that waits to be killed; returns its pid and pidfd. */
pid_t idler(uid_t uid, int *ret_pidfd);

/* Starts a process of one user with a child of another, as su does. Both wait to be killed. */
pid_t family(uid_t uid, uid_t uid_of_child, pid_t *ret_child);

void end_process(pid_t pid);

/* ---- the daemon's log ---- */

/* Redirects stderr, also of daemons that start now, to a file of the rig until log_end().
 * Returns the previous stderr. */
int log_begin(const struct rig *rig);

/* Whether the file has the text now. */
bool log_says(const struct rig *rig, const char *text);

/* Restores stderr and returns the text of the file, valid until the next call. */
const char *log_end(const struct rig *rig, int before);

/* ---- the end of a test ---- */

/* Starts the daemon without what it says of each lease, and without AddressSanitizer's keeping
 * of what is freed, which would hide what is not. */
void start_quietly(struct rig *rig, void (*start)(struct rig *rig));
