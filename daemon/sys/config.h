/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd.conf and tenants.d/ *.conf into struct settings. See gpuarbd.conf(5), gpuarb-tenants(5).
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/notes.h"
#include "core/settings.h"

struct config_files {
	const char *config;  /* one file instead of the search for gpuarbd.conf; NULL: search */
	const char *tenants; /* one directory instead of the search for tenants.d; NULL: search */
};

/* Reads everything and says everything that is wrong, "FILE:LINE: …" each, with the
 * nearest known section or key. Files that are missing are fine unless named in `files`.
 * Refused: a directory, a file over 1 MiB, lines over 190 bytes, NUL bytes, and a file
 * that others than root (or the user this runs as) own or can write. Returns -EINVAL
 * where anything was wrong and then leaves *ret as it was. */
int config_load(const struct config_files *files, struct settings **ret, struct notes *notes);

/* The same for single files, of whatever name, as `gpuarbctl config check FILE…` wants. */
int config_check_file(const char *path, struct notes *notes);

/* Key names for tests that compare them with the sample and the manual: "section key",
 * NULL past the last. */
const char *config_key(size_t i);
