/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What gpuarb-probe answers to a connection: the event file descriptors of the driver. */

#include <stddef.h>

#include "helpers/probe-protocol.h"

#define DRIVER_PROBE_SOCKET "/run/gpuarb-probe.socket"

/*
 * Receives a message; ret_fds are the caller's to close, -1: none. -EAGAIN: not yet. Other errors end the
 * request, with a sentence in why: -EOPNOTSUPP: gpuarb-probe ended without an answer; -EBADMSG: invalid
 * data.
 */
int driver_probe_receive(int socket, struct probe_message *ret, int ret_fds[static PROBE_FDS],
			 char *why, size_t size);
