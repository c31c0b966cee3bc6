/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/verbs/caller.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "client/output/fail.h"
#include "util/number.h"

/* The groups of the user database. A user without a name is in none. */
static int find_groups(const struct command *command, struct caller *caller)
{
	const struct passwd *user = getpwuid(caller->uid);
	int n = (int)CALLER_GROUPS;

	if (!user)
		return EXIT_OK;
	if (getgrouplist(user->pw_name, user->pw_gid, caller->groups, &n) < 0)
		return fail(command, EXIT_FAILED, "user %s is in more than %u groups",
			    user->pw_name, CALLER_GROUPS);
	caller->n_groups = (size_t)n;
	return EXIT_OK;
}

static int take_groups(const struct command *command, struct caller *caller)
{
	_cleanup_(freep) char *list = strdup(command->groups);
	char *rest = list, *name;
	uint64_t number;

	while (list && (name = strsep(&rest, ","))) {
		const struct group *group = getgrnam(name);

		if (!group && number_parse(name, 0, UINT32_MAX - 1, &number) < 0)
			return fail(command, EXIT_USAGE, "--group=%.80s: there is no group '%.80s'",
				    command->groups, name);
		if (caller->n_groups == CALLER_GROUPS)
			return fail(command, EXIT_USAGE, "--group: more than %u groups",
				    CALLER_GROUPS);
		caller->groups[caller->n_groups++] = group ? group->gr_gid : (gid_t)number;
	}
	return EXIT_OK;
}

int caller_find(const struct command *command, struct caller *ret)
{
	const char *name = command->filter.user;
	const struct passwd *user = name ? getpwnam(name) : NULL;
	uint64_t number = user ? user->pw_uid : getuid();

	*ret = (struct caller){ .uid = (uid_t)number };
	if (name && !user && number_parse(name, 0, UINT32_MAX - 1, &number) < 0)
		return fail(command, EXIT_USAGE, "--user=%.80s: there is no such user", name);
	ret->uid = (uid_t)number;
	return command->groups ? take_groups(command, ret) : find_groups(command, ret);
}
