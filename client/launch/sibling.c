/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/launch/sibling.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *sibling_find(const char *name, const char *installed, char ret[static PATH_MAX])
{
	ssize_t size = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	char *end;
	size_t room;

	ret[size < 0 ? 0 : size] = '\0';
	end = strrchr(ret, '/');
	if (!end)
		return installed;
	room = PATH_MAX - (size_t)(end - ret);
	if ((size_t)snprintf(end, room, "/%s", name) >= room || access(ret, X_OK) < 0)
		return installed;
	return ret;
}
