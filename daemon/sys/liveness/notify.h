/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Messages to the service manager: sd_notify(3). Only notify_probe() waits. */

/* Returns a socket that is connected to the address in NOTIFY_SOCKET: a path, or "@" and an
 * abstract name. */
int notify_open(const char *address);

/* Connects the socket again. An error means that the manager has ended. */
int notify_connect(int socket, const char *address);

/* Sends a text, with a copy of fd unless that is -1. -EAGAIN: there is no room; wait for
 * POLLOUT. */
int notify_send(int socket, const char *text, int fd);

/* Asks the manager to keep one end of a pair for a moment under the name "probe". -ENOSPC: it was
 * not kept; -ETIMEDOUT: no answer. */
#define NOTIFY_PROBE "probe"
int notify_probe(int socket, int patience_msec);
