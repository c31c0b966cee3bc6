/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Wants and options, read from a message into a struct request. Whatever is unknown, twice
 * there, of another type or out of range is refused as an invalid request that names the
 * key, the want's number (from 1) and what would work.
 */

#include <systemd/sd-bus.h>

#include "core/policy/request.h"
#include "core/policy/result.h"

/* Reads aa{sv} a{sv}. *ret_process_fd is the message's, or -1. Returns -EINVAL with the
 * result set. */
int bus_read_request(sd_bus_message *m, struct request *ret, int *ret_process_fd,
		     struct result *result);

/* The same where wants change and no option is known yet. */
int bus_read_resize(sd_bus_message *m, struct request *ret, struct result *result);
