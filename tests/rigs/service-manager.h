/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the program service-manager share: service-manager.c has the program. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "manager-notify.h"
#include "manager-store.h"
#include "manager-trace.h"

struct manager {
	char *const *argv;
	bool restarts, fdstore_variable;

	int notify, signals;
	char address[32];    /* of notify, as in NOTIFY_SOCKET */
	struct rlimit files; /* what PROGRAM gets; we need more */
	struct manager_store store;
	struct manager_trace trace;

	pid_t child; /* 0: does not run */
	bool stopping, restarting, hold;
	unsigned vain; /* starts since it was ready last */
	bool arm;      /* to be done */
	unsigned arm_at;

	char line[256]; /* of stdin, as far as it is there */
	size_t line_size;
	bool deaf;       /* stdin has ended */
	char out[65536]; /* for stdout */
	size_t out_size;
	size_t told_stored;
};

/* A line on stdout. */
void tell(struct manager *manager, const char *format, ...) __attribute__((format(printf, 2, 3)));

void manager_start(struct manager *manager);
int manager_arm(struct manager *manager); /* as soon as there is somebody to trace */
void manager_stop(struct manager *manager);
void manager_take_child(struct manager *manager); /* what waitpid() says, if anything */
_Noreturn void manager_finish(struct manager *manager, int status);

/* Reads stdin: manager-command.c. */
void manager_take_commands(struct manager *manager);
