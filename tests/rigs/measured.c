/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measured.h"

#include <stdlib.h>

#include "check-cond.h"

const char *measured_dir(char *buf, size_t size)
{
	const char *root = getenv("GPUARB_SOURCE_ROOT");

	CHECK(root);
	snprintf(buf, size, "%s/tests/data/measured", root);
	return buf;
}

FILE *measured_open(const char *file)
{
	char dir[4096], path[8192];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", measured_dir(dir, sizeof(dir)), file);
	f = fopen(path, "re");
	CHECK(f);
	return f;
}
