/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A private journal socket at the real path, in a mount namespace of the test and its children.
 * Needs root. */

#include <string.h>
#include <stdbool.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "check-cond.h"
#include "util/log.h"
#include "util/log-events.h"

struct entry {
	char text[sizeof(((struct journal_entry *)NULL)->text) + 1];
};

/* Returns the socket; -1 where it cannot be made, as without root. */
int journal_open(void);

/* Sets JOURNAL_STREAM to the current stderr, as a service manager does. */
void journal_reads_stderr(void);

/* Whether a field has this value, or one of its values: "GPUARB_LEASE=7". */
bool entry_has(const struct entry *entry, const char *field);

/* Whether the entry has the field: "GPUARB_TENANT=". */
bool entry_names(const struct entry *entry, const char *name);

/* Whether MESSAGE contains the text. */
bool entry_says(const struct entry *entry, const char *text);

/* Reads one entry; false: none has arrived. */
bool entry_take(int journal, struct entry *ret);

/* Reads the next entry, and checks that it has the event's id and level. */
struct entry entry_next(int journal, enum log_event event);
