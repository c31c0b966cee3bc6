/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * gpuarbd.conf and tenants.d/ *.conf into struct settings. See gpuarbd.conf(5), gpuarb-tenants(5).
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/diagnostics.h"
#include "core/policy/settings.h"
#include "util/trust.h"

struct config_files {
	const char *config;  /* one file instead of the search for gpuarbd.conf; NULL: search */
	const char *tenants; /* one directory instead of the search for tenants.d; NULL: search */
	struct trust trust;  /* whose both may be */
};

/* Reads everything and says everything that is wrong, "FILE:LINE: …" each, with the
 * nearest known section or key. Files and directories that are missing are fine unless named
 * in `files`. Refused: a directory in the place of a file, a file over 1 MiB, lines over 190
 * bytes, NUL bytes, and what util/trust.h refuses, directories without any file among it.
 * Returns 1 where there was no file at all, else 0; -EINVAL where anything was wrong, and then
 * leaves *ret as it was. */
int config_load(const struct config_files *files, struct settings **ret,
		struct diagnostics *diagnostics);

#define CONFIG_NONE                                                                             \
	"there is no gpuarbd.conf and no tenants.d/*.conf in /usr/lib/gpuarb, /run/gpuarb and " \
	"/etc/gpuarb: the defaults hold, and everybody may ask for best effort"

/* The same for single files, of whatever name, as `gpuarbctl config check FILE…` wants. */
int config_load_file(const char *path, struct settings **ret, struct diagnostics *diagnostics);
int config_check_file(const char *path, struct diagnostics *diagnostics);

/* Key names for tests that compare them with the sample and the manual: "section key",
 * NULL past the last. */
const char *config_key(size_t i);
