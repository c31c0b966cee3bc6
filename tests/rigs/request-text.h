/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Requests as text, for tests of core. */

#include <stdarg.h>

#include "core/policy/request.h"

/* The wants, separated by '|', and after ';' the options, with the names of the bus contract: "gpu=0 cus=15 | gpu=1
 * cus=15; class=realtime wait-usec=forever". vram may end with G. What is not named is as request_for() leaves it. */
struct request request_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
struct request request_of_list(const char *format, va_list args);
