/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Queues beyond the grant that the kernel refuses: seccomp listeners, and BPF programs for units. */

#include "daemon.h"

/* ---- caps.c -------------------------------------------------------------------------- */

int caps_start(struct daemon *daemon);

/* Watches a copy of the listener. The lease is not capped before a bound process has made a call
 * under the filter. */
int caps_add(struct daemon *daemon, const struct lease *lease, int listener);

/* The listener that an earlier daemon kept as STORED_CAP, which it takes also on failure. -EBADF: it is none. */
int caps_adopt(struct daemon *daemon, uint64_t lease, pid_t pid, int fd);

/* The lease or its bound processes have changed: finds out whether it is still capped, and whether
 * its unit is to be. */
void caps_review(struct daemon *daemon, uint64_t lease);

/* A bound process has ended: its cap is not that of a later process with its pid. */
void caps_process_ended(struct daemon *daemon, uint64_t lease, pid_t pid);

/* The listeners of a lease, and of all: an fd and an entry in the store each. */
size_t caps_of(const struct daemon *daemon, uint64_t lease);
size_t caps_count(const struct daemon *daemon);

/* Closes the listeners of a lease that is removed. */
void caps_drop(struct daemon *daemon, uint64_t lease);

/* Closes the listeners of all leases; the service manager keeps its copies. A daemon without listeners
 * is valid. */
void caps_free(struct daemon *daemon);

/* ---- unit-caps.c --------------------------------------------------------------------- */

/* The property QueueBudgets; otherwise it is the reason why budgets are not enforced. */
#define UNIT_CAPS_UNUSED "unused"
#define UNIT_CAPS_ENFORCED "enforced"

int unit_caps_start(struct daemon *daemon);
void unit_caps_stop(struct daemon *daemon);

/* The member queue_budgets of struct bus_host. */
const char *unit_caps_state(void *daemon);

/* Asks for the removal of all budgets, and does not wait for it. */
void unit_caps_remove(struct daemon *daemon);

/* Finds out whether the kernel is to cap the unit of the lease. filtered: the lease has listeners. */
void unit_caps_review(struct daemon *daemon, struct lease *lease, bool filtered);
/* Are the budgets sent again at one of the next scans? */
bool unit_caps_repeats(const struct daemon *daemon);

void unit_caps_reload(struct daemon *daemon); /* tenants may have changed */
void unit_caps_drop(struct daemon *daemon, const struct lease *lease); /* it is removed */

/* Sends the budgets to gpuarb-budget if they have changed, or are to be sent again. */
void unit_caps_refresh(struct daemon *daemon);
