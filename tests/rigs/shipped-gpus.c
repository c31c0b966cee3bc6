/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shipped-gpus.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check-cond.h"
#include "sys/config/profile.h"

size_t load_shipped_gpus(struct gpu_info infos[static SHIPPED_GPUS_MAX],
			 char names[static SHIPPED_GPUS_MAX][64])
{
	const char *root = getenv("GPUARB_SOURCE_ROOT");
	struct diagnostics diagnostics = { 0 };
	struct dirent **entries;
	char dir[4096];
	size_t n = 0;
	int found;

	snprintf(dir, sizeof(dir), "%s/conf/gpus", root ? root : ".");
	found = scandir(dir, &entries, NULL, alphasort);
	CHECK(found > 0);
	for (int i = 0; i < found; i++) {
		struct profile profile;
		char *dot = strstr(entries[i]->d_name, ".conf");

		if (dot) {
			CHECK(n < SHIPPED_GPUS_MAX);
			*dot = '\0';
			CHECK(profile_load(dir, entries[i]->d_name, &profile, &diagnostics) == 0);
			snprintf(names[n], 64, "%.63s", entries[i]->d_name);
			infos[n++] = profile.info;
		}
		free(entries[i]);
	}
	free(entries);
	diagnostics_done(&diagnostics);
	CHECK(n >= 13);
	return n;
}
