/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Text output. Names of leases, commands and hints are text of other users, so everything that is
 * printed here has its control characters escaped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "libgpuarb/gpuarb.h"
#include "util/base.h"

/* Ends the program: for what cannot go on without memory. */
__attribute__((noreturn)) void no_memory(void);

/* The pointer, unless it is NULL for want of memory. */
static inline void *have(void *pointer)
{
	if (!pointer)
		no_memory();
	return pointer;
}

/* Replaces bytes that are not printable in this locale by \xNN. Cuts after `columns` columns, with
 * ".." at the end. Owned; NULL: out of memory. */
char *print_escape(const char *text, size_t columns);

/* Prints one escaped line. */
void print_line(FILE *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* "cus: 31 asked, 30 granted, 30 effective (0000:03:00.0 SE 0-1 x15)". */
void print_grant(FILE *out, const char *before, const struct gpuarb_partition *partition);

/* Says why a program does not start, if its lease begins paused. */
void print_pause(FILE *out, const char *before, const struct gpuarb_partition *partition);

/* The plural s of "5 queues", or nothing. */
static inline const char *print_s(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* a to z, A to Z, then "#": names lease or process i of a drawing. */
char print_letter(size_t i);

#define PRINT_BYTES 24U
void print_bytes(uint64_t bytes, char buf[static PRINT_BYTES]); /* "2.0G" */

/* "0-1,3" for sorted numbers. */
void print_ranges(const uint32_t *numbers, size_t n, char *buf, size_t size);

/* The name of the user. false: there is none, so it is the number, or "?" for UINT32_MAX. */
#define PRINT_USER 40U
bool print_user(uint32_t uid, char buf[static PRINT_USER]);

/* Columns of the terminal; 0: out is none. */
unsigned print_width(FILE *out);

/* Whether out is a terminal that understands escape sequences: TERM is set, and not "dumb". */
bool print_is_screen(FILE *out);

/* Whether out is a terminal with colours, and NO_COLOR is not set. */
bool print_may_colour(FILE *out);

#define COLOUR_ALARM "\033[1;31m"
#define COLOUR_WAIT "\033[33m"
#define COLOUR_GOOD "\033[32m"
#define COLOUR_NONE "\033[0m"

/* Pipes standard output into $PAGER, or less. Returns the pid of the pager; 0: none was started,
 * and standard output is unchanged. */
pid_t pager_start(void);

/* Closes standard output and waits for the pager. */
void pager_finish(pid_t pager);
