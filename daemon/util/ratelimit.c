/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ratelimit.h"

#include <stddef.h>

static bool is_over(const struct trickle_user *user, uint64_t now)
{
	return user->since == 0 || now - user->since >= TRICKLE_USEC;
}

/* Its own, else one whose period is over, else that of all others. */
static struct trickle_user *find(struct trickle *trickle, uid_t uid, uint64_t now)
{
	struct trickle_user *found = NULL;

	for (size_t i = 0; i < TRICKLE_USERS; i++) {
		struct trickle_user *user = &trickle->users[i];

		if (user->since > 0 && user->uid == uid)
			return user;
		if (!found && is_over(user, now))
			found = user;
	}
	if (!found)
		return &trickle->users[TRICKLE_USERS];
	*found = (struct trickle_user){ .uid = uid };
	return found;
}

bool trickle(struct trickle *trickle, uid_t uid, uint64_t now_usec, uint64_t *ret_times,
	     uint64_t *ret_withheld)
{
	struct trickle_user *user = find(trickle, uid, now_usec);

	*ret_withheld = 0;
	if (is_over(user, now_usec)) {
		if (user->times > TRICKLE_TIMES)
			*ret_withheld = user->times - TRICKLE_TIMES;
		user->since = now_usec;
		user->times = 0;
	}
	*ret_times = ++user->times;
	return user->times <= TRICKLE_TIMES;
}
