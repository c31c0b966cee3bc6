/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sentences to the journal by standard error, with its level prefix when the journal
 * reads it ($JOURNAL_STREAM), plain otherwise. */

#include <syslog.h>

#include "core/base.h"
#include "core/notes.h"

void log_line(int level, const char *format, ...) PRINTF_LIKE(2, 3);

#define log_error(...)   log_line(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_notice(...)  log_line(LOG_NOTICE, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)

/* Each note on a line: errors as errors, the others as warnings. */
void log_notes(const struct notes *notes);
