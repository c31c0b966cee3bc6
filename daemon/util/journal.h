/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Entries in the journal's native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/): one
 * datagram with a line per field. sd_journal_sendv(3) is not used because it blocks while journald
 * does not read: net.unix.max_dgram_qlen entries fill the socket.
 */

#include <stddef.h>

#include "util/base.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* Initialise with zeros. Large enough for a log line and the fields of 64 GPUs. */
struct journal_entry {
	char text[8192];
	size_t size;
};

/* Adds a field. name: A-Z, 0-9 and _; a field with several values is added several times. Bytes
 * that are not printable become '?'. A field for which there is no room is left out. */
void journal_add(struct journal_entry *entry, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Never waits. -EAGAIN: the socket is full; -ENOENT and others: no journal reads it. */
int journal_send(const char *path, const struct journal_entry *entry);
