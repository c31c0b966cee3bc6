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

/* How many of the answers are this error; NULL: none. */
unsigned count_answers(const struct answer *answers, unsigned n, const char *error);
void drop_answers(struct answer *answers, unsigned n);

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

void bind_process(sd_bus *bus, const struct live_lease *lease, int pidfd);

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

/* Whether a text property of the lease contains the text; "": is empty. */
bool lease_says(sd_bus *bus, const char *path, const char *name, const char *text);

bool gpu_says(sd_bus *bus, const char *name, const char *text);

bool lease_exists(sd_bus *bus, const char *path);

/* A dictionary of an aa{sv}, without the values that have several parts: " pid=12 uid=1 command=name ". */
struct row {
	char text[512];
};

#define ROWS_MAX 16U /* the last of more replaces the others after it */

/* Reads the dictionary at which the message is; false: it is at the end of an array of them. */
bool read_row(sd_bus_message *m, struct row *ret);

/* Reads the array at which the message is. Returns how many rows it has. */
unsigned read_rows(sd_bus_message *m, struct row rows[static ROWS_MAX]);

/* The rows of a property. */
unsigned rows_of(sd_bus *bus, const char *path, const char *interface, const char *name,
		 struct row rows[static ROWS_MAX]);

/* 0: it has no such key. */
uint64_t row_number(const struct row *row, const char *key);

bool row_has(const struct row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What ReadLimits tells of a user; "": nothing. */
struct row user_limits(sd_bus *bus, uid_t uid);
uint64_t user_limit(sd_bus *bus, uid_t uid, const char *key);

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

/* Starts a process of uid that waits to be killed; returns its pid and pidfd, which is NULL or stays open with the
 * program of the test, as holders do. */
pid_t idler(uid_t uid, int *ret_pidfd);

/* Starts a process of one user with a child of another, as su does. Both wait to be killed. */
pid_t family(uid_t uid, uid_t uid_of_child, pid_t *ret_child);

void end_process(pid_t pid);

/* ---- the daemon's log ---- */

/* Redirects stderr, also of daemons that start now, to a file of the rig until log_end(). */
void log_begin(const struct rig *rig);

/* Whether the file has the text now. */
bool log_says(const struct rig *rig, const char *text);

/* Restores stderr and returns the text of the file, valid until the next call. */
const char *log_end(const struct rig *rig);

/* ---- the end of a test ---- */

/* Starts the daemon without what it says of each lease, and without AddressSanitizer's keeping
 * of what is freed, which would hide what is not. */
void start_quietly(struct rig *rig, void (*start)(struct rig *rig));
