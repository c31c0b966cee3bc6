/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ratelimit.h"

#include "check.h"

#define START UINT64_C(1000)

static bool pass(struct ratelimit *t, uid_t uid, uint64_t now)
{
	uint64_t times, withheld;

	return ratelimit(t, uid, now, &times, &withheld);
}

TEST(user_has_100_lines_in_a_period)
{
	uint64_t times = 0, withheld = 1;
	struct ratelimit t = { 0 };

	for (unsigned i = 1; i <= RATELIMIT_TIMES; i++)
		CHECK(ratelimit(&t, 7, START + i, &times, &withheld) && times == i &&
		      withheld == 0);
	CHECK(!ratelimit(&t, 7, START + 500, &times, &withheld) && times == RATELIMIT_TIMES + 1);
	CHECK(!pass(&t, 7, START + RATELIMIT_USEC)); /* the first was at START + 1 */
	CHECK(ratelimit(&t, 7, START + 1 + RATELIMIT_USEC, &times, &withheld));
	CHECK(times == 1 && withheld == 2);
	CHECK(ratelimit(&t, 7, START + 2 + RATELIMIT_USEC, &times, &withheld));
	CHECK(times == 2 && withheld == 0);
}

TEST(limit_of_one_user_does_not_affect_another)
{
	struct ratelimit t = { 0 };

	while (pass(&t, 7, START))
		;
	CHECK(pass(&t, 8, START) && !pass(&t, 7, START));
}

TEST(users_beyond_the_table_share_one_limit)
{
	struct ratelimit t = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * RATELIMIT_TIMES; i++)
		for (uid_t uid = 0; uid < 10 * RATELIMIT_USERS; uid++)
			n += pass(&t, uid, START);
	CHECK(n == (RATELIMIT_USERS + 1) * RATELIMIT_TIMES);

	/* The first users of the next period have entries of their own again. */
	for (uid_t uid = 500; uid < 500 + RATELIMIT_USERS; uid++)
		CHECK(pass(&t, uid, START + RATELIMIT_USEC));
	CHECK(pass(&t, 0, START + RATELIMIT_USEC)); /* shared entry, whose period is over */
}
