/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The service manager's socket and what is said there: sd_notify(3). Only notify_probe()
 * waits. */

/* A socket connected to what NOTIFY_SOCKET says: a path, or "@" and an abstract name. */
int notify_open(const char *address);

/* Connects it again, which is an error where the manager is gone. */
int notify_connect(int socket, const char *address);

/* Sends a text, with a copy of fd unless that is -1. -EAGAIN: there is no room now; poll(2)
 * says when there is. */
int notify_send(int socket, const char *text, int fd);

/* Has one end of a pair kept for a moment under the name of "probe". -ENOSPC: it was not
 * kept; -ETIMEDOUT: no answer. */
#define NOTIFY_PROBE "probe"
int notify_probe(int socket, int patience_msec);
