/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the parts of the configuration reader share. */

#include <stdbool.h>
#include <stddef.h>

#include "util/diagnostics.h"
#include "core/policy/settings.h"
#include "util/ini.h"
#include "util/trust.h"

struct config_key;

/* Reads a value into a field, or complains to the place and leaves the field. */
typedef void config_set_t(const struct ini_place *place, const struct config_key *key,
			  const char *value, void *field);

struct config_key {
	const char *full_name; /* "daemon margin" */
	const char *name;      /* "margin" */
	config_set_t *set;
	size_t offset;     /* of the field in the struct of the section */
	unsigned min, max; /* of numbers */
};

/* A kind of section. Those that have a name, "[gpu NAME]", come as often as wanted. */
struct config_section {
	const char *name;
	bool named;
	const struct config_key *keys;
	size_t n_keys;
};

enum config_kind { CONFIG_DAEMON, CONFIG_GPU, CONFIG_TENANT, CONFIG_KINDS };

extern const struct config_section config_sections[CONFIG_KINDS];

/* A tenant as it is read, and where. */
struct config_tenant {
	struct tenant tenant;
	char *file;
	unsigned line;
	bool matches; /* it says whom, rightly or not */
};

/* What is being read. */
struct config {
	struct settings *settings;
	struct config_tenant *rows;
	size_t n_rows;
	bool tenants_only;                    /* this file may have no other section */
	const struct config_section *section; /* NULL: none, or none that is known */
	void *target;                         /* the struct that its keys fill, or NULL */
	struct diagnostics *diagnostics;
	unsigned complaints;
};

/* config-section.c: for ini_read_sections(), with the struct config. */
void config_on_section(const struct ini_place *place, const char *section, void *userdata);
void config_on_key(const struct ini_place *place, const char *section, const char *name,
		   const char *value, void *userdata);

/* config-tenant.c */
bool config_is_everybody(const struct config_tenant *row);

/* The tenant for "[tenant NAME]"; NULL after a complaint. */
struct tenant *config_add_tenant(struct config *config, const struct ini_place *place,
				 const char *name);

/* Complains of what is wrong with tenants as a whole. */
void config_check_tenants(struct config *config);

/* Moves the tenants into the settings; "*", built in or from a file, is the last. -ENOMEM. */
int config_settle_tenants(struct config *config);
void config_drop_tenants(struct config *config);

/* config-value.c */
config_set_t config_set_backend, config_set_unmanaged, config_set_oversubscribe;
config_set_t config_set_on_reload;
config_set_t config_set_gpus;
config_set_t config_set_interval, config_set_percent, config_set_unsigned, config_set_bool;
config_set_t config_set_class, config_set_priority, config_set_enforce;
config_set_t config_set_count, config_set_share, config_set_bytes; /* struct limit */

/* config-match.c. The field of users and groups is the tenant itself. */
config_set_t config_set_users, config_set_groups, config_set_pattern;
config_set_t config_set_path_pattern, config_set_profiles;

/* Which files to read: config-files.c. Directories are NULL-terminated, later ones win. */
struct config_list {
	char **paths; /* in the order in which they are to be read */
	size_t n;
};

/* DIRECTORY/NAME of the last directory that has it; *ret stays NULL if none has. Directories are
 * to be trusted, as trust_open() has it, whether they have it or not; a directory that is missing
 * is fine. -EINVAL with a note, -ENOMEM. */
int config_find(const char *const *directories, const char *name, const struct trust *trust,
		char **ret, struct diagnostics *diagnostics);

/* DIRECTORY/?*.conf of all directories in order of the file name; a file takes the place of
 * one with its name in an earlier directory. A directory that is missing is fine unless
 * required, one that is not to be trusted is not. -EINVAL with a note, -ENOMEM. */
int config_find_all(const char *const *directories, bool required, const struct trust *trust,
		    struct config_list *list, struct diagnostics *diagnostics);
void config_list_done(struct config_list *list);
