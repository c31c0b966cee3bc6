/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bus/bus-users.h"
#include "check.h"
#include "core/ledger/ledger.h"

#define NOW UINT64_C(1000000000)
#define SEC UINT64_C(1000000)

/* How long a user who has used up its budget of calls waits after a call, with n more under way. */
static uint64_t pause_after_call(size_t n)
{
	struct settings settings = { .max_calls_per_user = 2000, .max_time_per_user = 20 };
	const struct arbiter arbiter = { .settings = &settings };
	struct bus bus = { .arbiter = &arbiter };
	struct bus_user user = { .calls = (int64_t)SEC, .filled_usec = NOW, .n_queued = n };

	CHECK(bus_user_ready_usec(&bus, &user, NOW) == NOW);
	bus_user_charge(&user, 1, 0);
	CHECK(user.served == 1);
	return bus_user_ready_usec(&bus, &user, NOW) - NOW - 1;
}

TEST(calls_of_a_user_with_few_under_way_cost_one_each)
{
	CHECK(pause_after_call(0) == SEC / 2000 && pause_after_call(511) == SEC / 2000);
}

/* dbus-daemon walks through all calls under way for each call and for each answer. */
TEST(cost_of_a_call_grows_with_the_square_of_the_calls_under_way)
{
	CHECK(pause_after_call(512) == 2 * SEC / 2000);
	CHECK(pause_after_call(1024) == 5 * SEC / 2000);
	CHECK(pause_after_call(8192) == 257 * SEC / 2000);
	CHECK(pause_after_call(32768) == 4097 * SEC / 2000);
}
