/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The answer to GetManagedObjects. */

#include "bus/bus-private.h"

/* The call that is being answered. */
struct bus_managed {
	sd_bus_message *call, *reply; /* NULL: none is */
	struct bus_peer *peer;
	struct arbiter *snapshot; /* when the call was served */
	size_t next;              /* object: GPUs, then leases */
	sd_event_source *turn;    /* the next part, or the next signals that were held */
};

int bus_managed_start(struct bus *bus);

bool bus_is_managed_call(sd_bus_message *m);

/* Whether an answer is being built, or signals wait that were held for it. */
bool bus_managed_is_busy(const struct bus *bus);

/* For the filter: answers GetManagedObjects, now or in parts. 0: the call is another one. */
int bus_managed_arrived(struct bus *bus, sd_bus_message *m);

void bus_managed_stop(struct bus *bus); /* answers with Shutdown; drops signals that were held */
