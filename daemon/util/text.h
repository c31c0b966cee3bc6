/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text that crosses the bus or goes to the journal. The bus hangs up on whoever sends a string
 * that is not UTF-8, and journalctl shows none, so what is told (commands, units and sentences
 * that were cut) is cleaned, and what is taken in must be fit to print on a terminal.
 */

#include <stdbool.h>
#include <stddef.h>

bool text_printable(const char *text); /* UTF-8 without control characters */

/* Copies with '?' for each byte that is no part of a printable character; cuts between
 * characters. Returns buf. */
const char *text_clean(char *buf, size_t size, const char *text);
