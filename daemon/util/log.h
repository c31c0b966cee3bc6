/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Log lines on standard error, with a level in front if the journal reads it ($JOURNAL_STREAM), and
 * journal entries with fields for changes of leases. Every line is cleaned here, because it may
 * quote names that clients chose. Nothing here waits for the journal.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <syslog.h>

#include "util/base.h"
#include "util/diagnostics.h"
#include "util/log-events.h"

void log_line(int level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...) log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)

/* Logs each diagnostic on a line, as an error or a warning. */
void log_diagnostics(const struct diagnostics *diagnostics);

#define LOG_GPUS_MAX 64U

struct log_fields {
	uint64_t lease;     /* GPUARB_LEASE=; 0: none */
	const char *tenant; /* GPUARB_TENANT=; NULL: none */
	uid_t uid;          /* GPUARB_UID=: owner of the lease, or the caller; (uid_t) -1: none */
	const char *gpus[LOG_GPUS_MAX]; /* GPUARB_GPU=, one field for each */
	size_t n_gpus;
};

/* Sends a journal entry with fields. Writes a plain line if the journal does not read standard
 * error or does not take the entry. */
void log_event(enum log_event event, const struct log_fields *fields, const char *format, ...)
	PRINTF_LIKE(3, 4);

/* ---- the journal's native protocol: log_event() uses it ------------------------------ */

/*
 * https://systemd.io/JOURNAL_NATIVE_PROTOCOL/: one datagram with a line per field.
 * sd_journal_sendv(3) is not used because it blocks while journald does not read:
 * net.unix.max_dgram_qlen entries fill the socket.
 */
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
