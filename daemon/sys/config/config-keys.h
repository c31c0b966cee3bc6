/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Tables of INI keys: which function parses the value of a key, and into which field. */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/ini.h"

struct config_key;

/* Parses a value into a field, or reports an error with ini_bad() and leaves the field. */
typedef void config_set_t(const struct ini_place *place, const struct config_key *key,
			  const char *value, void *field);

struct config_key {
	const char *name;
	config_set_t *set;
	size_t offset;            /* of the field in the struct of the section */
	unsigned min, max;        /* of a number; min also: the first word that is valid */
	const char *const *words; /* of config_set_word() and config_set_flag() */
	bool optional;            /* in a GPU profile */
	bool group;               /* a list of groups, not of users */
};

/* A kind of section. A section with a name, "[gpu NAME]", may occur more than once. */
struct config_section {
	const char *name;
	bool named;
	const struct config_key *keys;
	size_t n_keys;
};

#define CONFIG_SUFFIX ".conf"
#define CONFIG_KEYS_MAX 40U /* of one section */

enum config_kind { CONFIG_DAEMON, CONFIG_GPU, CONFIG_SHARE, CONFIG_TENANT, CONFIG_KINDS };

extern const struct config_section config_sections[CONFIG_KINDS];

config_set_t config_set_unsigned, config_set_bool;
config_set_t config_set_word; /* an enum: the index of the word */
config_set_t config_set_flag; /* a bool: the second word is true */

/* Calls the key's function with its field in target. Returns the key's index, or -1 after an error
 * about an unknown key. */
int config_take_key(const struct ini_place *place, const struct config_section *section,
		    const char *name, const char *value, void *target);

/* Whether the file is called NAME.conf and is not hidden; for scandir(). */
int config_is_conf(const struct dirent *entry);

/* "0000:03:00.0", or "0000:03:00.0/2" for a partition. */
bool config_is_gpu_name(const char *name);

/* A profile is named like its file: no path, not hidden. */
bool config_is_profile_name(const char *name);
