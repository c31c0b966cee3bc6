/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Asks gpuarb-probe for the event file descriptors of the driver, without blocking. */

#include <stddef.h>

#include "helpers/probe-protocol.h"

#define DRIVER_PROBE_SOCKET "/run/gpuarb-probe.socket"

/* Connects. Returns the socket, which is readable when driver_probe_receive() has something to do. With a
 * sentence in why: -EOPNOTSUPP, no service listens; or what else the kernel says. */
int driver_probe_connect(const char *socket, char *why, size_t size);

/*
 * Receives a message; ret_fds are the caller's to close, -1: none. -EAGAIN: not yet. Other errors end the
 * request, with a sentence in why: -EOPNOTSUPP: gpuarb-probe ended without an answer; -EBADMSG: invalid
 * data.
 */
int driver_probe_receive(int socket, struct probe_message *ret, int ret_fds[static PROBE_FDS],
			 char *why, size_t size);
