/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A dbus-daemon of a test's own, on which everybody may do everything. */

#include <stdbool.h>
#include <sys/types.h>

struct private_bus {
	pid_t pid;
	char dir[64];
	char address[128]; /* the same after private_bus_kill() and _again() */
};

/* Returns when it takes connections; false if there is no dbus-daemon here. It dies with
 * the test. */
bool private_bus_start(struct private_bus *ret);
void private_bus_kill(struct private_bus *bus);
bool private_bus_again(struct private_bus *bus);
void private_bus_stop(struct private_bus *bus);
