/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The server of helpers/enforce-protocol.h: one client at a time. It never blocks. When a client hangs
 * up, what was frozen for it is thawed. */

#include <stdint.h>
#include <systemd/sd-event.h>

#include "util/base.h"

struct server;

/* listening: a SOCK_SEQPACKET socket that does not block; the caller keeps it. sysfs: see target_check();
 * it has to outlive the server. records: a directory of its own for the names of frozen units, which the
 * caller keeps open; -1: none, and a unit stays frozen if this program is killed. The server asks systemd on the system bus to freeze and thaw units; the
 * request fails with -ETIMEDOUT after timeout_usec without an answer. The event loop ends with 0 after
 * idle_usec without a request, without one that is under way, and without a frozen unit. */
int server_new(sd_event *event, int listening, const char *sysfs, int records,
	       uint64_t timeout_usec, uint64_t idle_usec, struct server **ret);

/* Hangs up; the event loop ends with 0 when the units are thawed, or after timeout_usec. */
void server_leave(struct server *server);

/* Takes NULL. */
struct server *server_free(struct server *server);
DEFINE_CLEANUP(struct server *, server_free)
