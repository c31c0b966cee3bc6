/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads gpuarbd.conf and tenants.d/ *.conf into struct settings. See gpuarbd.conf(5) and
 * gpuarb-tenants(5).
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/policy/settings.h"
#include "util/diagnostics.h"
#include "util/trust.h"

struct names;

struct config_files {
	const char *config;  /* one file instead of the search for gpuarbd.conf; NULL: search */
	const char *tenants; /* one directory instead of the search for tenants.d; NULL: search */
	struct trust trust;  /* who may own the files and directories */
	struct names *names; /* NULL: the name service is asked */
	bool single;         /* read config alone, whoever owns it */
};

/* Reads all files and reports all errors, each as "FILE:LINE: …", with the nearest known section or
 * key. Missing files and directories are no error unless `files` names them. Refuses a directory in
 * the place of a file, files over 1 MiB, lines over 190 bytes, binary files, and all that
 * util/trust.h refuses, including directories without any file.
 * Returns 1 if there was no file at all, else 0; -EINVAL after any error, and then *ret stays as it
 * was. */
int config_load(const struct config_files *files, struct settings **ret,
		struct diagnostics *diagnostics);

#define CONFIG_PLACES "/usr/lib/gpuarb, /run/gpuarb and /etc/gpuarb"

/* What follows where a program read these, and is to tell of the gpuarbd at a bus address. */
#define CONFIG_ELSEWHERE "the gpuarbd at %s may read other files: name them, or their directory"

/* The sentence for the result 1 of config_load(). */
#define CONFIG_NONE                                                               \
	"no gpuarbd.conf and no tenants.d/*.conf in " CONFIG_PLACES ": defaults " \
	"apply, and every user may reserve best-effort leases only"

/* The same for one file of any name and owner, for `gpuarbctl config check FILE`. */
int config_load_file(const char *path, struct settings **ret, struct diagnostics *diagnostics);

/* ---- which files to read: config_load() uses these ----------------------------------- */

struct config_list {
	char **paths; /* in the order in which they are read */
	size_t n;
};

/* Lists DIRECTORY/NAME, or DIRECTORY/?*.conf where name is NULL, of all directories (a NULL-terminated list), sorted by
 * file name; a file replaces one of the same name in an earlier directory. Every directory that exists must pass
 * trust_open(), and must exist if required, without a name. -EINVAL with a diagnostic, -ENOMEM. */
int config_find(const char *const *directories, const char *name, bool required,
		const struct trust *trust, struct config_list *list,
		struct diagnostics *diagnostics);
void config_list_done(struct config_list *list);
