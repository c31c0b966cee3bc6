/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The dictionaries of the bus contract, appended to a message. */

#include <stddef.h>
#include <systemd/sd-bus.h>

#include "core/decide/advice.h"
#include "core/change/arbiter.h"

/* aa{sv}: a dictionary for each partition of the lease; none for NULL. */
int bus_append_partitions(sd_bus_message *m, const struct arbiter *arbiter,
			  const struct lease *lease);

/* aa{sv}: a dictionary for each GPU that refused. */
int bus_append_refusals(sd_bus_message *m, const struct refusal *refusals, size_t n,
			const struct advice *advice);

/* aa{sv}: a dictionary for each process without a lease that uses the GPU. */
int bus_append_unmanaged(sd_bus_message *m, const struct gpu *gpu);

/* aau and, with arrays, aaau: CUs by XCC and shader engine (and shader array). */
int bus_append_engine_cus(sd_bus_message *m, const struct geometry *geometry);
int bus_append_array_cus(sd_bus_message *m, const struct geometry *geometry);
