/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ratelimit.h"

#include <stddef.h>

static bool is_over(const struct ratelimit_user *user, uint64_t now)
{
	return user->since == 0 || now - user->since >= RATELIMIT_USEC;
}

/* The entry of the user, else one whose period is over, else the shared one. */
static struct ratelimit_user *find(struct ratelimit *ratelimit, uid_t uid, uint64_t now)
{
	struct ratelimit_user *found = NULL;

	for (size_t i = 0; i < RATELIMIT_USERS; i++) {
		struct ratelimit_user *user = &ratelimit->users[i];

		if (user->since > 0 && user->uid == uid)
			return user;
		if (!found && is_over(user, now))
			found = user;
	}
	if (!found)
		return &ratelimit->users[RATELIMIT_USERS];
	*found = (struct ratelimit_user){ .uid = uid };
	return found;
}

bool ratelimit(struct ratelimit *ratelimit, uid_t uid, uint64_t now_usec, uint64_t *ret_times,
	       uint64_t *ret_withheld)
{
	struct ratelimit_user *user = find(ratelimit, uid, now_usec);

	*ret_withheld = 0;
	if (is_over(user, now_usec)) {
		if (user->times > RATELIMIT_TIMES)
			*ret_withheld = user->times - RATELIMIT_TIMES;
		user->since = now_usec;
		user->times = 0;
	}
	*ret_times = ++user->times;
	return user->times <= RATELIMIT_TIMES;
}
