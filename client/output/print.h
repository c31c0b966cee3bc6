/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text for people. Names of leases, commands and hints are other users' text: everything
 * printed here has its control characters escaped, and table cells are bounded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "libgpuarb/gpuarb.h"
#include "util/base.h"

/* Copies text as what a terminal may show: what is not printable in this locale becomes
 * \xNN. At most `columns` columns, the cut marked with "..". An owned string. */
char *print_escape(const char *text, size_t columns);

/* One line, escaped, with its newline. */
void print_line(FILE *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* "cus: 31 asked, 30 granted, 30 effective (0000:03:00.0 SE 0-1 x15)". */
void print_grant(FILE *out, const char *before, const struct gpuarb_partition *partition);

/* "1 queue", "5 queues": the s or nothing. */
static inline const char *print_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#define PRINT_BYTES 24U
void print_bytes(uint64_t bytes, char buf[static PRINT_BYTES]); /* "2.0G" */

/* "0-1,3" of numbers in order. */
void print_ranges(const uint32_t *numbers, size_t n, char *buf, size_t size);

/* "vr", or the number for a user without a name, "?" for UINT32_MAX. */
#define PRINT_USER 40U
void print_user(uint32_t uid, char buf[static PRINT_USER]);

/* Colour there: a terminal that can, and no NO_COLOR. */
bool print_may_colour(FILE *out);

#define COLOUR_ALARM "\033[1;31m"
#define COLOUR_NONE "\033[0m"

/* Puts $PAGER, else less, behind standard output. Returns its pid, 0 where there is none to
 * be had: output then goes where it went. */
pid_t pager_start(void);

/* Ends the output and waits until it was read, or as much of it as anybody wanted. */
void pager_finish(pid_t pager);
