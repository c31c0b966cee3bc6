/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The interface of the arbiter, and its methods that only read. */

#include "bus/bus-private.h"

int bus_export_arbiter(struct bus *bus);

int bus_method_read_limits(sd_bus_message *m, void *userdata, sd_bus_error *error);
int bus_method_read_usage(sd_bus_message *m, void *userdata, sd_bus_error *error);
int bus_method_read_counters(sd_bus_message *m, void *userdata, sd_bus_error *error);
int bus_method_read_slots(sd_bus_message *m, void *userdata, sd_bus_error *error);
