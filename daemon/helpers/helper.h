/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

/* Connects to the socket of a helper without blocking. type: SOCK_STREAM or SOCK_SEQPACKET; unit: the
 * socket unit to enable, for the message. Returns a close-on-exec, non-blocking fd, or with a sentence in
 * why: -EOPNOTSUPP, no helper listens; -ENAMETOOLONG; what socket(2) and connect(2) say. */
int helper_connect(const char *path, int type, const char *unit, char *why, size_t size);
