/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/output/lease-text.h"

#include "check.h"

static bool text_is(uint32_t asked, const uint32_t *observed, size_t n, enum priority_match how,
		    const char *wanted)
{
	const struct gpuarb_partition partition = {
		.priority = asked,
		.priorities_seen = observed,
		.n_priorities_seen = n,
	};
	char buf[64];
	enum priority_match r = priority_text(&partition, buf, sizeof(buf));

	if (r == how && strcmp(buf, wanted) == 0)
		return true;
	fprintf(stderr, "%d: \"%s\" is not \"%s\"\n", (int)r, buf, wanted);
	return false;
}

#define SEEN(...) \
	(const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)

TEST(a_priority_that_was_not_observed_is_marked_as_asked)
{
	CHECK(text_is(7, NULL, 0, PRIORITY_AS_ASKED, "normal"));
	CHECK(text_is(11, NULL, 0, PRIORITY_AS_ASKED,
		      "high (asked; not observed in the hardware)"));
	CHECK(text_is(0, NULL, 0, PRIORITY_AS_ASKED, "low (asked; not observed in the hardware)"));
	CHECK(text_is(15, NULL, 0, PRIORITY_AS_ASKED, "15 (asked; not observed in the hardware)"));
}

/* HIP makes streams with a mask of normal priority only, and newer ones make no others. */
TEST(a_lower_priority_than_asked_is_shown)
{
	CHECK(text_is(11, SEEN(7), PRIORITY_LESS, "normal (asked high)"));
	CHECK(text_is(15, SEEN(7), PRIORITY_LESS, "normal (asked 15)"));
	CHECK(text_is(11, SEEN(0, 10), PRIORITY_LESS, "10 (asked high)"));
	CHECK(text_is(0, SEEN(7), PRIORITY_LESS, "normal (asked low)"));
}

/* Among them is the runtime's own queue, which is normal. HIP's high is 11, or 15 in older ones. */
TEST(one_queue_of_the_asked_class_is_enough)
{
	CHECK(text_is(11, SEEN(7, 11), PRIORITY_AS_ASKED, "high"));
	CHECK(text_is(11, SEEN(7, 15), PRIORITY_AS_ASKED, "high"));
	CHECK(text_is(0, SEEN(0, 7), PRIORITY_AS_ASKED, "low"));
	CHECK(text_is(7, SEEN(7), PRIORITY_AS_ASKED, "normal"));
	CHECK(text_is(9, SEEN(7), PRIORITY_AS_ASKED, "9"));
}

TEST(a_higher_priority_than_asked_is_shown)
{
	CHECK(text_is(7, SEEN(7, 11), PRIORITY_MORE, "high (asked normal)"));
	CHECK(text_is(0, SEEN(0, 15), PRIORITY_MORE, "15 (asked low)"));
	CHECK(text_is(10, SEEN(12), PRIORITY_MORE, "12 (asked 10)"));
}
