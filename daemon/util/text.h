/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text for the bus and the journal. A bus disconnects a client that sends a string which is not
 * UTF-8, and journalctl does not show such a field. So text that gpuarbd sends (commands, units,
 * truncated sentences) is cleaned, and text that it accepts must be printable.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/base.h"

/* Length in bytes of the printable character at the start of text; 0: there is none. */
size_t text_character_length(const char *text);

bool text_printable(const char *text); /* UTF-8 without control characters */

/* Copies text to buf with '?' for each byte that is not part of a printable character, and
 * truncates it between characters. text may be buf. Returns buf. */
const char *text_clean(char *buf, size_t size, const char *text);

/* The index of a word in words (NULL-terminated); -EINVAL: it is not there. */
int text_index(const char *const *words, const char *word);

/* The word of words (NULL-terminated) nearest to word, where at most about a third of the letters
 * differ; else NULL. */
const char *text_nearest(const char *word, const char *const *words);

/* Writes the reason of a failure to why, truncated to size, and returns error. */
int refuse(char *why, size_t size, int error, const char *format, ...) PRINTF_LIKE(4, 5);
