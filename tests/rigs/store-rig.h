/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A service manager inside of the test. Messages wait until the test lets it read them. */

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
	bool tardy; /* closes descriptors that it does not keep after the barrier only */
	int late;   /* such a descriptor; -1: none */
};

void manager_bind(struct manager *manager);

void manager_start(struct manager *manager, size_t max);

void manager_stop(struct manager *manager);

/* Reads one message. false: there is none, or the manager has ended. */
bool manager_read(struct manager *manager);

struct manager_thread {
	struct manager *manager;
	int stop;
};

/* Calls store_new() while a thread lets the manager answer. */
struct store *manager_store_new(struct manager *manager, sd_event *event,
				struct diagnostics *diagnostics);

/* Runs the manager and the event loop until both are idle. */
void manager_settle(struct manager *manager, sd_event *event);

bool manager_has(const struct manager *manager, const char *name);

/* Limits how many more descriptors can be opened to n; returns the old limit. */
struct rlimit leave_fds(unsigned n);
