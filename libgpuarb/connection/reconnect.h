/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Waits for a daemon or a bus that went away. */

#include "libgpuarb/connection/connection.h"

/* One call, from its first failure because the daemon or the bus was away. Starts zeroed. */
struct outage {
	int error;                   /* of the first failure; 0: none yet */
	char *sentence, *error_name; /* with it */
	uint64_t since, deadline;
	unsigned losses; /* how often the connection was lost during the call */
};
void outage_clear(struct outage *outage);

/*
 * Decides after a call returned r. 1: send it again, the daemon and the bus may be back. Else the
 * result of the call, noted in gpuarb: r itself, the first failure if the time is over, or -EINTR.
 */
int outage_wait(struct gpuarb *gpuarb, struct outage *outage, int r);

/* Tries connection_new() with pauses until there is a bus. -ECONNREFUSED: none by the deadline. */
int reconnect_bus(struct gpuarb *gpuarb, uint64_t deadline, struct connection **ret);

/* Subscribes the connection to the daemon's arrival and departure. *ret_present: it is there
 * now. */
int daemon_subscribe(struct gpuarb *gpuarb, struct connection *connection, bool *ret_present);

/* What a message says about the daemon: 1: it arrived, 0: it left, -1: nothing. */
int daemon_presence(DBusMessage *m);
