/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A directory of its own for a test, gone afterwards. Files in it are 0644, whatever the
 * umask. */

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

struct scratch {
	char path[64];
};

static inline struct scratch scratch_new(void)
{
	struct scratch scratch = { .path = "/tmp/gpuarb-test-XXXXXX" };

	CHECK(mkdtemp(scratch.path));
	return scratch;
}

/* For thousands of files; where there is no /dev/shm, as above. */
static inline struct scratch scratch_in_memory(void)
{
	struct scratch scratch = { .path = "/dev/shm/gpuarb-test-XXXXXX" };

	return mkdtemp(scratch.path) ? scratch : scratch_new();
}

static inline int scratch_remove(const char *path, const struct stat *st, int kind,
				 struct FTW *walk)
{
	(void)st, (void)kind, (void)walk;
	return remove(path);
}

static inline void scratch_done(const struct scratch *scratch)
{
	CHECK(nftw(scratch->path, scratch_remove, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

/* The path of a name in it: a buffer of 64 that are used in turn. */
static inline const char *scratch_at(const struct scratch *scratch, const char *name)
{
	static char paths[64][256];
	static unsigned turn;
	char *path = paths[turn++ % 64];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch->path, name);
	return path;
}

static inline const char *scratch_put(const struct scratch *scratch, const char *name,
				      const void *bytes, size_t size)
{
	const char *path = scratch_at(scratch, name);
	FILE *file = fopen(path, "we");

	CHECK(file);
	CHECK(fwrite(bytes, 1, size, file) == size);
	CHECK(fclose(file) == 0);
	CHECK(chmod(path, 0644) == 0);
	return path;
}

static inline const char *scratch_write(const struct scratch *scratch, const char *name,
					const char *text)
{
	return scratch_put(scratch, name, text, strlen(text));
}

static inline const char *scratch_mkdir(const struct scratch *scratch, const char *name)
{
	const char *path = scratch_at(scratch, name);

	CHECK(mkdir(path, 0755) == 0 && chmod(path, 0755) == 0);
	return path;
}
