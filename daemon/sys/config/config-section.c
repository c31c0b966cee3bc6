/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sys/config/config-internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"

/* "0000:03:00.0" or "0000:03:00.0/2", written as the kernel writes PCI addresses. */
static bool is_gpu_name(const char *name)
{
	unsigned domain, bus, device, function, partition;
	char again[64];
	int n = sscanf(name, "%8x:%2x:%2x.%1x/%2u", &domain, &bus, &device, &function, &partition);

	if (n < 4 || device > 0x1f || function > 7)
		return false;
	if (n == 4)
		snprintf(again, sizeof(again), "%04x:%02x:%02x.%x", domain, bus, device, function);
	else
		snprintf(again, sizeof(again), "%04x:%02x:%02x.%x/%u", domain, bus, device,
			 function, partition);
	return strcmp(name, again) == 0 && strlen(name) < GPU_NAME_MAX;
}

/* The struct for "[gpu NAME]"; NULL after a complaint. */
static void *add_gpu(struct config *config, const struct ini_place *place, const char *name)
{
	struct settings *settings = config->settings;
	struct gpu_settings *gpus;

	if (!is_gpu_name(name)) {
		ini_bad(place,
			"[gpu %s]: a GPU is named by its PCI address in lower case, "
			"0000:03:00.0, or with its partition, 0000:03:00.0/2",
			name);
		return NULL;
	}
	gpus = reallocarray(settings->gpus, settings->n_gpus + 1, sizeof(*gpus));
	if (!gpus) {
		ini_bad(place, "out of memory");
		return NULL;
	}
	settings->gpus = gpus;
	gpus += settings->n_gpus++;
	*gpus = (struct gpu_settings){ 0 };
	strcpy(gpus->name, name);
	return gpus;
}

static void bad_section(const struct ini_place *place, const char *section, size_t size)
{
	static const char *const words[] = { "daemon", "gpu", "tenant", NULL };
	char word[64];
	const char *nearest;

	snprintf(word, sizeof(word), "%.*s", (int)size, section);
	nearest = text_nearest(word, words);
	if (nearest)
		ini_bad(place, "unknown section [%s]; did you mean [%s%s]?", section, nearest,
			strcmp(nearest, "daemon") == 0 ? "" : " NAME");
	else
		ini_bad(place,
			"unknown section [%s]; there are [daemon], [gpu NAME] and "
			"[tenant NAME]",
			section);
}

/* Which kind of section it is, and the NAME in it; NULL after a complaint. */
static const struct config_section *find_section(const struct ini_place *place, const char *section,
						 const char **ret_name)
{
	size_t size = strcspn(section, " ");
	const char *name = section[size] ? section + size + 1 : "";

	for (size_t i = 0; i < CONFIG_KINDS; i++) {
		const struct config_section *known = &config_sections[i];

		if (strlen(known->name) != size || strncmp(section, known->name, size) != 0)
			continue;
		if (known->named == (*name != '\0')) {
			*ret_name = name;
			return known;
		}
		ini_bad(place,
			known->named ? "[%s] needs a name: [%s NAME]" : "[%s] takes no name: [%s]",
			section, known->name);
		return NULL;
	}
	bad_section(place, section, size);
	return NULL;
}

void config_on_section(const struct ini_place *place, const char *section, void *userdata)
{
	struct config *config = userdata;
	const char *name;

	config->target = NULL;
	config->section = find_section(place, section, &name);
	if (!config->section)
		return;

	if (config->section == &config_sections[CONFIG_TENANT])
		config->target = config_add_tenant(config, place, name);
	else if (config->tenants_only)
		ini_bad(place, "[%s] belongs in gpuarbd.conf: here are tenants only", section);
	else if (config->section == &config_sections[CONFIG_GPU])
		config->target = add_gpu(config, place, name);
	else
		config->target = config->settings;
}

static const struct config_key *find_key(const struct config_section *section, const char *name)
{
	for (size_t i = 0; i < section->n_keys; i++)
		if (strcmp(section->keys[i].name, name) == 0)
			return &section->keys[i];
	return NULL;
}

static void bad_key(const struct ini_place *place, const struct config_section *section,
		    const char *name)
{
	const char *words[32] = { 0 };

	for (size_t i = 0; i < section->n_keys && i < ARRAY_SIZE(words) - 1; i++)
		words[i] = section->keys[i].name;
	ini_unknown_key(place, section->name, name, words);
}

/* Keeps in mind that the tenant says whom it matches; false after a complaint. */
static bool note_match(struct config_tenant *row, const struct ini_place *place,
		       const struct config_key *key)
{
	if (config_is_everybody(row) && strncmp(key->name, "match-", 6) == 0) {
		ini_bad(place, "%s: [tenant *] is everybody else and takes no match", key->name);
		return false;
	}
	row->matches |= key->set == config_set_users || key->set == config_set_groups;
	return true;
}

void config_on_key(const struct ini_place *place, const char *section, const char *name,
		   const char *value, void *userdata)
{
	struct config *config = userdata;
	const struct config_key *key;

	if (!*section)
		ini_bad(place, "%s: a key needs a [section] above it", name);
	if (!*section || !config->target)
		return; /* the section was complained of */

	key = find_key(config->section, name);
	if (!key) {
		bad_key(place, config->section, name);
		return;
	}
	if (config->section == &config_sections[CONFIG_TENANT] &&
	    !note_match(&config->rows[config->n_rows - 1], place, key))
		return;
	key->set(place, key, value, (char *)config->target + key->offset);
}
