/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sentences to whoever reads standard error: plain ones, or with their level where that is the
 * journal ($JOURNAL_STREAM). What becomes of leases the journal gets as entries with fields. Names
 * that clients chose are cleaned here, and a journal that does not take what it is sent holds
 * nobody up.
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

/* Each note on a line: errors as errors, the others as warnings. */
void log_diagnostics(const struct diagnostics *diagnostics);

#define LOG_GPUS_MAX 64U

struct log_fields {
	uint64_t lease;     /* GPUARB_LEASE=; 0: none */
	const char *tenant; /* GPUARB_TENANT=; NULL: none */
	uid_t uid;          /* GPUARB_UID=: whose it is, or who asked; (uid_t) -1: nobody's */
	const char *gpus[LOG_GPUS_MAX]; /* GPUARB_GPU=, one for each */
	size_t n_gpus;
};

void log_event(enum log_event event, const struct log_fields *fields, const char *format, ...)
	PRINTF_LIKE(3, 4);
