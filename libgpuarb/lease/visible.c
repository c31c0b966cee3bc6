/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libgpuarb/lease/environment.h"

#define UUID_LENGTH 20U /* "GPU-" and 16 digits */

/* The one GPU whose unique id starts so, or n. */
static size_t find_unique(const char *item, const struct topology *topology)
{
	size_t length = strlen(item), found = topology->n;

	if (length < 5 || length > UUID_LENGTH)
		return topology->n;

	for (size_t i = 0; i < topology->n; i++) {
		char uuid[UUID_LENGTH + 1];

		if (topology->gpus[i].unique_id == 0)
			continue;
		snprintf(uuid, sizeof(uuid), "GPU-%016" PRIX64, topology->gpus[i].unique_id);
		if (strncasecmp(item, uuid, length) != 0)
			continue;
		if (found < topology->n)
			return topology->n;
		found = i;
	}
	return found;
}

/* Any base that strtol() knows; an empty item is none. */
static size_t find_index(const char *item, const struct topology *topology)
{
	char *end;
	long index = strtol(item, &end, 0);

	if (end == item || *end || index < 0 || (unsigned long)index > topology->n)
		return topology->n;
	return (size_t)index;
}

/* Copies one item without the space around it; NULL for one that is too long to be right. */
static char *next_item(const char **value, char buf[UUID_LENGTH + 2])
{
	size_t length = strcspn(*value, ",");
	const char *start = *value, *end = start + length;

	*value = *end ? end + 1 : end;
	while (start < end && isspace((unsigned char)*start))
		start++;
	while (start < end && isspace((unsigned char)end[-1]))
		end--;
	if ((size_t)(end - start) > UUID_LENGTH)
		return NULL;

	memcpy(buf, start, (size_t)(end - start));
	buf[end - start] = '\0';
	return buf;
}

void visible_parse(const char *value, const struct topology *topology, bool *visible)
{
	memset(visible, 0, topology->n * sizeof(*visible));
	while (*value) {
		char buf[UUID_LENGTH + 2];
		const char *item = next_item(&value, buf);
		size_t i = topology->n;

		if (item)
			i = toupper((unsigned char)*item) == 'G' ? find_unique(item, topology)
								 : find_index(item, topology);
		if (i == topology->n || visible[i])
			return;
		visible[i] = true;
	}
}
