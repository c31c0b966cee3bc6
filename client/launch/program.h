/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Inspects a command without starting it. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the dynamic loader will load LD_PRELOAD into the command, judged by its file or by that
 * of the interpreter in its first line. false: the reason is in why. true also for a file that
 * cannot be found or read: exec will report that. Programs that the command starts are not
 * inspected. ret_musl: the program is for musl, gpuarbctl is not.
 */
bool program_preloads(const char *command, bool *ret_musl, char *why, size_t size);

/*
 * Whether execvp() can start the command: 0, or its error, such as -ENOENT and -EACCES, with the
 * reason in why.
 */
int program_check(const char *command, char *why, size_t size);
