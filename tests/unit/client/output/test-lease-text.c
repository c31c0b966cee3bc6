/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lease-text.h"

#include <time.h>

#include "check.h"

#define SECOND UINT64_C(1000000)

static uint64_t now_usec(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec / 1000;
}

/* Repeats the check if more than half a second has passed. */
static bool deadline_is(const char *state, uint64_t seconds, const char *wanted)
{
	uint64_t now;
	char buf[64];

	do {
		now = now_usec();
		lease_text_deadline(state, now + seconds * SECOND + SECOND / 2, buf, sizeof(buf));
	} while (now_usec() >= now + SECOND / 2);
	if (strcmp(buf, wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", buf, wanted);
	return false;
}

static bool why_is(const char *state, unsigned position, const char *reason, uint64_t deadline,
		   const char *wanted)
{
	char buf[128];

	lease_text_why(state, position, reason, deadline, buf, sizeof(buf));
	if (strcmp(buf, wanted) == 0)
		return true;
	fprintf(stderr, "\"%s\" is not \"%s\"\n", buf, wanted);
	return false;
}

TEST(the_remaining_time_has_a_readable_unit)
{
	CHECK(deadline_is("waiting", 41, "gives up in 42 s"));
	CHECK(deadline_is("waiting", 150, "gives up in 2 min"));
	CHECK(deadline_is("waiting", 3 * 3600, "gives up in 3 h"));
	CHECK(deadline_is("waiting", 100 * 3600, "gives up in 4 d"));
	CHECK(deadline_is("revoking", 9, "ends in 10 s"));
	CHECK(deadline_is("activating", 0, "active in 1 s"));
	CHECK(deadline_is("granted", 9, "must return CUs in 10 s"));
	CHECK(deadline_is("ending", 9, ""));
}

TEST(a_passed_deadline_is_zero_seconds)
{
	CHECK(why_is("waiting", 0, "", 1, "gives up in 0 s"));
	CHECK(why_is("revoking", 0, "", 1, "ends in 0 s"));
	CHECK(why_is("activating", 0, "waits for 3 CUs", 1, "waits for 3 CUs; overdue"));
	CHECK(why_is("granted", 0, "", 1, "overdue"));
}

TEST(reason_position_and_deadline_are_joined)
{
	CHECK(why_is("granted", 0, "", GPUARB_FOREVER, ""));
	CHECK(why_is("granted", 0, "has 5 queues", GPUARB_FOREVER, "has 5 queues"));
	CHECK(why_is("waiting", 2, "", GPUARB_FOREVER, "position 2"));
	CHECK(why_is("waiting", 2, "cus, 30 asked", GPUARB_FOREVER, "cus, 30 asked; position 2"));
	CHECK(why_is("waiting", 2, "cus", 1, "cus; position 2; gives up in 0 s"));
	CHECK(why_is("revoking", 0, "drained", 1, "drained; ends in 0 s"));
	CHECK(why_is("waiting", 2, "", 1, "position 2; gives up in 0 s"));
}
