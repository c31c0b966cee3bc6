/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What can be seen of a command without starting it. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the loader will load what LD_PRELOAD names into it: as far as its file says, or that of
 * the interpreter that its first line names. false: why has a sentence about it. What cannot be
 * found or read is left for exec to judge, and what it starts itself cannot be seen.
 */
bool program_preloads(const char *command, char *why, size_t size);
