/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads wants and options from a message into a struct request. A key that is unknown, duplicate,
 * of another type or out of range is refused as InvalidRequest, with the key, the number of the
 * want (from 1) and the values that would work.
 */

#include <systemd/sd-bus.h>

#include "core/policy/request.h"
#include "core/policy/result.h"

/* Reads aa{sv} a{sv}. *ret_process_fd belongs to the message; -1: none. -EINVAL, with the result
 * set. */
int bus_read_request(sd_bus_message *m, struct request *ret, int *ret_process_fd,
		     struct result *result);

/* Reads the arguments of Resize, which has no options yet. */
int bus_read_resize(sd_bus_message *m, struct request *ret, struct result *result);
