/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/refuse.h"

#include <stdarg.h>
#include <stdio.h>

int refuse(char *why, size_t size, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return error;
}
