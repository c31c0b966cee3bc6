/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Messages that are made to be read, without a bus. */

#include <string.h>
#include <stdbool.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "check-cond.h"

sd_bus_message *message(void);

sd_bus_message *make(const char *types, ...);

sd_bus_message *sealed(sd_bus_message *m);

static const char *const all_types[] = { "y", "b", "n", "q", "i",  "u",  "x", "t",     "d",
					 "s", "o", "g", "h", "as", "au", "v", "a{sv}", "(u)" };

void append_entry(sd_bus_message *m, const char *key, const char *type, uint64_t number,
		  const char *text);
