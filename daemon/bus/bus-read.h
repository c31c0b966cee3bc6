/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What callers sent. */

#include "bus/bus-private.h"

/* Calls read() for each entry of a{sv} in an answer of the bus, which reads or skips the variant. */
int bus_read_entries(sd_bus_message *m,
		     int (*read)(sd_bus_message *m, const char *key, void *userdata),
		     void *userdata);

/* Reads the arguments of Reserve and Plan: aa{sv} a{sv}. *ret_process_fd belongs to the message; -1:
 * none. ret_process_fd is NULL for Resize, which has no options yet. -EINVAL, with the result set. */
int bus_read_request(sd_bus_message *m, struct request *ret, int *ret_process_fd,
		     struct result *result);
