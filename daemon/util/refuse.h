/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

#include "util/base.h"

/* Puts the sentence that says why not into why, cut to its size, and returns error. */
int refuse(char *why, size_t size, int error, const char *format, ...) PRINTF_LIKE(4, 5);
