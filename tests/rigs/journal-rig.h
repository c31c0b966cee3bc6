/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A journal that is a test's own: its socket at the real place, in a mount namespace of the
 * test's process and of what that starts. Needs root. */

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
#include "util/journal.h"
#include "util/log-events.h"

struct entry {
	char text[sizeof(((struct journal_entry *)NULL)->text) + 1];
};

/* The socket; -1: it cannot be had, as without root. */
int journal_open(void);

/* Says, as a service manager does, that the journal reads what is stderr now. */
void journal_reads_stderr(void);

/* Whether a field has this value, or one of its values: "GPUARB_LEASE=7". */
bool entry_has(const struct entry *entry, const char *field);

/* Whether it has such a field at all: "GPUARB_TENANT=". */
bool entry_names(const struct entry *entry, const char *name);

/* Whether the message says so. */
bool entry_says(const struct entry *entry, const char *text);

/* false: none has come. */
bool entry_take(int journal, struct entry *ret);

/* The next entry, which has to be of this event, and of its level. */
struct entry entry_next(int journal, enum log_event event);
