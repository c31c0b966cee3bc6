/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Which call is served next. */

#include "bus/bus-private.h"

int bus_calls_start(struct bus *bus);
void bus_calls_stop(struct bus *bus); /* answers all with Shutdown; none arrives any more */
void bus_calls_free(struct bus *bus);

/* Whether the bus reads nothing. */
bool bus_calls_are_stalled(const struct bus *bus);

/* For the filter: 0: the call is served now; 1: it waits, or was answered. */
int bus_calls_arrived(struct bus *bus, sd_bus_message *m);

/* Serves the next call that waits, if there is one. */
void bus_calls_serve(struct bus *bus);
