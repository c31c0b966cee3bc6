/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/memory-cap.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/output/print.h"
#include "util/base.h"
#include "util/number.h"

#define CGROUPS "/sys/fs/cgroup"
#define LINES 1024U /* that are read of a file */
#define TEXT 4096U  /* of a line, and of a path below a cgroup */

DEFINE_CLEANUP(FILE *, fclose)

/* What follows the word at the begin of a line of the file. false: there is no such line. */
static bool find_line(const char *file, const char *word, char ret[static TEXT])
{
	_cleanup_(fclosep) FILE *in = fopen(file, "re");
	size_t length = strlen(word);

	for (unsigned i = 0; in && i < LINES && fgets(ret, TEXT, in); i++) {
		ret[strcspn(ret, "\n")] = '\0';
		if (strncmp(ret, word, length) != 0)
			continue;
		memmove(ret, ret + length, strlen(ret + length) + 1);
		return true;
	}
	return false;
}

static bool has_controller(const char *root)
{
	char file[TEXT], line[TEXT], *rest = line, *word;

	snprintf(file, sizeof(file), "%s" CGROUPS "/cgroup.controllers", root);
	if (!find_line(file, "", line))
		return false;
	while ((word = strsep(&rest, " ")))
		if (strcmp(word, "dmem") == 0)
			return true;
	return false;
}

/* The limit of the region in one cgroup; "max", and what cannot be read: none. */
static bool read_limit(const char *root, const char *group, const char *region, uint64_t *ret)
{
	char file[3 * TEXT], value[TEXT];

	snprintf(file, sizeof(file), "%s" CGROUPS "%s/dmem.max", root, group);
	return find_line(file, region, value) && number_parse(value, 0, UINT64_MAX, ret) >= 0;
}

enum memory_cap memory_cap_read(const char *root, const char *gpu, pid_t pid, uint64_t *ret)
{
	char region[96], file[TEXT], group[TEXT], *end;
	enum memory_cap cap = MEMORY_CAP_NONE;
	uint64_t limit;

	if (!has_controller(root))
		return MEMORY_CAP_NO_CONTROLLER;
	/* Lines are "REGION VALUE": kernel/cgroup/dmem.c. */
	snprintf(region, sizeof(region), "drm/%.*s/vram ", (int)strcspn(gpu, "/"), gpu);
	snprintf(file, sizeof(file), "%s" CGROUPS "/dmem.capacity", root);
	if (!find_line(file, region, group))
		return MEMORY_CAP_NO_REGION;

	snprintf(file, sizeof(file), "%s/proc/%d/cgroup", root, (int)pid);
	if (pid <= 0 || !find_line(file, "0::", group) || strstr(group, "/.."))
		return MEMORY_CAP_NONE;
	/* A limit holds for all cgroups below. */
	while (true) {
		if (read_limit(root, group, region, &limit) &&
		    (cap != MEMORY_CAP_SET || limit < *ret)) {
			*ret = limit;
			cap = MEMORY_CAP_SET;
		}
		end = strrchr(group, '/');
		if (!end)
			return cap;
		*end = '\0';
	}
}

void memory_cap_text(enum memory_cap cap, uint64_t bytes, char ret[static MEMORY_CAP_TEXT])
{
	static const char *const texts[] = {
		[MEMORY_CAP_NO_CONTROLLER] = "not capped (kernel without dmem)",
		[MEMORY_CAP_NO_REGION] = "not capped (the driver has no dmem region)",
		[MEMORY_CAP_NONE] = "not capped (its cgroup has no limit)",
	};
	char limit[PRINT_BYTES];

	print_bytes(bytes, limit);
	if (cap == MEMORY_CAP_SET)
		snprintf(ret, MEMORY_CAP_TEXT, "capped at %s by its cgroup", limit);
	else
		snprintf(ret, MEMORY_CAP_TEXT, "%s", texts[cap]);
}
