/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "util/ratelimit.h"

#include "check.h"

#define START UINT64_C(1000)

static bool pass(struct trickle *t, uid_t uid, uint64_t now)
{
	uint64_t times, withheld;

	return trickle(t, uid, now, &times, &withheld);
}

TEST(so_many_times_in_a_period_and_then_no_more)
{
	uint64_t times = 0, withheld = 1;
	struct trickle t = { 0 };

	for (unsigned i = 1; i <= TRICKLE_TIMES; i++)
		CHECK(trickle(&t, 7, START + i, &times, &withheld) && times == i && withheld == 0);
	CHECK(!trickle(&t, 7, START + 500, &times, &withheld) && times == TRICKLE_TIMES + 1);
	CHECK(!pass(&t, 7, START + TRICKLE_USEC)); /* the first was at START + 1 */
	CHECK(trickle(&t, 7, START + 1 + TRICKLE_USEC, &times, &withheld));
	CHECK(times == 1 && withheld == 2);
	CHECK(trickle(&t, 7, START + 2 + TRICKLE_USEC, &times, &withheld));
	CHECK(times == 2 && withheld == 0);
}

TEST(one_user_does_not_silence_another)
{
	struct trickle t = { 0 };

	while (pass(&t, 7, START))
		;
	CHECK(pass(&t, 8, START) && !pass(&t, 7, START));
}

TEST(a_crowd_of_users_is_bounded_too)
{
	struct trickle t = { 0 };
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * TRICKLE_TIMES; i++)
		for (uid_t uid = 0; uid < 10 * TRICKLE_USERS; uid++)
			n += pass(&t, uid, START);
	CHECK(n == (TRICKLE_USERS + 1) * TRICKLE_TIMES);

	/* Who comes first in the next period has a place again. */
	for (uid_t uid = 500; uid < 500 + TRICKLE_USERS; uid++)
		CHECK(pass(&t, uid, START + TRICKLE_USEC));
	CHECK(pass(&t, 0, START + TRICKLE_USEC)); /* among all others, whose period is over */
}
