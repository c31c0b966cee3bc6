/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * One INI file through libinih, with line numbers and without trust.
 *
 * A line is a comment (# or ; first), a [section] or KEY = VALUE, of up to 190 bytes;
 * " ;" starts a comment after a value. Indentation means nothing: a value ends with its
 * line. A section stands once in a file, a key once in a section. All but comments is
 * ASCII. /dev/null reads as an empty file.
 */

#include <stdbool.h>
#include <stddef.h>

#include "util/diagnostics.h"
#include "util/trust.h"

struct ini_place {
	const char *file;
	unsigned line;
	struct diagnostics *diagnostics;
	unsigned *complaints; /* counted by ini_bad(); NULL: not */
};

/* Called for each key. section is "" before the first header. Complaints go to ini_bad();
 * reading goes on, so that all of them are told at once. */
typedef void (*ini_key_t)(const struct ini_place *place, const char *section, const char *key,
			  const char *value, void *userdata);

/* Called for each header, before its keys. */
typedef void (*ini_section_t)(const struct ini_place *place, const char *section, void *userdata);

/* trust: as for textfile_load(). Returns -ENOENT if there is no such file (no
 * note), -EINVAL if it was refused or a complaint was made, -ENOMEM; each with a note. */
int ini_read(const char *path, const struct trust *trust, ini_key_t on_key, void *userdata,
	     struct diagnostics *diagnostics);

/* The same where a section without keys means something, too. on_section may be NULL. */
int ini_read_sections(const char *path, const struct trust *trust, ini_section_t on_section,
		      ini_key_t on_key, void *userdata, struct diagnostics *diagnostics);

/* "FILE:LINE: …" as an error. */
void ini_bad(const struct ini_place *place, const char *format, ...) PRINTF_LIKE(2, 3);

/* Values: -EINVAL after a complaint that names the key and what would work. */
int ini_unsigned(const struct ini_place *place, const char *key, const char *value, unsigned min,
		 unsigned max, unsigned *ret);
int ini_percent(const struct ini_place *place, const char *key, const char *value, unsigned min,
		unsigned max, unsigned *ret); /* "60%" */
int ini_bool(const struct ini_place *place, const char *key, const char *value, bool *ret);
int ini_bytes(const struct ini_place *place, const char *key, const char *value,
	      unsigned long long *ret); /* 4096, 512M, 2G, 1T: powers of 1024 */

/* The word of `words` (NULL-terminated) nearest to `word`: about a third of its letters
 * wrong at most; NULL if none is near. */
const char *ini_nearest(const char *word, const char *const *words);
