/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Runs hiprtc in a process of its own, because hiprtc of ROCm 5.2 crashes on an unknown target: this program again, with the
 * word "compile".
 */

#include <stddef.h>

/* -EINTR: a signal ended the compiler; -ENOMEM; -EIO. The message is in buf. The caller frees *ret_code. */
int compiler_run(const char *target, char **ret_code, size_t *ret_size, char *buf, size_t size);

/* The other process: writes the code to standard output, or the message. Its exit code is 0 for code. */
_Noreturn void compiler_serve(const char *target);
