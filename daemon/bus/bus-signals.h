/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Signals about leases and GPUs. */

#include "bus/bus-objects.h"

/* bus_emit() now; or, while signals are held, later, together with other changes of the object. */
void bus_signal(struct bus *bus, const struct bus_kind *kind, uint64_t number,
		enum bus_change change);

/* Holds signals from now on, or no further ones. */
void bus_signals_hold(struct bus *bus, bool hold);
bool bus_signals_are_held(const struct bus *bus);

/* Sends some of the signals that were held. Returns whether there are more. */
bool bus_signals_release(struct bus *bus);

void bus_signals_drop(struct bus *bus);
