/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/doctor/service-user.h"

#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct trust service_trust(void)
{
	uid_t uid = trust_service();

	return (struct trust){ { uid ? uid : geteuid() } };
}

/* With the groups of the user, or none if the user has no name. */
static bool become(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (user ? initgroups(user->pw_name, user->pw_gid) < 0 || setegid(user->pw_gid) < 0
		 : setgroups(0, NULL) < 0 || setegid((gid_t)uid) < 0)
		return false;
	return seteuid(uid) == 0;
}

/* A program that cannot return to root must not go on. */
static void return_to_root(const gid_t *groups, int n)
{
	if (seteuid(0) < 0 || setegid(getgid()) < 0 || setgroups((size_t)n, groups) < 0)
		abort();
}

int service_load_config(const struct config_files *files, struct settings **ret,
			struct diagnostics *diagnostics)
{
	int n = getgroups(0, NULL), r;
	_cleanup_(freep) gid_t *groups = calloc(n > 0 ? (size_t)n : 1, sizeof(*groups));

	if (geteuid() != 0 || files->trust.owners[0] == 0 || !groups || getgroups(n, groups) != n ||
	    !become(files->trust.owners[0]))
		return config_load(files, ret, diagnostics);
	r = config_load(files, ret, diagnostics);
	return_to_root(groups, n);
	return r;
}
