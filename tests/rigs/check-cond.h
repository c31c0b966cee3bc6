/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one assertion of tests and benchmarks; on in every build. */

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                                        \
	do {                                                                               \
		if (!(cond)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                           \
		}                                                                          \
	} while (0)
