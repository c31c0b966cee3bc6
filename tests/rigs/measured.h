/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* The tables in tests/data/measured; its README names their sources. */

/* Writes the path of the folder to buf and returns buf. */
const char *measured_dir(char *buf, size_t size);

/* Opens one of the tables. Ends the test where it cannot be read. */
FILE *measured_open(const char *file);
