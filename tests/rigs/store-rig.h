/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A service manager inside of the test: what it is sent waits until the test has it read. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check-cond.h"
#include "scratch.h"
#include "manager-store.h"
#include "sys/liveness/store.h"

struct manager {
	struct manager_store store;
	int socket;
	char address[64]; /* for NOTIFY_SOCKET */
	unsigned kept, forgotten, barriers;
	bool tardy; /* what it does not keep it closes after the barrier */
	int late;   /* that; -1: nothing */
};

void manager_bind(struct manager *manager);

void manager_start(struct manager *manager, size_t max);

void manager_stop(struct manager *manager);

/* One message, if there is one and the manager is there. */
bool manager_read(struct manager *manager);

struct manager_thread {
	struct manager *manager;
	int stop;
};

/* Who looks for a store waits for answers. */
struct store *manager_store_new(struct manager *manager, sd_event *event,
				struct diagnostics *diagnostics);

/* Lets the two go on until there is nothing more to do. */
void manager_settle(struct manager *manager, sd_event *event);

bool manager_has(const struct manager *manager, const char *name);

unsigned count_fds(void);

/* No fd can be opened but so many. */
struct rlimit leave_fds(unsigned n);
