/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* LD_PRELOAD into gpuarbd: a name service that a test controls. In the directory GPUARB_NAMES, the file NAME
 * has the uid of a user; while there is NAME.wait, its look-up takes its time; with NAME.abort it crashes. */

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int exists(const char *name, const char *suffix, char path[static 512])
{
	snprintf(path, 512, "%s/%s%s", getenv("GPUARB_NAMES"), name, suffix);
	return access(path, F_OK) == 0;
}

struct passwd *getpwnam(const char *name)
{
	static struct passwd user;
	char path[512];
	FILE *file;

	while (exists(name, ".wait", path))
		usleep(1000);
	if (exists(name, ".abort", path))
		abort();
	if (!exists(name, "", path))
		return NULL;
	file = fopen(path, "re");
	if (!file || fscanf(file, "%u", &user.pw_uid) != 1)
		abort();
	fclose(file);
	return &user;
}
