/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Entries in the journal's native protocol (https://systemd.io/JOURNAL_NATIVE_PROTOCOL/): a
 * datagram of lines, a field each. sd_journal_sendv(3) speaks it too, but waits for as long as
 * journald does not read: net.unix.max_dgram_qlen entries fill its socket.
 */

#include <stddef.h>

#include "util/base.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* All zero at first. Room for a line of the log, and fields of 64 GPUs. */
struct journal_entry {
	char text[8192];
	size_t size;
};

/* name: A-Z, 0-9, _; once more for one more value. What is no printable text in the value is
 * '?', and what there is no room for is left out. */
void journal_add(struct journal_entry *entry, const char *name, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* Never waits. -EAGAIN: the socket is full; -ENOENT and others: nobody listens there. */
int journal_send(const char *path, const struct journal_entry *entry);
