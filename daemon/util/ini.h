/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reads one INI file with libinih and reports every error with file and line.
 *
 * A line is a comment (it starts with # or ;), a [section] or KEY = VALUE, of up to 190 bytes; " ;"
 * starts a comment after a value, " #" is an error there. Indentation has no meaning: a value ends with its line. A
 * section may occur once in a file, a key once in a section. Everything but comments is ASCII.
 * /dev/null reads as an empty file, and no file may be larger than 1 MiB.
 */

#include <stdbool.h>

#include "util/diagnostics.h"
#include "util/trust.h"

struct names;

/* Where a value comes from, for errors about it. */
struct ini_place {
	const char *file;
	unsigned line;
	struct diagnostics *diagnostics;
	unsigned *errors;    /* counted by ini_bad(); NULL: not counted */
	struct names *names; /* for values that name users; NULL: the name service is asked */
	const char *tenant;  /* of which they are; NULL: of none */
};

/* Called for each key. section is "" before the first header. The callback reports errors with
 * ini_bad(); the reader goes on, so that one run reports all errors. */
typedef void (*ini_key_t)(const struct ini_place *place, const char *section, const char *key,
			  const char *value, void *userdata);

/* Called for each header, before its keys. */
typedef void (*ini_section_t)(const struct ini_place *place, const char *section, void *userdata);

/* on_section may be NULL. trust: as for trust_open(); NULL: the file may belong to any user.
 * Returns -ENOENT without diagnostic if there is no such file; with a diagnostic -EINVAL if the
 * file was refused or has an error, or -ENOMEM. */
int ini_read(const char *path, const struct trust *trust, ini_section_t on_section,
	     ini_key_t on_key, void *userdata, struct diagnostics *diagnostics);

/* Adds "FILE:LINE: …" to the diagnostics as an error. */
void ini_bad(const struct ini_place *place, const char *format, ...) PRINTF_LIKE(2, 3);

/* Reports an unknown key with the nearest of the known ones, or all of them. */
void ini_unknown_key(const struct ini_place *place, const char *section, const char *key,
		     const char *const *known);

/* Parse a value. -EINVAL after an error that quotes key and value and says what is valid. */
int ini_unsigned(const struct ini_place *place, const char *key, const char *value, unsigned min,
		 unsigned max, unsigned *ret);
int ini_percent(const struct ini_place *place, const char *key, const char *value, unsigned min,
		unsigned max, unsigned *ret); /* "60%" */
int ini_bool(const struct ini_place *place, const char *key, const char *value, bool *ret);
int ini_bytes(const struct ini_place *place, const char *key, const char *value,
	      uint64_t *ret); /* 4096, 512M, 2G, 1T: powers of 1024 */
